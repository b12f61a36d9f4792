"""Notifications of PostgreSQL, and what happens when their connection is lost."""

from __future__ import annotations

import asyncio
import threading

import pytest
from django.db import connection, connections

from realtime.process.notifications import Listener
from realtime.process.process import Process
from tests.realtime.in_process import eventually, run

pytestmark = pytest.mark.django_db(transaction=True)


async def sql(text: str, *values: object) -> None:
    """A statement in a thread and with a connection of its own."""

    def execute() -> None:
        with connection.cursor() as cursor:
            cursor.execute(text, values)
        connections.close_all()

    thread = threading.Thread(target=execute)
    thread.start()
    await asyncio.to_thread(thread.join)


class Woken:
    def __init__(self, listener: Listener, channel: str) -> None:
        self.by: list[str | None] = []
        self.end = listener.subscribe(channel, self.by.append)


def test_whoever_asked_is_woken_by_the_channel_it_asked_for():
    async def scenario() -> None:
        listener = Process.current().listener
        item, other = Woken(listener, "one"), Woken(listener, "other")
        await eventually(lambda: item.by and other.by)
        assert (item.by, other.by) == ([None], [None])
        await sql("SELECT pg_notify('one', %s)", "1 2")
        await eventually(lambda: len(item.by) > 1)
        assert (item.by, other.by) == ([None, "1 2"], [None])
        item.end()
        item.end()
        await sql("SELECT pg_notify('one', 'x'), pg_notify('other', '')")
        await eventually(lambda: len(other.by) > 1)
        assert (item.by, other.by) == ([None, "1 2"], [None, ""])

    run(scenario())


def test_a_channel_is_listened_to_while_others_are():
    async def scenario() -> None:
        listener = Process.current().listener
        item = Woken(listener, "one")
        await eventually(lambda: item.by)
        late = Woken(listener, 'odd "name"; --')
        await eventually(lambda: late.by)
        await sql("SELECT pg_notify(%s, 'here')", 'odd "name"; --')
        await eventually(lambda: len(late.by) > 1)
        assert late.by == [None, "here"]
        assert listener.connected == 1

    run(scenario())


def test_nothing_that_was_committed_before_the_first_waking_has_to_be_missed():
    """Who is woken with None reads; each later notification wakes it again."""

    async def scenario() -> None:
        listener = Process.current().listener
        woken = Woken(listener, "channel")
        await eventually(lambda: woken.by)
        for number in range(20):
            await sql("SELECT pg_notify('channel', %s)", str(number))
        await eventually(lambda: len(woken.by) == 21)
        assert woken.by == [None, *map(str, range(20))]

    run(scenario())


def test_a_lost_connection_is_made_again_and_everybody_is_woken():
    async def scenario() -> None:
        listener = Process.current().listener
        woken = Woken(listener, "channel")
        await eventually(lambda: woken.by)
        await sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name = 'backend listener' AND datname = current_database()"
        )
        await eventually(lambda: len(woken.by) > 1)
        assert woken.by == [None, None]
        await sql("SELECT pg_notify('channel', 'again')")
        await eventually(lambda: len(woken.by) > 2)
        assert listener.connected == 2
        # The process has been ready all along: its parts poll meanwhile.
        assert Process.current().is_ready

    run(scenario())


def test_whoever_fails_when_it_is_woken_keeps_nobody_else_from_it():
    async def scenario() -> None:
        listener = Process.current().listener

        def fail(payload: str | None) -> None:
            raise ValueError("as it was told")

        listener.subscribe("channel", fail)
        woken = Woken(listener, "channel")
        await eventually(lambda: woken.by)
        await sql("SELECT pg_notify('channel', 'x')")
        await eventually(lambda: len(woken.by) > 1)

    run(scenario())
