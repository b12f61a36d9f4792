"""The index of subscriptions leaves out only what a change doesn't concern."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.kernel.errors import ServiceError
from objects.core.query.parser import parse_where
from objects.core.query.predicate import predicate
from realtime.core.intervals import Intervals
from realtime.core.subscription_index import MAX_EXAMINED, MAX_GUARDS, SubscriptionIndex


def date(day: int) -> dict[str, str]:
    return {"__type": "Date", "iso": f"2026-01-{day:02}T00:00:00.000Z"}


def user(object_id: str) -> dict[str, str]:
    return {"__type": "Pointer", "className": "_User", "objectId": object_id}


def is_candidate(where: dict[str, Any], *images: dict[str, Any]) -> bool:
    """Whether a subscription is a candidate for these images."""
    index: SubscriptionIndex[str] = SubscriptionIndex()
    index.add("it", parse_where(where))
    return index.candidates(*({"objectId": "o", **image} for image in images)) == ["it"]


@pytest.mark.parametrize(
    ("where", "image"),
    [
        ({"room": "a"}, {"room": "b"}),
        ({"room": "a"}, {}),
        ({"score": 1}, {"score": 2}),
        ({"owner": user("u1")}, {"owner": user("u2")}),
        ({"day": date(1)}, {"day": date(2)}),
        ({"objectId": "p"}, {}),
        ({"info.room": "a"}, {"info": {"room": "b"}}),
        ({"room": {"$in": ["a", "b"]}}, {"room": "c"}),
        ({"tags": {"$all": ["a", "b"]}}, {"tags": ["c"]}),
        ({"room": "a", "score": {"$gt": 1}}, {"room": "b", "score": 2}),
        ({"$or": [{"room": "a"}, {"score": 1}]}, {"room": "b", "score": 2}),
        ({"$and": [{"score": {"$gt": 0}}, {"room": "a"}]}, {"room": "b", "score": 2}),
        ({"score": {"$gte": 1, "$lt": 5}}, {"score": 0.5}),
        ({"score": {"$gte": 1, "$lt": 5}}, {"score": 6}),
        ({"score": {"$gt": 1}}, {"score": 0}),
        ({"score": {"$gt": 1}}, {"score": "2"}),
        ({"score": {"$gt": 1}}, {}),
        ({"name": {"$lt": "b"}}, {"name": "c"}),
        ({"day": {"$gte": date(3)}}, {"day": date(2)}),
        ({"score": {"$gt": 1}, "name": {"$gt": "a", "$lt": "c"}}, {"score": 2, "name": "d"}),
    ],
)
def test_a_subscription_is_left_out_for_other_values(where, image):
    assert not is_candidate(where, image)


@pytest.mark.parametrize(
    ("where", "image"),
    [
        ({"room": "a"}, {"room": "a"}),
        ({"tags": "a"}, {"tags": ["b", "a"]}),
        ({"tags": ["a"]}, {"tags": ["a"]}),
        ({"score": 1}, {"score": 1.0}),
        ({"score": 10**23}, {"score": 1e23}),
        ({"score": 0}, {"score": -0.0}),
        ({"score": 0.1}, {"score": 0.1}),
        ({"owner": user("u1")}, {"owners": [], "owner": user("u1")}),
        ({"owner": user("u1")}, {"owner": [user("u2"), user("u1")]}),
        ({"day": date(1)}, {"day": date(1)}),
        ({"createdAt": date(1)}, {"createdAt": date(1)["iso"]}),
        ({"info.room": "a"}, {"info": [{"room": "b"}, {"room": "a"}]}),
        ({"info.0.room": "a"}, {"info": [{"room": "a"}]}),
        ({"info": {"a": 1, "b": 2}}, {"info": {"b": 2, "a": 1}}),
        ({"room": None}, {}),
        ({"room": {"$in": ["a", None]}}, {}),
        ({"room": {"$ne": "a"}}, {"room": "b"}),
        ({"$or": [{"room": "a"}, {"score": {"$gt": 1}}]}, {"score": 2}),
        ({"$nor": [{"room": "a"}]}, {"room": "b"}),
        ({}, {}),
        ({"score": {"$gte": 1, "$lt": 5}}, {"score": 1.0}),
        ({"score": {"$gte": 1, "$lt": 5}}, {"score": 4.5}),
        ({"score": {"$gte": 1, "$lt": 5}}, {"score": [0, 7]}),
        ({"day": {"$lte": date(3), "$gt": date(1)}}, {"day": date(2)}),
        ({"createdAt": {"$gt": date(1)}}, {"createdAt": date(2)["iso"]}),
        ({"on": {"$lt": True}}, {"on": False}),
        ({"room": {"$in": [f"r{n}" for n in range(MAX_GUARDS + 1)]}}, {"room": "r3"}),
    ],
)
def test_a_subscription_is_looked_at_where_it_may_match(where, image):
    assert predicate(parse_where(where))({"objectId": "o", **image})
    assert is_candidate(where, image)


def test_both_images_of_a_change_count():
    assert is_candidate({"room": "a"}, {"room": "a"}, {"room": "b"})
    assert is_candidate({"room": "a"}, {"room": "b"}, {"room": "a"})
    assert not is_candidate({"room": "a"}, {"room": "b"}, {"room": "c"})


def test_each_subscription_is_given_once_and_none_after_it_is_removed():
    index: SubscriptionIndex[int] = SubscriptionIndex()
    wheres = [{"room": "a"}, {"room": {"$in": ["a", "b"]}}, {}, {"$or": [{"room": "a"}, {"n": 1}]}]
    for number, where in enumerate(wheres):
        index.add(number, parse_where(where))
    image = {"objectId": "o", "room": ["a", "b"], "n": 1}
    assert sorted(index.candidates(image, image)) == [0, 1, 2, 3]
    index.add(0, parse_where({"room": "c"}))
    assert sorted(index.candidates(image)) == [1, 2, 3]
    for number in (0, 1, 2, 3, 3):
        index.remove(number)
    assert index.candidates(image) == []
    assert len(index) == 0


def test_a_change_visits_only_subscriptions_with_its_value():
    index: SubscriptionIndex[int] = SubscriptionIndex()
    for number in range(1000):
        index.add(number, parse_where({"room": f"room {number % 100}", "score": {"$gt": number}}))
    hit = index.candidates({"objectId": "o", "room": "room 7"})
    assert hit == [number for number in range(1000) if number % 100 == 7]


def test_of_many_ranges_only_those_around_the_value_are_visited():
    index: SubscriptionIndex[int] = SubscriptionIndex()
    for number in range(1000):
        index.add(number, parse_where({"score": {"$gte": number, "$lt": number + 3}}))
    assert sorted(index.candidates({"objectId": "o", "score": 500.5})) == [498, 499, 500]
    for number in range(499):
        index.remove(number)
    assert sorted(index.candidates({"objectId": "o", "score": 500.5})) == [499, 500]
    assert index.candidates({"objectId": "o", "score": 0}) == []


ends = st.none() | st.integers(0, 12)
steps = st.lists(
    st.tuples(
        st.sampled_from(["add", "add", "add", "remove", "at"]), ends, ends, st.integers(0, 90)
    ),
    max_size=150,
)


@settings(deadline=None, max_examples=60)
@given(steps)
def test_a_value_lies_in_the_intervals_around_it(steps):
    intervals: Intervals[int] = Intervals()
    stored: dict[int, tuple[int | None, int | None]] = {}
    for number, (what, low, high, item) in enumerate(steps):
        if what == "add":
            stored[number] = (low, high)
            intervals.add(number, low, high)
        elif what == "remove" and item in stored:
            del stored[item]
            intervals.remove(item)
        else:
            value = item % 13
            assert sorted(intervals.at(value)) == [
                entry
                for entry, (start, end) in stored.items()
                if (start is None or start <= value) and (end is None or value <= end)
            ]
    assert list(intervals) == list(stored)


# -- Against the predicate alone ------------------------------------------------------------------

days = st.integers(1, 2)
plain = (
    st.sampled_from(["a", "b", "", "1", 0, 1, -1, 1.0, 0.5, 1e23, 10**23, True, False, None])
    | st.builds(date, days)
    | st.builds(user, st.sampled_from(["u1", "u2"]))
    | st.just({"__type": "Bytes", "base64": "AA=="})
)
values = plain | st.lists(plain, max_size=2) | st.dictionaries(st.sampled_from("ab"), plain)
fields = st.sampled_from(["f", "g"])
paths = st.sampled_from(["f", "g", "f.a", "f.b", "f.0", "g.a", "objectId"])
objects = st.dictionaries(fields, values | st.lists(values, max_size=2), max_size=2).map(
    lambda is_candidate: {"objectId": "a", **is_candidate}
)
constraints = (
    values.filter(lambda value: not isinstance(value, dict) or "__type" in value)
    | st.builds(lambda items: {"$in": items}, st.lists(plain, max_size=3))
    | st.builds(lambda items: {"$all": items}, st.lists(plain, max_size=2))
    | st.builds(lambda item: {"$ne": item}, plain)
    | st.builds(lambda wanted: {"$exists": wanted}, st.booleans())
    | st.dictionaries(
        st.sampled_from(["$lt", "$lte", "$gt", "$gte"]),
        plain.filter(lambda value: isinstance(value, str | int | float)) | st.builds(date, days),
        min_size=1,
        max_size=2,
    )
)
wheres = st.recursive(
    st.dictionaries(paths, constraints, max_size=2),
    lambda inner: st.dictionaries(
        st.sampled_from(["$or", "$and", "$nor"]), st.lists(inner, min_size=1, max_size=3)
    ),
    max_leaves=4,
)


@settings(deadline=None, max_examples=60)
@given(st.lists(wheres, min_size=1, max_size=6), st.lists(objects, min_size=1, max_size=3))
def test_index_and_predicate_find_what_the_predicate_finds(asked, images):
    queries = {}
    for number, where in enumerate(asked):
        with suppress(ServiceError):
            queries[number] = parse_where({"$and": [where]})
    index: SubscriptionIndex[int] = SubscriptionIndex()
    for number, query in queries.items():
        index.add(number, query)
    for image in images:
        expected = {number for number, query in queries.items() if predicate(query)(image)}
        assert expected <= set(index.candidates(image))


def test_after_many_elements_whoever_asks_about_a_path_may_find_the_object():
    index: SubscriptionIndex[str] = SubscriptionIndex()
    for name, where in (
        ("first", {"a": 1}),
        ("second", {"b": 1}),
        ("range", {"c": {"$gt": 5}}),
    ):
        index.add(name, parse_where(where))
    assert index.candidates({"objectId": "o", "a": [0] * 1000, "b": 2, "c": 1}) == []
    long = {"objectId": "o", "a": [0] * (MAX_EXAMINED + 1), "b": 2, "c": 1}
    assert index.candidates(long) == ["second", "range"]
