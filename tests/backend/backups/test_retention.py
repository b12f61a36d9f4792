"""Which backups stay."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.backups.retention import removable
from backend.settings.areas.files import Keep

START = datetime(2026, 1, 1, tzinfo=UTC)
TIMES = st.integers(0, 3 * 365 * 24).map(lambda hours: START + timedelta(hours=hours))
ARCHIVES = st.sets(TIMES, max_size=60).map(lambda times: {f"{at:%Y%m%dT%H}": at for at in times})
KEEP = st.lists(
    st.tuples(st.sampled_from("hdwmy"), st.integers(1, 20)),
    min_size=1,
    unique_by=lambda pair: pair[0],
).map(tuple)


@st.composite
def places(draw: st.DrawFn) -> tuple[dict[str, datetime], set[str], set[str]]:
    """Archives, of which some were verified, some failed, and of some nothing is known."""
    archives = draw(ARCHIVES)
    words = {name: draw(st.sampled_from(("good", "bad", "unknown"))) for name in archives}
    return (
        archives,
        {name for name, word in words.items() if word == "good"},
        {name for name, word in words.items() if word == "bad"},
    )


def daily(days: int) -> dict[str, datetime]:
    return {f"{day:03}": START + timedelta(days=day, hours=3) for day in range(days)}


@pytest.mark.parametrize(
    ("keep", "staying"),
    [
        ((("d", 3),), ["097", "098", "099"]),
        # Sundays are the last days of weeks: 3 and 10 April are days 94 and 101.
        ((("w", 3),), ["087", "094", "099"]),
        ((("m", 6),), ["030", "058", "089", "099"]),
        ((("d", 2), ("m", 2)), ["089", "098", "099"]),
    ],
)
def test_the_newest_of_each_period_stays(keep: Keep, staying: list[str]) -> None:
    archives = daily(100)
    gone = removable(archives, verified=archives, failed=(), keep=keep)
    assert sorted(archives.keys() - set(gone)) == staying


def test_a_pause_of_the_schedule_loses_nothing() -> None:
    archives = daily(7) | {"new": START + timedelta(days=500)}
    assert removable(archives, verified=archives, failed=(), keep=(("d", 8),)) == []


@given(places(), KEEP)
def test_the_newest_good_one_always_stays(place, keep: Keep) -> None:
    archives, good, bad = place
    gone = removable(archives, verified=good, failed=bad, keep=keep)
    assert len(gone) == len(set(gone))
    assert set(gone) <= archives.keys()
    if not good:
        assert gone == []
    else:
        newest = max(good, key=lambda name: archives[name])
        assert newest not in gone
        # Bad ones that are newer may be all that is known of a fault.
        assert all(archives[name] < archives[newest] for name in bad & set(gone))


@given(places(), KEEP)
def test_others_never_make_a_good_one_go(place, keep: Keep) -> None:
    archives, good, bad = place
    alone = {name: archives[name] for name in good}
    gone = removable(archives, verified=good, failed=bad, keep=keep)
    assert good & set(gone) <= set(removable(alone, verified=good, failed=(), keep=keep))


@given(places(), KEEP)
def test_own_ones_never_make_those_of_a_lost_instance_go(place, keep: Keep) -> None:
    archives, good, bad = place
    lost = {name: archives[name] for name in archives.keys() - good - bad}
    gone = removable(archives, verified=good, failed=bad, keep=keep)
    assert lost.keys() & set(gone) <= set(removable(lost, verified=lost, failed=(), keep=keep))


@given(ARCHIVES, KEEP)
def test_each_period_that_counts_has_one(archives: dict[str, datetime], keep: Keep) -> None:
    gone = removable(archives, verified=archives, failed=(), keep=keep)
    staying = {name: at for name, at in archives.items() if name not in gone}
    days = dict(keep).get("d", 0)
    newest = sorted({at.date() for at in archives.values()}, reverse=True)[:days]
    assert {at.date() for at in staying.values()} >= set(newest)
    assert len(staying) <= sum(count for _, count in keep) + 1
    # What stays is stable: nothing goes when the same is done again.
    assert removable(staying, verified=staying, failed=(), keep=keep) == []
