"""Counting in Redis: windows that slide, and callers at the same moment. Time is given."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import count as numbers

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from backend.limits.exact_counts import Bucket, Counter
from tests.threads import at_once

MINUTE = 60_000
NOON = 1_790_000_000.0
_names = numbers()


@pytest.fixture(scope="module")
def counter() -> Counter:
    from django.conf import settings as service

    return Counter(service.REDIS_URL)


def bucket(limit: int = 3, window: int = MINUTE) -> Bucket:
    return Bucket(f"limits:test:{next(_names)}", limit, window)


def passes(counter: Counter, *buckets: Bucket, now: float | None = NOON) -> bool:
    counts = counter.count([buckets], now=now)
    assert counts is not None
    return counts[0].passes


def test_as_many_pass_as_the_limit_says(counter):
    first = bucket(3)
    assert [passes(counter, first) for _ in range(5)] == [True, True, True, False, False]


def test_buckets_are_counted_apart(counter):
    assert passes(counter, bucket(1))
    assert passes(counter, bucket(1))


def test_the_clock_is_that_of_redis_unless_a_time_is_given(counter):
    first = bucket(2)
    assert [passes(counter, first, now=None) for _ in range(3)] == [True, True, False]


def test_the_window_slides(counter):
    first = bucket(2)
    assert passes(counter, first, now=NOON)
    assert passes(counter, first, now=NOON + 50)
    assert not passes(counter, first, now=NOON + 59)
    assert passes(counter, first, now=NOON + 61)  # the first is a minute old
    assert not passes(counter, first, now=NOON + 62)  # the second isn't
    assert passes(counter, first, now=NOON + 111)


def test_a_refused_request_costs_nothing(counter):
    first = bucket(1)
    assert passes(counter, first, now=NOON)
    assert not any(passes(counter, first, now=NOON + second) for second in range(1, 60))
    assert passes(counter, first, now=NOON + 61)


def test_what_remains_and_when_there_is_more_is_said(counter):
    item = bucket(2)
    first, second, third = (
        counter.count([[item]], now=NOON + offset)[0].levels[0] for offset in (0, 10, 20)
    )
    assert [first.remains, second.remains, third.remains] == [1, 0, 0]
    assert first.more == MINUTE + 1000  # a sixtieth of the window is the measure
    assert second.more == MINUTE + 1000 - 10_000
    assert third.more == MINUTE + 1000 - 20_000


def test_a_request_passes_at_the_time_that_was_said(counter):
    first = bucket(1, window=3_600_000)
    assert passes(counter, first, now=NOON + 17.123)
    refused = counter.count([[first]], now=NOON + 40)[0]
    wait = refused.levels[0].more / 1000
    assert not passes(counter, first, now=NOON + 40 + wait - 0.002)
    assert passes(counter, first, now=NOON + 40 + wait)


def test_a_request_needs_room_in_all_of_its_buckets_or_is_counted_in_none(counter):
    wide, narrow = bucket(5), bucket(1)
    assert passes(counter, wide, narrow)
    assert not passes(counter, wide, narrow)
    assert [passes(counter, wide) for _ in range(5)] == [True, True, True, True, False]


def test_several_requests_are_decided_in_their_order(counter):
    item, other = bucket(2), bucket(1)
    counts = counter.count([[item], [other], [item], [item], [other]], now=NOON)
    assert [count.passes for count in counts] == [True, True, True, False, False]


def test_together_nothing_is_counted_unless_all_pass(counter):
    item, other = bucket(2), bucket(5)
    counts = counter.count([[item], [item], [other], [item]], together=True, now=NOON)
    assert [count.passes for count in counts] == [True, True, True, False]
    counts = counter.count([[item], [item], [other]], together=True, now=NOON)
    assert all(count.passes for count in counts)
    assert not passes(counter, item)


def test_a_bucket_stays_small_and_is_forgotten(counter):
    import redis
    from django.conf import settings as service

    first = bucket(100_000, window=MINUTE)
    for second in range(200):
        counter.count([[first]] * 20, now=NOON + second)
    with redis.Redis.from_url(service.REDIS_URL) as client:
        assert client.hlen(first.key) <= 62
        assert 0 < client.pttl(first.key) <= MINUTE + 1000


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    limit=st.integers(1, 5),
    # Redis forgets a bucket by its own clock: short windows would end while the test runs.
    window=st.sampled_from([60_000, 60_001, 77_777, 3_600_000]),
    steps=st.lists(st.floats(0, 1.3), max_size=40),
)
def test_in_no_period_as_long_as_the_window_more_pass_than_the_limit(counter, limit, window, steps):
    first = bucket(limit, window)
    now, passed = NOON, []
    for step in steps:
        now = round(now + step * window / 1000 / 2, 3)
        if passes(counter, first, now=now):
            passed.append(int(now * 1000))
    assert all(
        later - earlier >= window for earlier, later in zip(passed, passed[limit:], strict=False)
    )


def test_callers_at_the_same_moment_never_pass_the_limit(counter):
    first = bucket(7)
    assert at_once([lambda: passes(counter, first)] * 40).count(True) == 7


def test_processes_share_the_count():
    """Each thread has a counter, and so connections, of its own, as processes have."""
    from django.conf import settings as service

    item, other = bucket(10), bucket(50)

    def work(_: int) -> int:
        mine = Counter(service.REDIS_URL)
        return sum(passes(mine, item, other, now=None) for _ in range(20))

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(work, range(8))) == 10
