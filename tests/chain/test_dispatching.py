"""Each second the tasks are sent that are due, network by network."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

import pytest
import redis
from django.conf import settings
from django.db import transaction
from django.utils import timezone

from backend.tasks import lanes
from chain import dispatch
from chain.indexing.contract_versions import contracts_changed
from chain.models import Backfill, Blockchain, Cursor, Transaction
from chain.tasks import backfill
from objects.definitions.models import Maintenance
from tests.chain.rpc.networks import network
from tests.rest import MASTER, Api

pytestmark = pytest.mark.django_db


_QUEUES = ("chain", "backfill")


def sent() -> dict[str, int]:
    """How many tasks are sent to each queue by one tick."""
    return sent_by(dispatch.dispatch)


def sent_by(action: Callable[[], object]) -> dict[str, int]:
    """How many tasks an action sends to each queue."""
    with redis.Redis.from_url(settings.REDIS_URL) as broker:
        broker.delete(*(f"celery:{name}" for name in _QUEUES))
    action()
    return waiting()


def waiting() -> dict[str, int]:
    """How many tasks wait in each queue."""
    with redis.Redis.from_url(settings.REDIS_URL) as broker:
        return {name: int(broker.llen(f"celery:{name}")) for name in _QUEUES}


def test_a_network_is_looked_at_once_in_its_interval() -> None:
    network(5)
    network(6, active=False)
    assert sent() == {"chain": 1, "backfill": 0}
    assert sent() == {"chain": 0, "backfill": 0}
    assert [*Cursor.objects.values_list("network_id", flat=True)] == [5]


@pytest.mark.parametrize(("ahead", "count"), [(-1.0, 1), (0.3, 1), (0.9, 0)])
def test_what_is_due_before_the_middle_of_the_next_second_is_due_now(
    ahead: float, count: int
) -> None:
    network(5)
    dispatch.dispatch()
    for _ in range(20):
        now = timezone.now()
        Cursor.objects.update(next_poll_at=now + timedelta(seconds=ahead))
        results = sent()
        if timezone.now() - now < timedelta(seconds=0.4):
            break  # a busy machine may take longer, until it is due
    assert results == {"chain": count, "backfill": 0}


def test_a_network_is_looked_at_after_the_clock_was_set_back() -> None:
    network(5)
    dispatch.dispatch()
    later = timezone.now() + timedelta(hours=1)
    Cursor.objects.update(polled_at=later, next_poll_at=later + timedelta(seconds=2))
    assert sent() == {"chain": 1, "backfill": 0}
    assert sent() == {"chain": 0, "backfill": 0}


def test_transactions_are_checked_after_the_clock_was_set_back() -> None:
    network(5)
    posted = Api(MASTER).post("/classes/Transaction", {"hash": "0x" + "5" * 64, "networkId": 5})
    assert posted.status == 201
    dispatch.dispatch()
    for ahead, count in ((timedelta(minutes=10), 0), (timedelta(hours=1), 1)):
        Transaction.objects.update(next_check_at=timezone.now() + ahead)
        dispatch.bring_checks_forward()
        assert sent() == {"chain": count, "backfill": 0}


def test_a_backfill_whose_nodes_do_not_answer_delays_none_of_another_network() -> None:
    with lanes.BACKFILLS.place("5") as has_place:
        assert has_place
        assert sent_by(lambda: backfill(5)) == {"chain": 0, "backfill": 0}
        with lanes.BACKFILLS.place("6") as has_place:
            assert has_place
        assert waiting() == {"chain": 0, "backfill": 0}
    assert waiting() == {"chain": 0, "backfill": 1}


def test_open_backfills_are_sent_to_their_own_queue() -> None:
    for network_id in (5, 6):
        network(network_id)
        for _ in range(3):
            Backfill.objects.create(
                network_id=network_id, address="0x", first_block=0, last_block=9, next_block=0
            )
    Backfill.objects.filter(network_id=6).update(done_at=timezone.now())
    assert sent() == {"chain": 2, "backfill": 1}


def test_nothing_is_sent_while_the_chain_is_paused() -> None:
    network(5)
    Maintenance.objects.create(id=1, message="Later.", since=timezone.now(), chain_paused=True)
    assert sent() == {"chain": 0, "backfill": 0}
    assert Blockchain.objects.count() == 1
    assert not Cursor.objects.exists()


def test_contracts_that_have_changed_are_planned_by_a_backfill() -> None:
    network(5)
    network(6)
    network(7)
    network(8, active=False)
    for network_id in (5, 6, 7, 8):
        Cursor.objects.create(network_id=network_id, number=9, contracts=2, planned=1)
    Cursor.objects.filter(pk=6).update(number=None)  # nothing is history yet
    Cursor.objects.filter(pk=7).update(halted="for a test")
    assert sent()["backfill"] == 1
    Cursor.objects.update(planned=2)
    assert sent()["backfill"] == 0


def registered(network_id: int, **changes: object) -> dict[str, int]:
    """How many tasks are sent when a contract of this network is registered over REST."""
    return sent_by(
        lambda: Api(MASTER).make(
            "SmartContract", name="Gem", address="0x" + "ab" * 20, networkId=network_id, **changes
        )
    )


@pytest.mark.django_db(transaction=True)
def test_a_contract_that_is_registered_is_backfilled_without_waiting_for_a_tick() -> None:
    network(5)
    Cursor.objects.create(network_id=5, number=9)
    assert registered(5) == {"chain": 0, "backfill": 1}


@pytest.mark.django_db(transaction=True)
def test_a_network_that_was_never_polled_is_polled_when_it_has_a_contract() -> None:
    network(5)
    assert registered(5) == {"chain": 1, "backfill": 0}


@pytest.mark.django_db(transaction=True)
def test_nothing_is_started_on_networks_that_are_not_followed() -> None:
    network(5, active=False)
    Cursor.objects.create(network_id=5, number=9)
    assert registered(5) == {"chain": 0, "backfill": 0}
    Blockchain.objects.all().delete()
    assert sent_by(lambda: contracts_changed({"networkId": 5})) == {"chain": 0, "backfill": 0}


@pytest.mark.django_db(transaction=True)
def test_a_backfill_is_started_after_the_commit_alone() -> None:
    network(5)
    Cursor.objects.create(network_id=5, number=9)

    def undone() -> None:
        with suppress(ZeroDivisionError), transaction.atomic():
            contracts_changed({"networkId": 5})
            raise ZeroDivisionError

    def done() -> None:
        with transaction.atomic():
            contracts_changed({"networkId": 5})
            assert waiting() == {"chain": 0, "backfill": 0}

    assert sent_by(undone) == {"chain": 0, "backfill": 0}
    assert sent_by(done) == {"chain": 0, "backfill": 1}
