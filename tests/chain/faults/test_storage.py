"""The database has no room, or says no: nothing is half stored, and reading goes on afterwards
(F19)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from django.db import connection

from backend.kernel.errors import ServiceUnavailable
from chain.models import Block, OutboxEntry
from tests.chain.indexed_network import Network, listen, network
from tests.evm.node import Node

pytestmark = pytest.mark.django_db

# What PostgreSQL says when a disk is full, when it is stopped, and when it has no memory.
SAYINGS = {"disk_full": "53100", "admin_shutdown": "57P01", "out_of_memory": "53200"}


@pytest.fixture
def world(node: Node) -> Iterator[Network]:
    """A network with a contract that is listened to, read up to its head."""
    node.mine(3)
    with network(node) as world:
        listen(world)
        world.follow()
        yield world


@contextmanager
def failing(table: str, code: str) -> Iterator[None]:
    """Let every row that is put into a table fail with this code."""
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS"
            f" $$ BEGIN RAISE EXCEPTION 'no room' USING ERRCODE = '{code}'; END $$;"
            f"CREATE TRIGGER no_room BEFORE INSERT ON {table}"
            " FOR EACH ROW EXECUTE FUNCTION no_room()"
        )
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP FUNCTION no_room CASCADE")


@pytest.mark.parametrize("table", ["chain_contract_event", "chain_outbox", "chain_block"])
@pytest.mark.parametrize("code", SAYINGS.values(), ids=SAYINGS)
def test_what_can_t_be_stored_leaves_nothing_half_stored(
    world: Network, table: str, code: str
) -> None:
    world.mint(2)
    world.mint(3)
    before = (world.cursor.number, Block.objects.count(), OutboxEntry.objects.count())

    # The task fails; the next one is sent in any case.
    with failing(table, code), pytest.raises((psycopg.Error, ServiceUnavailable)):
        world.follow()

    results = (world.cursor.number, Block.objects.count(), OutboxEntry.objects.count())
    assert results == before
    assert world.shown() == world.told() == set()
    world.follow()
    world.check()
    assert len(world.shown()) == 5
