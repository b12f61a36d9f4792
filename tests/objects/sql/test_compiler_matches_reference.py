"""The SQL reading of the query language is its in-memory reading.

``EXAMPLES=3000 pytest tests/objects/sql`` looks longer than the suite does.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from objects.core.query.parser import parse_order, parse_where
from objects.core.query.tree import OneOfIds, ReadableBy, WritableBy, all_of
from tests.objects.sql import strategies
from tests.objects.sql.world import LEARNED, THINGS, World, ids

relaxed = settings(
    deadline=None,
    max_examples=int(os.environ.get("EXAMPLES", "60")),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@pytest.mark.parametrize("stored", THINGS)
@relaxed
@given(
    things=strategies.things(),
    others=strategies.other_objects(),
    related=strategies.relations(),
    data=st.data(),
)
@pytest.mark.slow
def test_sql_finds_what_the_predicate_finds(world: World, stored, things, others, related, data):
    world.fill(things, others, related)
    for where in data.draw(st.lists(strategies.wheres(things), min_size=1, max_size=8)):
        query = parse_where(where)
        expected = ids(world.in_memory(query))
        assert sorted(world.in_sql(query, THINGS[stored])) == sorted(expected), where


@relaxed
@given(
    things=strategies.things(),
    orders=st.lists(strategies.orders, min_size=1, max_size=4),
    equal=st.fixed_dictionaries(
        {},
        optional={
            name: strategies.BY_FIELD[name]
            for name in ("name", "title", "score", "owner", "flag", "when")
        },
    ),
    ranged=st.sampled_from(["name", "score", "when"]),
    operator=st.sampled_from(["$gt", "$gte", "$lt", "$lte"]),
    data=st.data(),
)
def test_equality_that_leads_into_a_learned_index_finds_and_sorts_the_same(
    world: World, things, orders, equal, ranged, operator, data
):
    world.fill(things)
    limit = data.draw(strategies.BY_FIELD[ranged])
    for where in (equal, equal | {ranged: {operator: limit}}):
        query = parse_where(where)
        for order in orders:
            keys = parse_order(order)
            expected = ids(world.in_memory(query, order=keys))
            assert world.in_sql(query, LEARNED, keys) == expected, (where, order)


@pytest.mark.parametrize("stored", THINGS)
@relaxed
@given(things=strategies.things(), orders=st.lists(strategies.orders, min_size=1, max_size=4))
def test_sql_sorts_as_objects_in_memory_are_sorted(world: World, stored, things, orders):
    world.fill(things)
    everything = parse_where(None)
    for order in orders:
        keys = parse_order(order)
        expected = ids(world.in_memory(everything, order=keys))
        assert world.in_sql(everything, THINGS[stored], keys) == expected, order


@pytest.mark.parametrize("stored", THINGS)
@relaxed
@given(things=strategies.things(), point=strategies.geo_points)
def test_sql_sorts_by_distance(world: World, stored, things, point):
    world.fill(things)
    query = parse_where({"place": {"$nearSphere": point}})
    assert world.in_sql(query, THINGS[stored]) == ids(world.in_memory(query))


@pytest.mark.parametrize("stored", THINGS)
@relaxed
@given(
    things=strategies.things(),
    asking=st.frozensets(st.sampled_from(["*", "u1", "u2", "role:admin", "role:x"])),
    chosen=st.frozensets(st.sampled_from(strategies.IDS)),
    where=strategies.wheres(),
)
def test_conditions_of_policies_agree(world: World, stored, things, asking, chosen, where):
    world.fill(things)
    for condition in (ReadableBy(asking), WritableBy(asking), OneOfIds(chosen)):
        query = all_of(condition, parse_where(where))
        matches = world.in_sql(query, THINGS[stored])
        assert sorted(matches) == sorted(ids(world.in_memory(query)))


def test_the_text_of_the_sql_depends_on_the_shape_of_the_query_only():
    from objects.sql.compiler import compile_query

    shapes = [
        ({"score": 1}, {"score": -(2**70)}),
        ({"score": {"$gt": 1}}, {"score": {"$gt": 0.5}}),
        ({"name": {"$in": ["a", "b"]}}, {"name": {"$in": ["c", "d", "e"]}}),
        ({"tags": {"$in": ["a", 1, None]}}, {"tags": {"$in": ["c", None, 2]}}),
        ({"info.a": "x"}, {"info.b.c": 5}),
        ({"name": {"$regex": "^a"}}, {"name": {"$regex": "^'; drop"}}),
        ({"tags": {"$all": [1, 2]}}, {"tags": {"$all": ["x"]}}),
    ]
    for first, second in shapes:
        texts = {
            compile_query(parse_where(where), THINGS["in data"]).text for where in (first, second)
        }
        assert len(texts) == 1, first
