"""Pushes whose statuses are deleted."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from django.db import transaction

from backend.kernel.principal import MASTER
from objects import doctor, service
from objects.core.names import PUSH_STATUS, ObjectId
from objects.push import delivery, expansion, statuses
from objects.push.adapters.base import later
from objects.push.models import Push, PushTarget
from objects.push.tasks import prepare_push, send_push
from tests.objects.push.pushing import (
    api,
    cancel,
    install,
    pass_time,
    push,
    send,
    status,
    sweep,
    targets,
    work,
)
from tests.objects.push.recorder import Recorder
from tests.threads import at_once, wait_until_somebody_waits_for_us

pytestmark = pytest.mark.django_db


def state_of(push_id: str) -> str:
    return Push.objects.get(pk=push_id).state


def test_a_scheduled_push_is_not_sent(recorder: Recorder) -> None:
    install(2)
    push_id = push(push_time=2**31)
    cancel(push_id)
    assert state_of(push_id) == "ended"
    pass_time(2**31)
    assert sweep() == ([], [])
    expansion.expand(push_id)
    send(push_id)
    prepare_push(push_id)
    send_push(push_id)
    assert recorder.messages == []


def test_targets_that_are_read_already_are_not_sent(recorder: Recorder) -> None:
    install(2)
    push_id = push()
    expansion.expand(push_id)
    cancel(push_id)
    send(push_id)
    assert recorder.messages == []
    assert not PushTarget.objects.exists()


def test_devices_are_not_tried_again(recorder: Recorder) -> None:
    install(2)
    recorder.outcomes = {"token-0": later("busy")}
    push_id = push()
    work(push_id)
    assert sorted(recorder.tokens) == ["token-0", "token-1"]
    cancel(push_id)
    recorder.outcomes = {}
    pass_time(10_000)
    assert [finding.level for finding in doctor.push_notifications()] == ["ok"]
    send(push_id)
    assert len(recorder.messages) == 2
    assert state_of(push_id) == "ended"
    assert not PushTarget.objects.filter(state="pending").exists()


def test_a_purge_of_the_class_cancels_all_pushes(recorder: Recorder) -> None:
    install(1)
    finished, open_push = push(), push()
    work(finished)
    expansion.expand(open_push)
    assert api.delete("/purge/_PushStatus").status == 200
    send(open_push)
    assert len(recorder.messages) == 1
    assert {state_of(finished), state_of(open_push)} == {"ended"}
    assert Push.objects.get(pk=finished).error == ""


def test_a_deletion_that_is_rolled_back_cancels_nothing(recorder: Recorder) -> None:
    install(1)
    push_id = push()
    with transaction.atomic():
        service.delete(MASTER, PUSH_STATUS, ObjectId(push_id))
        transaction.set_rollback(True)
    assert work(push_id)["numSent"] == 1


@pytest.mark.django_db(transaction=True)
def test_a_worker_that_is_sending_finishes_its_chunk_alone(recorder: Recorder) -> None:
    install(delivery.CHUNK + 10)
    push_id = push()
    expansion.expand(push_id)
    recorder.outcomes = {targets(push_id)[0].device_token: later("busy")}
    recorder.meanwhile = lambda: cancel(push_id)
    send(push_id)
    assert len(recorder.messages) == delivery.CHUNK
    assert sweep() == ([], [])
    row = Push.objects.get(pk=push_id)
    assert (row.state, row.is_published, row.sent) == ("ended", True, delivery.CHUNK - 1)
    assert not PushTarget.objects.filter(state="pending").exists()


@contextmanager
def status_while_it_is_published() -> Iterator[str]:
    """A push whose status this transaction has locked, while another one waits to write it."""
    install(1)
    push_id = push()
    expansion.expand(push_id)
    with ThreadPoolExecutor(1) as pool, transaction.atomic():
        service.update(MASTER, PUSH_STATUS, ObjectId(push_id), {"title": "locked"})
        publishing = pool.submit(at_once, [lambda: statuses.publish(push_id)])
        wait_until_somebody_waits_for_us()
        yield push_id
    publishing.result()


@pytest.mark.django_db(transaction=True)
def test_a_push_that_is_cancelled_while_its_status_is_published_ends(recorder: Recorder) -> None:
    with status_while_it_is_published() as push_id:
        service.delete(MASTER, PUSH_STATUS, ObjectId(push_id))
    row = Push.objects.get(pk=push_id)
    assert (row.state, row.is_published) == ("ended", True)
    assert not PushTarget.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_status_is_not_overwritten_with_older_numbers(recorder: Recorder) -> None:
    with status_while_it_is_published() as push_id:
        Push.objects.filter(pk=push_id).update(sent=5)
    assert not Push.objects.get(pk=push_id).is_published
    statuses.publish(push_id)
    assert status(push_id)["numSent"] == 5
