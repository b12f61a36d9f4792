"""Which archived WAL a restore reads, and which can be removed."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest

from backend.operations.backup.problems import BackupError
from backend.operations.wal_archive import catalog
from backend.operations.wal_archive.catalog import Lineage, Span, plan, read, superfluous
from tests.random_seeds import DRAWN, seed_of

BEGIN = datetime(2026, 11, 1, tzinfo=UTC)
STEP = timedelta(hours=7)


class History:
    """The names that an instance has stored: a lineage after the other, each with WAL from its
    beginning to its end and copies in between."""

    def __init__(self, seed: int) -> None:
        chance = random.Random(seed)
        self.now = BEGIN
        self.names: list[str] = []
        self.current = ""
        position = 0
        for number in range(chance.randint(1, 4)):
            self.current = catalog.lineage_prefix("one", f"lineage_{number}")
            lineage = Lineage(self.current)
            self.names.append(f"{self.current}begun")
            for _ in range(chance.randint(0, 30)):
                self.now += STEP
                start, position = position, position + chance.randint(1, 99)
                self.names.append(lineage.piece_name(Span(start, position, self.now)))
                if chance.random() < 0.2:
                    base = Span(position, position + chance.randint(0, 150), self.now)
                    self.names.append(lineage.copy_name(base.start))
                    if chance.random() < 0.9:  # it was killed otherwise
                        self.names.append(lineage.base_name(base))
            position += chance.randint(0, 10)
        self.horizon = self.now - STEP * chance.randint(0, 60)

    def restorable(self, names: list[str], until: datetime) -> set[str] | None:
        """What a restore of that moment reads, or None."""
        try:
            chosen = plan(read(names), "one", until)
        except BackupError:
            return None
        lineage = chosen.lineage
        return {
            lineage.base_name(chosen.base),
            lineage.copy_name(chosen.base.start),
            *map(lineage.piece_name, chosen.pieces),
        }


@pytest.mark.parametrize("case", [*range(25), DRAWN])
def test_each_moment_since_the_horizon_stays_restorable(case):
    """Also if the removal is killed between any two names."""
    seed = seed_of(case)
    history = History(seed)
    names, oldest = superfluous(
        read(history.names).get("one", []), history.current, history.horizon
    )
    stop = random.Random(seed).randint(0, len(names))
    left = [name for name in history.names if name not in names[:stop]]
    moments = [history.now - STEP * count for count in range(120)]
    for moment in [*moments, None]:
        needed = history.restorable(history.names, moment)
        if needed is None or (moment is not None and moment < history.horizon):
            continue
        assert history.restorable(left, moment) == needed
        assert needed <= {*left}
    # What was left by the killed removal is removed by the next.
    again, _ = superfluous(read(left).get("one", []), history.current, history.horizon)
    ends = {lineage.prefix: lineage.end for lineage in read(history.names).get("one", [])}
    for lineage in read(left).get("one", []):
        assert lineage.prefix != history.current or lineage.end == ends[lineage.prefix]
    assert {*names[stop:]} <= {*again} | {name for name in names if name.endswith("begun")}
    if oldest is not None and names:
        rest = read([name for name in left if name not in again]).get("one", [])
        for lineage in rest:
            if oldest in lineage.bases:
                assert all(piece.end > oldest.start for piece in lineage.pieces[:-1])


def names_of(*, bases: list[tuple[int, int, int]], pieces: list[tuple[int, int, int]]) -> list[str]:
    lineage = Lineage(catalog.lineage_prefix("one", "a"))
    names = []
    for start, end, hour in bases:
        base = Span(start, end, BEGIN + timedelta(hours=hour))
        names += [lineage.base_name(base), lineage.copy_name(start)]
    for start, end, hour in pieces:
        names.append(lineage.piece_name(Span(start, end, BEGIN + timedelta(hours=hour))))
    return names


WHOLE = [(0, 10, 0), (10, 30, 1), (30, 40, 2), (40, 50, 3)]


def test_a_restore_reads_the_newest_copy_before_the_moment_and_what_follows():
    names = names_of(bases=[(5, 12, 1), (35, 38, 2)], pieces=WHOLE)
    early = plan(read(names), "", BEGIN + timedelta(hours=1.5))
    assert (early.base.start, [piece.start for piece in early.pieces]) == (5, [0, 10, 30])
    end = plan(read(names), "", None)
    assert (end.base.start, [piece.start for piece in end.pieces]) == (35, [30, 40])
    assert end.end == BEGIN + timedelta(hours=3)


def test_a_pass_that_was_killed_promises_no_moment():
    """Its pieces repeat the time of the pass before."""
    names = names_of(bases=[(5, 12, 1)], pieces=[(0, 10, 0), (10, 30, 1), (30, 40, 1)])
    assert plan(read(names), "", None).end == BEGIN + timedelta(hours=1)
    with pytest.raises(BackupError, match="nothing after 2026-11-01T01:00:00Z"):
        plan(read(names), "", BEGIN + timedelta(hours=1, seconds=1))


@pytest.mark.parametrize(
    ("names", "instance", "hour", "reason"),
    [
        ([], "", None, "no WAL that this key can read"),
        (names_of(bases=[], pieces=WHOLE), "", None, "no complete copy"),
        (names_of(bases=[(45, 60, 3)], pieces=WHOLE), "", None, "no complete copy"),
        (names_of(bases=[(5, 12, 1)], pieces=WHOLE), "two", None, "no instance two: one"),
        (names_of(bases=[(5, 12, 1)], pieces=WHOLE), "", 0.5, "begins at 2026-11-01T01:00:00Z"),
        (names_of(bases=[(5, 12, 1)], pieces=WHOLE), "", 4, "nothing after 2026-11-01T03:00:00Z"),
        (
            names_of(bases=[(5, 12, 1)], pieces=[*WHOLE[:2], WHOLE[3]]),
            "",
            None,
            "WAL is missing in wal/one/a/log after 2026-11-01T01:00:00Z",
        ),
        (
            [*names_of(bases=[(5, 12, 1)], pieces=WHOLE), "wal/two/a/begun"],
            "",
            None,
            "several instances: name one, as --restore wal/NAME: one .*, two .empty.",
        ),
    ],
)
def test_what_the_archive_does_not_have_is_refused(names, instance, hour, reason):
    until = None if hour is None else BEGIN + timedelta(hours=hour)
    with pytest.raises(BackupError, match=reason):
        plan(read(names), instance, until)


def test_a_moment_before_a_gap_can_be_restored():
    names = names_of(bases=[(5, 12, 1)], pieces=[*WHOLE[:2], WHOLE[3]])
    assert plan(read(names), "", BEGIN + timedelta(hours=1)).pieces[-1].end == 30


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("yesterday", "is no time"),
        ("2026-11-28T10:00:00", "has no time zone"),
        ("2999-01-01T00:00:00Z", "is in the future"),
    ],
)
def test_a_time_that_is_none_is_refused(text, reason):
    with pytest.raises(BackupError, match=reason):
        catalog.moment(text)


def test_names_of_others_are_ignored():
    strange = ["wal/", "wal/one/a/log/x", "archive.tar", "wal/one/files/ab", "wal/../a/begun"]
    assert read(strange) == {}
