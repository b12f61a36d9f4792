"""The index of subscriptions and the matcher agree about everything that queries can say."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from backend.kernel.errors import ServiceError
from objects.core.query.parser import parse_where
from objects.core.query.predicate import predicate
from realtime.core.subscription_index import SubscriptionIndex
from tests.objects.sql import strategies

# What they are drawn from knows of the database.
pytestmark = pytest.mark.django_db


@settings(
    deadline=None,
    max_examples=25,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(things=strategies.things(), data=st.data())
def test_what_the_matcher_finds_the_index_gives(things, data):
    wheres = data.draw(st.lists(strategies.wheres(things), min_size=1, max_size=8))
    index: SubscriptionIndex[int] = SubscriptionIndex()
    results: dict[int, Any] = {}
    for number, where in enumerate(wheres):
        with suppress(ServiceError):
            query = parse_where(where)
            results[number] = predicate(query, class_name="Thing")
            index.add(number, query)
    for thing in things:
        candidates = set(index.candidates(thing))
        for number, finds in results.items():
            assert number in candidates or not finds(thing), wheres[number]
