"""Statuses that can't be written: how often that is attempted, and that others don't wait."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from backend.kernel.errors import IncorrectType, ServiceError
from functions import FindRequest, before_find
from functions.runtime.registry import registry
from objects.core.names import PUSH_STATUS
from objects.push import expansion, statuses
from objects.push.models import Push
from objects.push.statuses import StatusRules
from objects.rules import Change, set_rules
from tests.objects.push.pushing import cancel, install, push, status, sweep, work
from tests.objects.push.recorder import Recorder
from tests.stored_times import move_back

pytestmark = pytest.mark.django_db


class Refusals(StatusRules):
    """Rules that refuse changes of some statuses, and count these."""

    def __init__(self) -> None:
        self.ids: set[str] = set()
        self.count = 0

    def before_update(self, change: Change) -> None:
        if change.object_id in self.ids:
            self.count += 1
            raise IncorrectType("refused")


@pytest.fixture
def refusals() -> Iterator[Refusals]:
    rules = Refusals()
    set_rules(PUSH_STATUS, rules)
    yield rules
    set_rules(PUSH_STATUS, StatusRules())


def pass_pause(seconds: float) -> None:
    move_back(seconds, (Push._meta.db_table, "publish_at"))


def test_a_status_that_cannot_be_written_is_attempted_less_and_less(
    recorder: Recorder, refusals: Refusals
) -> None:
    install(1)
    push_id = push()
    refusals.ids.add(push_id)
    assert work(push_id)["status"] == "pending"
    assert len(recorder.messages) == 1
    assert refusals.count == 1
    for number, pause in enumerate(statuses.PUBLISH_PAUSES, 1):
        pass_pause(pause - 1)
        sweep()
        assert refusals.count == number
        pass_pause(2)
        sweep()
        assert refusals.count == number + 1
    pass_pause(100_000)
    sweep()
    assert refusals.count == len(statuses.PUBLISH_PAUSES) + 1, "it is left as it is"
    assert Push.objects.get().is_published


def test_a_status_is_written_when_that_is_possible_again(
    recorder: Recorder, refusals: Refusals
) -> None:
    install(1)
    push_id = push()
    refusals.ids.add(push_id)
    work(push_id)
    refusals.ids.clear()
    sweep()
    assert status(push_id)["status"] == "pending", "it isn't due yet"
    pass_pause(statuses.PUBLISH_PAUSES[0])
    sweep()
    assert (status(push_id)["status"], status(push_id)["numSent"]) == ("succeeded", 1)
    assert Push.objects.get().publish_failures == 0


def test_statuses_that_fail_keep_no_other_from_being_written(
    recorder: Recorder, refusals: Refusals
) -> None:
    stuck = [push() for _ in range(3)]
    for push_id in stuck:
        refusals.ids.add(push_id)
        work(push_id)
    pass_pause(100_000)
    other = push()
    expansion.expand(other)
    Push.objects.filter(pk=other).update(state="ended")
    sweep(limit=1)
    assert status(other)["status"] == "succeeded"


def test_a_push_whose_status_waits_can_be_cancelled(refusals: Refusals) -> None:
    install(1)
    push_id = push()
    refusals.ids.add(push_id)
    expansion.expand(push_id)
    statuses.publish(push_id)
    cancel(push_id)
    sweep()
    assert not Push.objects.get().targets.exists()
    assert Push.objects.get().is_published


def test_the_error_of_a_trigger_has_any_text(recorder: Recorder) -> None:
    install(1)
    with registry.temporarily():

        @before_find("_Installation")
        def refuse(request: FindRequest) -> None:
            raise ServiceError("no \0 " + "x" * 100_000)

        stored = work(push())
    assert stored["status"] == "failed"
    assert stored["errorMessage"]["message"].startswith("no \ufffd xxx")
    assert len(stored["errorMessage"]["message"]) == 1000
