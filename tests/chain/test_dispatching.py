"""Each second the tasks are sent that are due, network by network."""

from __future__ import annotations

from datetime import timedelta

import pytest
import redis
from django.conf import settings
from django.utils import timezone

from chain import dispatching
from chain.models import Backfill, Blockchain, Cursor
from objects.models import Maintenance
from tests.chain.gateway.networks import network

pytestmark = pytest.mark.django_db


def sent() -> dict[str, int]:
    """How many tasks are sent to each queue by one tick."""
    with redis.Redis.from_url(settings.REDIS_URL) as broker:
        names = ("chain", "backfill")
        for name in names:
            broker.delete(f"celery:{name}")
        dispatching.dispatch()
        return {name: int(broker.llen(f"celery:{name}")) for name in names}


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
    dispatching.dispatch()
    for _ in range(20):
        now = timezone.now()
        Cursor.objects.update(next_poll_at=now + timedelta(seconds=ahead))
        found = sent()
        if timezone.now() - now < timedelta(seconds=0.4):
            break  # a busy machine may take longer, until it is due
    assert found == {"chain": count, "backfill": 0}


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
