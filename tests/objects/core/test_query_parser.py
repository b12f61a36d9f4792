"""From a ``where`` to the constraint tree, and what is refused on the way, in which words."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from backend.kernel.errors import ServiceError
from objects.core.query import limits, parser
from objects.core.query.parser import parse_order, parse_where
from objects.core.query.tree import (
    AllOf,
    AnyOf,
    Compare,
    ContainedBy,
    ContainsAll,
    ContainsAllRegex,
    Equals,
    Everything,
    Exists,
    In,
    InQuery,
    IntersectsPoint,
    Matches,
    Near,
    NoneOf,
    NotEquals,
    NotIn,
    OrderKey,
    RelatedTo,
    Select,
    SubQuery,
    Text,
    WithinBox,
    WithinPolygon,
    WithinSphere,
    fields_read,
    near_of,
    text_of,
    walk,
)

POINT = {"__type": "GeoPoint", "latitude": 10, "longitude": 20}
FAR_POINT = {"__type": "GeoPoint", "latitude": 15, "longitude": 30}
POINTER = {"__type": "Pointer", "className": "Team", "objectId": "t1"}
DATE = {"__type": "Date", "iso": "2024-01-01T00:00:00.000Z"}
TEAMS = {"className": "Team", "where": {"wins": 1}}
TEAMS_QUERY = SubQuery("Team", Equals(("wins",), 1))
NOW = datetime(2024, 6, 1, 12, 0, tzinfo=UTC)
TRIANGLE = ((0.0, 0.0), (0.0, 10.0), (10.0, 10.0), (0.0, 0.0))


def point(latitude: float, longitude: float) -> dict[str, object]:
    return {"__type": "GeoPoint", "latitude": latitude, "longitude": longitude}


@pytest.mark.parametrize(
    ("where", "tree"),
    [
        (None, Everything()),
        ({}, Everything()),
        ({"a": 1}, Equals(("a",), 1)),
        ({"a": None}, Equals(("a",), None)),
        ({"a": {"b": 1}}, Equals(("a",), {"b": 1})),
        ({"a": {}}, Equals(("a",), {})),
        ({"a": [1, 2]}, Equals(("a",), [1, 2])),
        ({"a.b.c": "x"}, Equals(("a", "b", "c"), "x")),
        ({"a": POINTER}, Equals(("a",), POINTER)),
        ({"a": {"$eq": 1}}, Equals(("a",), 1)),
        ({"a": {"$ne": None}}, NotEquals(("a",), None)),
        ({"a": {"$lt": 1}}, Compare(("a",), "lt", 1)),
        ({"a": {"$gte": DATE}}, Compare(("a",), "gte", DATE)),
        ({"a": {"$in": [1, None]}}, In(("a",), (1, None))),
        ({"a": {"$nin": []}}, NotIn(("a",), ())),
        ({"a": {"$exists": False}}, Exists(("a",), False)),
        ({"a": {"$all": [1, "x"]}}, ContainsAll(("a",), (1, "x"))),
        ({"a": {"$all": []}}, ContainsAll(("a",), ())),
        ({"a": {"$all": [{"$regex": "^x"}]}}, ContainsAllRegex(("a",), ("^x",))),
        ({"a": {"$containedBy": [1]}}, ContainedBy(("a",), (1,))),
        ({"a": {"$regex": "^x", "$options": "i"}}, Matches(("a",), "^x", "i")),
        ({"a": {"$inQuery": TEAMS}}, InQuery(("a",), TEAMS_QUERY)),
        ({"a": {"$notInQuery": TEAMS}}, InQuery(("a",), TEAMS_QUERY, negated=True)),
        (
            {"a": {"$select": {"query": TEAMS, "key": "home.city"}}},
            Select(("a",), TEAMS_QUERY, ("home", "city")),
        ),
        (
            {"a": {"$dontSelect": {"query": {"className": "Team"}, "key": "city"}}},
            Select(("a",), SubQuery("Team", Everything()), ("city",), negated=True),
        ),
        (
            {"$relatedTo": {"object": POINTER, "key": "members"}},
            RelatedTo("Team", "t1", "members"),
        ),
        (
            {"a": {"$text": {"$search": {"$term": "x", "$language": "none"}}}},
            Text(("a",), "x", "none"),
        ),
        (
            {"$text": {"$search": {"$term": "x", "$diacriticSensitive": True}}},
            Text(None, "x", "english", True),
        ),
        ({"a": {"$nearSphere": POINT}}, Near(("a",), (10.0, 20.0), None)),
        ({"a": {"$nearSphere": POINT, "$maxDistance": 0.5}}, Near(("a",), (10.0, 20.0), 0.5)),
        (
            {"a": {"$nearSphere": POINT, "$maxDistanceInKilometers": 6371}},
            Near(("a",), (10.0, 20.0), 1.0),
        ),
        (
            {"a": {"$nearSphere": POINT, "$maxDistanceInMiles": 3959}},
            Near(("a",), (10.0, 20.0), 1.0),
        ),
        (
            {"a": {"$within": {"$box": [POINT, FAR_POINT]}}},
            WithinBox(("a",), (10.0, 20.0), (15.0, 30.0)),
        ),
        (
            {"a": {"$geoWithin": {"$polygon": [point(0, 0), point(0, 10), point(10, 10)]}}},
            WithinPolygon(("a",), TRIANGLE),
        ),
        (
            # Bare pairs are longitude first, as the JavaScript SDK sends them.
            {"a": {"$geoWithin": {"$polygon": [[0, 0], [10, 0], [10, 10]]}}},
            WithinPolygon(("a",), TRIANGLE),
        ),
        (
            # Polygons are latitude first, as they are stored.
            {
                "a": {
                    "$geoWithin": {
                        "$polygon": {
                            "__type": "Polygon",
                            "coordinates": [[0, 0], [0, 10], [10, 10]],
                        }
                    }
                }
            },
            WithinPolygon(("a",), TRIANGLE),
        ),
        (
            {"a": {"$geoWithin": {"$centerSphere": [[20, 10], 0.1]}}},
            WithinSphere(("a",), (10.0, 20.0), 0.1),
        ),
        ({"a": {"$geoIntersects": {"$point": POINT}}}, IntersectsPoint(("a",), (10.0, 20.0))),
        ({"$or": [{"a": 1}, {"b": 2}]}, AnyOf((Equals(("a",), 1), Equals(("b",), 2)))),
        ({"$and": [{"a": 1}, {"b": 2}]}, AllOf((Equals(("a",), 1), Equals(("b",), 2)))),
        ({"$nor": [{"a": 1}]}, NoneOf((Equals(("a",), 1),))),
        ({"$or": [{}]}, AnyOf((Everything(),))),
        (
            {"a": {"$gt": 1, "$lt": 5}, "b": 2},
            AllOf((Compare(("a",), "gt", 1), Compare(("a",), "lt", 5), Equals(("b",), 2))),
        ),
        (
            {"a": {**DATE, "$ne": None}},
            AllOf((Equals(("a",), DATE), NotEquals(("a",), None))),
        ),
    ],
)
def test_a_where_becomes_this_tree(where, tree):
    assert parse_where(where) == tree


@pytest.mark.parametrize(
    ("text", "iso"),
    [
        ("now", "2024-06-01T12:00:00.000Z"),
        ("in 2 days", "2024-06-03T12:00:00.000Z"),
        ("5 minutes ago", "2024-06-01T11:55:00.000Z"),
        ("In 1 Week 1 hr", "2024-06-08T13:00:00.000Z"),
        ("1 year 2 sec ago", "2023-06-02T11:59:58.000Z"),
        ("3 months ago", "2024-03-03T12:00:00.000Z"),
    ],
)
def test_a_relative_time_counts_from_now(text, iso):
    where = {"a": {"$lt": {"$relativeTime": text}}}
    expected = Compare(("a",), "lt", {"__type": "Date", "iso": iso})
    assert parse_where(where, now=NOW) == expected


def test_timestamps_may_be_compared_with_bare_text():
    where = {"createdAt": {"$gt": "2024-01-01"}}
    assert parse_where(where) == Compare(("createdAt",), "gt", DATE)
    assert parse_where({"a": {"$gt": "2024-01-01"}}) == Compare(("a",), "gt", "2024-01-01")


def test_values_become_canonical():
    date = {"__type": "Date", "iso": "2024-01-01T01:00:00+01:00"}
    assert parse_where({"a": date}) == Equals(("a",), DATE)
    assert parse_where({"a": 2.0}) == Equals(("a",), 2)


def test_a_file_is_requested_by_its_name():
    file = {"__type": "File", "name": "f.png", "url": "http://host/f.png"}
    assert parse_where({"a": file}) == Equals(("a",), {"__type": "File", "name": "f.png"})


def test_a_sub_query_may_be_limited_and_sorted_and_ignores_what_only_shapes_the_answer():
    sub = {**TEAMS, "limit": 5, "skip": 2, "order": "-wins,name", "keys": "name", "include": "x"}
    expected = SubQuery(
        "Team", Equals(("wins",), 1), 5, 2, (OrderKey(("wins",), True), OrderKey(("name",)))
    )
    assert parse_where({"a": {"$inQuery": sub}}) == InQuery(("a",), expected)


def search(**changes: object) -> dict[str, object]:
    return {"a": {"$text": {"$search": {"$term": "x"} | changes}}}


def within(**operand: object) -> dict[str, object]:
    return {"a": {"$geoWithin": {f"${key}": value for key, value in operand.items()}}}


@pytest.mark.parametrize(
    ("where", "code", "message"),
    [
        ([], 107, "where: expected an object"),
        ("x", 107, "where: expected an object"),
        ({"a b": 1}, 105, "Invalid key name: a b"),
        ({"a-b": 1}, 105, "Invalid key name: a-b"),
        ({"": 1}, 105, "Invalid key name: "),
        ({"a..b": 1}, 105, "Invalid key name: a..b"),
        ({"1a": 1}, 105, "Invalid key name: 1a"),
        ({"_rperm": 1}, 105, "Invalid key name: _rperm"),
        ({"a.__proto__": 1}, 105, "Prohibited keyword in request"),
        ({"a.0.-1": 1}, 105, "Invalid key name: a.0.-1"),
        ({"$where": "x"}, 105, "Invalid key name: $where"),
        ({"$relativeTime": 1}, 105, "Invalid key name: $relativeTime"),
        ({"ACL": 1}, 102, "Cannot query on ACL."),
        ({"ACL.x": 1}, 102, "Cannot query on ACL."),
        ({"a": {"$unknown": 1}}, 107, "bad constraint: $unknown"),
        ({"a": {"$or": []}}, 107, "bad constraint: $or"),
        ({"a": {"$lt": None}}, 107, "where.a.$lt: expected a number, a string, a date or a"),
        ({"a": {"$gt": [1]}}, 107, "where.a.$gt: expected a number, a string, a date or a"),
        ({"a": {"$gt": POINTER}}, 107, "where.a.$gt: expected a number, a string, a date or a"),
        ({"a": {"$in": 1}}, 107, "bad $in value"),
        ({"a": {"$nin": {"x": 1}}}, 107, "bad $nin value"),
        ({"a": {"$all": 1}}, 107, "bad $all value"),
        (
            {"a": {"$all": [{"$regex": "^a"}, "b"]}},
            107,
            "All $all values must be of regex type or none",
        ),
        (
            {"a": {"$containedBy": "x"}},
            107,
            "bad $containedBy: should be an array",
        ),
        ({"a": {"$exists": 1}}, 107, "where.a.$exists: bad $exists value, should be a boolean"),
        ({"a": {"$regex": 5}}, 102, "$regex value must be a string"),
        ({"a": {"$regex": "("}}, 102, "where.a.$regex: bad regular expression: missing )"),
        ({"a": {"$regex": "x" * 1001}}, 102, "where.a.$regex: a pattern has at most 1000"),
        (
            {"a": {"$regex": "x", "$options": "q"}},
            102,
            "Bad $options value for query: q",
        ),
        ({"a": {"$regex": "x", "$options": 1}}, 102, "$options value must be a string"),
        ({"a": {"$options": "i"}}, 107, "where.a.$options: only together with $regex"),
        ({"a": {"$maxDistance": 1}}, 107, "where.a.$maxDistance: only together with $nearSphere"),
        ({"$or": {}}, 102, "Bad $or format - use an array value."),
        ({"$or": []}, 102, "Bad $or format - use an array value."),
        ({"$and": 5}, 102, "Bad $and format - use an array value."),
        ({"$nor": []}, 102, "Bad $nor format - use an array of at least 1 value."),
        ({"$or": [5]}, 102, "Bad $or format - expected objects"),
        ({"$or": [{"a": {"$in": 5}}]}, 107, "bad $in value (where.$or.0.a.$in)"),
        ({"a": {"$inQuery": 5}}, 102, "improper usage of $inQuery"),
        ({"a": {"$notInQuery": {}}}, 102, "improper usage of $notInQuery"),
        ({"a": {"$inQuery": TEAMS | {"x": 1}}}, 102, "improper usage of"),
        ({"a": {"$inQuery": TEAMS | {"limit": -1}}}, 102, "where.a.$inQuery.limit: expected"),
        ({"a": {"$inQuery": {"className": "x y"}}}, 103, "Invalid classname: x y"),
        (
            {"a": {"$inQuery": {"className": "B", "where": {"b": {"$in": 1}}}}},
            107,
            "bad $in value (where.a.$inQuery.where.b.$in)",
        ),
        ({"a": {"$select": {"query": TEAMS}}}, 102, "improper usage of $select"),
        (
            {"a": {"$dontSelect": {"query": TEAMS, "key": "x", "more": 1}}},
            102,
            "improper usage of $dontSelect",
        ),
        ({"a": {"$select": {"query": TEAMS, "key": "ACL"}}}, 102, "Cannot query on ACL."),
        ({"$relatedTo": {"object": 5, "key": "x"}}, 102, "where.$relatedTo.object: expected a"),
        ({"$relatedTo": {"object": POINTER}}, 102, "improper usage of"),
        ({"a": {"$text": "x"}}, 107, "bad $text: $search, should be object"),
        (search(**{"$term": 5}), 107, "bad $text: $term, should be string"),
        (
            search(**{"$caseSensitive": "yes"}),
            107,
            "bad $text: $caseSensitive, should be boolean",
        ),
        (search(**{"$caseSensitive": True}), 107, "bad $text: $caseSensitive not supported"),
        (
            search(**{"$diacriticSensitive": "yes"}),
            107,
            "bad $text: $diacriticSensitive, should be boolean",
        ),
        (
            search(**{"$diacriticSensitive": False}),
            107,
            "bad $text: $diacriticSensitive - false not supported",
        ),
        (search(**{"$language": "klingon"}), 102, "where.a.$text.$search: unknown $language"),
        ({"a": {"$nearSphere": 5}}, 107, "bad $nearSphere value"),
        (
            {"a": {"$nearSphere": POINT, "$maxDistance": -1}},
            107,
            "bad $maxDistance value",
        ),
        ({"a": {"$nearSphere": point(91, 0)}}, 107, "bad $nearSphere value"),
        ({"a": {"$within": {"$box": [POINT]}}}, 107, "malformatted $within"),
        ({"a": {"$within": {}}}, 107, "malformatted $within arg"),
        (
            within(polygon=[POINT, POINT]),
            107,
            "bad $geoWithin value; $polygon should contain at least 3 GeoPoints",
        ),
        (within(polygon=5), 107, "bad $geoWithin value; $polygon"),
        (
            within(centerSphere=[POINT, -1]),
            107,
            "bad $geoWithin value; $centerSphere distance invalid",
        ),
        (
            within(centerSphere=[5, 1]),
            107,
            "bad $geoWithin value; $centerSphere geo point",
        ),
        (
            {"a": {"$geoIntersects": {"$point": 5}}},
            107,
            "bad $geoIntersect value; $point should be GeoPoint",
        ),
        (
            {"a": {"$lt": {"$relativeTime": "2 days"}}},
            107,
            "bad $relativeTime (2 days) value. Time should either start with 'in' or end with",
        ),
        (
            {"a": {"$lt": {"$relativeTime": "in 2 ages"}}},
            107,
            "bad $relativeTime (in 2 ages) value. Inv",
        ),
        ({"a": {"$lt": {"$relativeTime": 5}}}, 107, "bad $relative"),
        (
            {"a": {"$eq": {"$relativeTime": "1 day ago"}}},
            107,
            "$relativeTime can only be used with the $lt, $lte, $gt, and $gte operators",
        ),
        ({"a": {"$relativeTime": "now"}}, 107, "$relativeTime can only be used with the $lt"),
        ({"a": "\x00"}, 111, "where.a: text must not hold NUL"),
        ({"a": {"$in": ["\ud800"]}}, 111, "where.a.$in.0: text must not hold NUL or half"),
        ({"a": {"__type": "Date", "iso": "x"}}, 111, "This is not a valid Date (where.a.iso"),
        ({"a": {"__type": "Nonsense"}}, 111, "This is not a valid Nonsense (where.a"),
        ({"createdAt": "yesterday"}, 111, "This is not a valid Date (where.createdAt"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(where, code, message):
    with pytest.raises(ServiceError) as caught:
        parse_where(where)
    assert (caught.value.code, caught.value.message[: len(message)]) == (code, message)
    assert caught.value.status == 400


def test_keys_of_the_service_itself_are_for_those_who_are_allowed_to():
    assert parse_where({"_x": 1}, allow_internal=True) == Equals(("_x",), 1)


def nested(depth: int) -> dict[str, object]:
    where: dict[str, object] = {"a": 1}
    for _ in range(depth):
        where = {"$or": [where]}
    return where


def sub_queries(depth: int) -> dict[str, object]:
    where: dict[str, object] = {"a": 1}
    for _ in range(depth):
        where = {"a": {"$inQuery": {"className": "A", "where": where}}}
    return where


@pytest.mark.parametrize(
    ("make", "most"),
    [(nested, parser.MAX_DEPTH), (sub_queries, limits.MAX_SUBQUERY_DEPTH)],
    ids=["logic", "sub-queries"],
)
def test_a_query_nests_to_a_limit(make, most):
    parse_where(make(most))
    for depth in (most + 1, 400):
        with pytest.raises(ServiceError) as caught:
            parse_where(make(depth))
        assert caught.value.code == 102


def test_a_query_has_a_limited_number_of_constraints_wherever_they_stand():
    most = limits.MAX_CONSTRAINTS
    parse_where({f"a{number}": 1 for number in range(most)})
    for where in (
        {f"a{number}": 1 for number in range(most + 1)},
        {"$or": [{"a": 1}] * most},
        {"a": {"$inQuery": {"className": "A", "where": {f"a{n}": 1 for n in range(most)}}}},
    ):
        with pytest.raises(ServiceError, match="a query has at most"):
            parse_where(where)


def test_a_list_has_a_limited_length():
    parse_where({"a": {"$in": [1] * parser.MAX_LIST}})
    with pytest.raises(ServiceError, match="a list has at most"):
        parse_where({"a": {"$in": [1] * (parser.MAX_LIST + 1)}})


def test_the_order_is_a_list_of_paths_with_signs():
    assert parse_order("a,-b.c, -$score") == (
        OrderKey(("a",)),
        OrderKey(("b", "c"), True),
        OrderKey(("$score",), True),
    )
    assert parse_order("") == ()


@pytest.mark.parametrize("order", ["a b", "-", "a,,b", "$where", "--a", "a.0.-1", "a;b"])
def test_an_order_by_a_bad_name_is_refused(order):
    with pytest.raises(ServiceError, match=r"^Invalid field name: .*\.$") as caught:
        parse_order(order)
    assert caught.value.code == 105


def test_an_order_by_acl_is_refused():
    with pytest.raises(ServiceError) as caught:
        parse_order("ACL")
    assert caught.value.code == 102


def test_the_fields_that_a_query_reads_are_found_at_any_depth_but_not_in_sub_queries():
    where = {
        "a.b": 1,
        "$or": [{"c": {"$exists": True}}, {"$nor": [{"d": {"$inQuery": TEAMS}}]}],
        "e": {"$nearSphere": POINT},
    }
    assert fields_read(parse_where(where)) == {"a", "c", "d", "e"}
    assert fields_read(parse_where({"$text": {"$search": {"$term": "x"}}})) == {"*"}


def test_walking_may_go_into_sub_queries():
    tree = parse_where({"a": {"$inQuery": TEAMS}})
    assert [type(node) for node in walk(tree)] == [InQuery]
    assert [type(node) for node in walk(tree, into_subqueries=True)] == [InQuery, Equals]


def test_only_a_top_level_near_or_text_sorts():
    near = {"a": {"$nearSphere": POINT}}
    assert near_of(parse_where({**near, "b": 1})) is not None
    assert near_of(parse_where({"$or": [near, {"b": 1}]})) is None
    assert text_of(parse_where(search())) is not None


def test_objects_may_be_sorted_by_the_former_names_of_their_times():
    assert parse_order("_created_at,-_updated_at") == parse_order("createdAt,-updatedAt")


def test_the_master_key_may_name_internal_fields():
    internal = frozenset({"_tombstone"})
    where = {"_tombstone": {"$exists": True}}
    assert parse_where(where, internal_fields=internal) == Exists(("_tombstone",), True)
    with pytest.raises(ServiceError, match="Invalid key name: _other"):
        parse_where({"_other": 1}, internal_fields=internal)


def test_a_sub_query_may_be_redirected():
    query = parse_where({"a": {"$inQuery": TEAMS | {"redirectClassNameForKey": "players"}}})
    assert query.query.redirect_key == "players"
    for key, code in ((5, 102), ("a b", 105)):
        with pytest.raises(ServiceError) as caught:
            parse_where({"a": {"$inQuery": TEAMS | {"redirectClassNameForKey": key}}})
        assert caught.value.code == code
