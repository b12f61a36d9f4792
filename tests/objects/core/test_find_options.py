"""The parameters of a find: what they mean, and that nothing is guessed."""

from __future__ import annotations

import pytest

from backend.kernel.errors import ServiceError
from objects.core.query.options import FindLimits, parse_find_options
from objects.core.query.tree import Compare, Equals, Everything, FindOptions, OrderKey

LIMITS = FindLimits()


def parsed(**params: object) -> FindOptions:
    return parse_find_options(params, LIMITS)


def test_nothing_requested_is_everything_by_the_default_limit():
    options = parsed()
    assert (options.where, options.limit, options.skip) == (Everything(), 100, 0)
    assert (options.order, options.keys, options.include, options.count) == ((), None, (), False)


def test_text_of_a_query_string_and_values_of_a_body_mean_the_same():
    text = parsed(where='{"a":{"$gt":1}}', limit="5", skip="2", count="1", order="-a,b")
    values = parsed(where={"a": {"$gt": 1}}, limit=5, skip=2, count=1, order="-a,b")
    assert text == values
    assert text.where == Compare(("a",), "gt", 1)
    assert text.order == (OrderKey(("a",), True), OrderKey(("b",)))


def test_a_large_limit_is_cut_silently_and_none_is_none():
    assert parsed(limit="1000000").limit == LIMITS.max_limit
    assert parsed(limit=0).limit == 0


def test_of_an_included_path_the_way_to_it_is_included():
    options = parsed(include="owner.company,tags", keys="name,boss.age")
    assert options.include == (("boss",), ("owner",), ("owner", "company"), ("tags",))
    assert options.keys == {("name",), ("boss", "age")}


def test_as_many_fields_as_a_class_has_may_be_selected():
    names = [f"f{number}" for number in range(2000)]
    assert parsed(keys=",".join(names)).keys == {(name,) for name in names}
    assert parsed(excludeKeys=names).exclude_keys == {(name,) for name in names}


@pytest.mark.parametrize("params", [{"include": "*"}, {"includeAll": "true"}])
def test_all_pointers_may_be_included(params):
    assert parsed(**params).include_all


def test_a_where_is_read_as_constraints():
    assert parsed(where='{"a":null}').where == Equals(("a",), None)


@pytest.mark.parametrize(
    ("params", "code", "message"),
    [
        ({"limit": "abc"}, 102, "limit: expected a whole number"),
        ({"limit": "-1"}, 102, "limit: expected a number from 0"),
        ({"limit": "1.5"}, 102, "limit: expected a whole number"),
        ({"limit": True}, 102, "limit: expected a whole number"),
        ({"skip": "-5"}, 102, "skip: expected a number from 0"),
        ({"skip": "1e3"}, 102, "skip: expected a whole number"),
        ({"count": "maybe"}, 102, "count: expected true or false"),
        ({"nonsense": 1}, 102, "Invalid parameter for query: nonsense"),
        ({"where": "{"}, 107, "where parameter is not valid JSON"),
        ({"where": "[]"}, 107, "where: expected an object"),
        ({"where": "5"}, 107, "where: expected an object"),
        ({"where": '{"a":{"$in":1}}'}, 107, "bad $in value"),
        ({"order": "a b"}, 105, "Invalid field name: a b."),
        ({"order": "x; DROP"}, 105, "Invalid field name: x; DROP."),
        ({"keys": "a b"}, 105, "Invalid key name: a b"),
        ({"include": "a..b"}, 105, "Invalid key name: a..b"),
        ({"include": ".".join("abcdefghijkl")}, 102, "include: deeper than 10 levels"),
        ({"include": ",".join(f"f{n}" for n in range(200))}, 102, "include: more than 100 paths"),
        ({"order": 5}, 102, "order: expected text"),
        ({"order": "a," * 2000 + "b"}, 102, "order: more than 2,000 names"),
        ({"include": "a," * 2000 + "b"}, 102, "include: more than 2,000 names"),
        ({"keys": "a," * 2000 + "b"}, 102, "keys: more than 2,000 names"),
        ({"keys": ["a"] * 2001}, 102, "keys: more than 2,000 names"),
        ({"excludeKeys": "a," * 2000 + "b"}, 102, "excludeKeys: more than 2,000 names"),
    ],
)
def test_what_is_wrong_is_refused(params, code, message):
    with pytest.raises(ServiceError) as caught:
        parsed(**params)
    assert (caught.value.code, caught.value.message[: len(message)]) == (code, message)


@pytest.mark.parametrize(
    ("params", "same"),
    [
        ({"where[a]": "x"}, {"where": {"a": "x"}}),
        ({"where[a][$regex]": "^x", "where[b]": "y"}, {"where": {"a": {"$regex": "^x"}, "b": "y"}}),
        ({"where[a][$in][0]": "x", "where[a][$in][1]": "y"}, {"where": {"a": {"$in": ["x", "y"]}}}),
        (
            {"where[$or][1][a]": "x", "where[$or][0][b]": "y"},
            {"where": {"$or": [{"b": "y"}, {"a": "x"}]}},
        ),
        ({"keys[1]": "a", "keys[0]": "b"}, {"keys": "b,a"}),
        ({"order[0]": "a", "order[1]": "-b"}, {"order": "a,-b"}),
        ({"include": ["a,b", "c"]}, {"include": "a,b,c"}),
    ],
)
def test_nested_names_are_objects_and_lists(params, same):
    limits = FindLimits()
    assert parse_find_options(params, limits) == parse_find_options(same, limits)


@pytest.mark.parametrize(
    "params",
    [
        {"where[a][b][c][d][e][f]": "x"},
        {"where": "{}", "where[a]": "x"},
        {"where[a]": "x", "where[a][b]": "y"},
        {"other[a]": "x"},
        {"where[a": "x"},
        {"[a]": "x"},
        {"limit[a]": "1"},
        {"limit[0]": "1"},
        {"keys[a]": "1"},
    ],
)
def test_nested_names_that_mean_nothing_are_refused(params):
    with pytest.raises(ServiceError) as caught:
        parse_find_options(params, FindLimits())
    assert (caught.value.code, caught.value.status) == (102, 400)
