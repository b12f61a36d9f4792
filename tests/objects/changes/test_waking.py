"""Sleeping readers are woken up, at no cost for others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg

from objects.changes import Reader
from tests.objects.changes.concurrent_writes import uncommitted
from tests.objects.changes.recorder import Watch, everything
from tests.other_process import database_url
from tests.rest import Api


@contextmanager
def listening() -> Iterator[Callable[[float], int]]:
    """Counts the notifications that come within so many seconds, or until there is one."""
    with psycopg.connect(database_url(), autocommit=True) as own:
        own.execute(f"LISTEN {Reader.CHANNEL}")
        yield lambda seconds: len([*own.notifies(timeout=seconds, stop_after=1)])


def asleep(reader: Reader) -> None:
    while reader.sleep() < 0.5:
        assert reader.read().changes == []


def test_writers_notify_only_while_a_reader_sleeps(watch: Watch, master: Api) -> None:
    # Classes of its own: a reader of another test may sleep, for a while after it has ended.
    reader = watch("Chess")
    with listening() as notified:
        master.make("Chess")
        assert notified(0.05) == 0
        assert reader.sleep() < 0.1
        everything(reader)
        asleep(reader)
        master.make("Draughts")
        assert notified(0.05) == 0
        master.make("Chess")
        assert notified(10) == 1
        assert len(everything(reader)) == 1
        master.make("Chess")
        assert notified(0.05) == 0


def test_who_had_written_before_a_reader_fell_asleep_is_looked_for_sooner(
    watch: Watch, master: Api
) -> None:
    reader = watch("Game")
    with uncommitted(lambda: master.make("Game")) as commit:
        while (pause := reader.sleep()) != 0:
            assert pause < 0.1
            everything(reader)
        everything(reader)
        assert 0 < reader.sleep() < 0.5
        commit()
    assert len(everything(reader)) == 1


def test_a_reader_that_ended_in_its_sleep_is_not_notified_for_long(
    watch: Watch, master: Api
) -> None:
    ended = watch("Game")
    asleep(ended)
    reader = watch("Game")
    with listening() as notified:
        master.make("Game")
        assert notified(10) == 1
        assert len(everything(reader)) == 1
        master.make("Game")
        assert notified(0.05) == 0


def test_a_reader_that_sleeps_has_only_writers_of_its_classes_notify(
    watch: Watch, master: Api
) -> None:
    busy, quiet = watch("Game"), watch("Other")
    asleep(quiet)
    with listening() as notified:
        master.make("Game")
        assert notified(0.05) == 0
        assert len(everything(busy)) == 1
        master.make("Other")
        assert notified(10) == 1


def test_a_class_that_is_wanted_by_a_sleeping_reader_is_requested_as_well(
    watch: Watch, master: Api
) -> None:
    reader = watch("Game")
    asleep(reader)
    reader.want(["Game", "Other"])
    asleep(reader)
    with listening() as notified:
        master.make("Other")
        assert notified(10) == 1
    assert len(everything(reader)) == 1
