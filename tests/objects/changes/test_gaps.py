"""Readers that missed changes notice it, and old changes are removed."""

from __future__ import annotations

import pytest

from objects.changes import WANTED_FOR
from tests.objects.changes.concurrent_writes import age_of_marks, sql, uncommitted
from tests.objects.changes.recorder import Watch, everything, recorded
from tests.rest import Api


def test_a_reader_that_was_suspended_learns_that_it_has_missed_something(
    watch: Watch, master: Api
) -> None:
    reader = watch("Game", "Other")
    sql("UPDATE objects_interest SET until = clock_timestamp() WHERE class_name = 'Game'")
    master.make("Game", n=1)
    everything(reader, gap={"Game"})
    master.make("Game", n=2)
    assert recorded(reader) == [(None, {"n": 2})]


def test_another_reader_may_have_restarted_what_ran_out(watch: Watch, master: Api) -> None:
    reader = watch("Game")
    sql("UPDATE objects_interest SET until = clock_timestamp()")
    watch("Game")
    everything(reader, gap={"Game"})
    assert everything(reader) == []


def test_what_is_prolonged_in_time_has_no_gap(watch: Watch, master: Api) -> None:
    reader = watch("Game")
    for _ in range(3):
        sql("UPDATE objects_interest SET until = until - %s * interval '1 s'", WANTED_FOR / 2)
        reader.want({"Game"})
        master.make("Game")
        assert len(everything(reader)) == 1


def test_a_crash_of_the_server_is_a_gap(watch: Watch, master: Api) -> None:
    reader = watch("Game")
    master.make("Game", n=1)
    # Unlogged tables are empty after one.
    sql("TRUNCATE objects_interest, objects_change, objects_change_trim")
    everything(reader, gap={"Game"})
    master.make("Game", n=2)
    assert recorded(reader) == [(None, {"n": 2})]


def test_what_has_been_there_for_a_while_is_removed_and_who_reads_in_time_misses_nothing(
    watch: Watch, master: Api
) -> None:
    master.make("Game", n="first")
    reader, slow = watch("Game"), watch("Game")
    with uncommitted(lambda: master.make("Game", n="long")) as commit:
        reader.trim()
        master.make("Game", n="short")
        for _ in range(3):
            reader.trim()  # too early
        assert len(everything(reader)) == 1
        age_of_marks(61)
        reader.trim()
        assert sql("SELECT count(*) FROM objects_change") == [(1,)]
        assert everything(reader) == []
        age_of_marks(61)
        reader.trim()
        assert sql("SELECT count(*) FROM objects_change") == [(0,)]
        commit()
    assert [after["n"] for _, after in recorded(reader)] == ["long"]
    everything(slow, gap={"Game"})
    age_of_marks(61)
    reader.trim()
    assert everything(slow) == everything(reader) == []


def test_what_the_last_reader_has_left_is_removed_in_the_background(
    watch: Watch, master: Api
) -> None:
    from objects.tasks import remove_expired

    watch("Game")
    master.make("Game", secret="gone soon")
    for _ in range(3):
        remove_expired()
        age_of_marks(3600)
        sql("UPDATE objects_interest SET until = until - interval '1 h'")
    assert sql("SELECT count(*) FROM objects_change") == [(0,)]
    assert sql("SELECT count(*) FROM objects_interest") == [(0,)]


def test_classes_that_no_one_names_any_more_are_let_go_without_a_gap(
    watch: Watch, master: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    from objects.changes import reader as module

    now = 1000.0
    monkeypatch.setattr(module.time, "monotonic", lambda: now)
    reader = watch("Game", "Other")
    for _ in range(3):
        now += WANTED_FOR / 3
        sql("UPDATE objects_interest SET until = until - %s * interval '1 s'", WANTED_FOR / 3)
        reader.want({"Game"})
        assert everything(reader) == []
    master.make("Game")
    master.make("Other")
    assert len(everything(reader)) == 1
