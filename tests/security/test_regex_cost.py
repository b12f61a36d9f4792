"""No regular expression of a client costs PostgreSQL much, by whichever route it comes."""

from __future__ import annotations

import os

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings

from backend.kernel.errors import InvalidQuery, ServiceError
from objects.core.query.parser import parse_where
from objects.core.regex.automaton import MAX_TRANSITIONS
from objects.core.regex.patterns import compile_regex
from realtime.core.messages import LiveQuery
from realtime.livequery import query_parsing
from tests.objects.core.regex_patterns import patterns

COSTLY = "((a?){10}){100}"
PLACES = [
    {"name": {"$regex": COSTLY}},
    {"name": {"$regex": COSTLY, "$options": "i"}},
    {"name": {"$all": [{"$regex": "a"}, {"$regex": COSTLY}]}},
    {"$or": [{"name": {"$regex": COSTLY}}, {"name": "a"}]},
    {"$nor": [{"$and": [{"name": {"$regex": COSTLY}}]}]},
    {"info.name": {"$regex": COSTLY}},
    {"owner": {"$inQuery": {"className": "Game", "where": {"name": {"$regex": COSTLY}}}}},
    {
        "name": {
            "$select": {
                "query": {"className": "Game", "where": {"name": {"$regex": COSTLY}}},
                "key": "name",
            }
        }
    },
]


def distinct(count: int) -> list[dict[str, object]]:
    return [{"name": {"$regex": f"[ab]{number}+"}} for number in range(count)]


@pytest.mark.parametrize("where", PLACES, ids=range(len(PLACES)))
def test_a_costly_pattern_is_refused_in_every_place_of_a_query(client, game, send, where):
    for params in ({"where": where}, {"where": where, "count": 1, "limit": 0}):
        reply = send(client, "GET", "/classes/Game", params)
        assert reply.json["code"] == 102
        assert reply.json["error"].startswith("where.")
        assert "$regex: bad regular expression: too large" in reply.json["error"]
        assert f"{MAX_TRANSITIONS:,} transitions" in reply.json["error"]


def test_a_costly_pattern_is_refused_on_every_route(master, client, game):
    where = {"name": {"$regex": COSTLY}}
    routes = [
        (client, "/users", {"where": {"username": {"$regex": COSTLY}}}),
        (client, "/roles", {"where": where}),
        (master, "/installations", {"where": {"deviceType": {"$regex": COSTLY}}}),
        (master, "/sessions", {"where": {"sessionToken": {"$regex": COSTLY}}}),
        (master, "/aggregate/Game", {"pipeline": [{"$match": where}]}),
        (master, "/aggregate/Game", {"distinct": "name", "where": where}),
        (
            client,
            "/classes/Game",
            {"where": {"name": {"$text": {"$search": {"$term": "a"}}, "$regex": COSTLY}}},
        ),
    ]
    for api, path, params in routes:
        assert api.get(path, **params).error == (400, 102)


def test_a_costly_pattern_is_refused_for_live_queries():
    request = LiveQuery(class_name="Game", where={"name": {"$regex": COSTLY}})
    for as_master in (False, True):
        with pytest.raises(InvalidQuery, match="too large"):
            query_parsing.parse_query(request, as_master=as_master)


def test_a_query_has_a_limited_number_of_patterns():
    parse_where({"$or": distinct(24)})
    for where in (
        {"$or": distinct(25)},
        {"name": {"$all": [item["name"] for item in distinct(25)]}},
        {"$and": [*distinct(20), {"a": {"$inQuery": {"className": "A", "where": {
            "$or": [{"b": {"$regex": f"{n}?"}} for n in range(5)]}}}}]},
    ):  # fmt: skip
        with pytest.raises(InvalidQuery, match=r"\$regex: a query has at most 24 regular expr"):
            parse_where(where)


def test_repeated_and_plain_patterns_are_not_counted():
    parse_where({"$or": distinct(1) * 200})
    parse_where({"$or": [{"name": {"$regex": f"^plain {n}"}} for n in range(200)]})
    parse_where({"$or": [{"name": {"$regex": f"plain {n}"}} for n in range(200)]})


def test_the_patterns_of_a_query_are_bounded_together():
    large = [{"name": {"$regex": f"(x?){{110}}{number}"}} for number in range(3)]
    parse_where({"$or": large[:2]})
    with pytest.raises(InvalidQuery, match=r"^where\.\$or\.2\.name\.\$regex: the automatons"):
        parse_where({"$or": large})


def test_sub_queries_and_values_of_all_are_limited(client, game, send):
    item = {"owner": {"$inQuery": {"className": "Game", "where": {}}}}
    related = {
        "$relatedTo": {
            "object": {"__type": "Pointer", "className": "Game", "objectId": game},
            "key": "friends",
        }
    }
    deep: dict[str, object] = {}
    for _ in range(6):
        deep = {
            "name": {"$dontSelect": {"query": {"className": "Game", "where": deep}, "key": "name"}}
        }
    for where, text in (
        ({"$or": [item] * 21}, "where.$or.20.owner.$inQuery: a query has at most 20 sub-queries"),
        ({"$or": [related] * 21}, "where.$or.20.$relatedTo: a query has at most 20 sub-queries"),
        (deep, "sub-queries are nested at most 5 levels deep"),
        (
            {"$or": [{"name": {"$all": list(range(first, first + 600))}} for first in (0, 9)]},
            "where.$or.1.name.$all: a query has at most 1,000 values in $all",
        ),
    ):  # fmt: skip
        reply = send(client, "GET", "/classes/Game", {"where": where})
        assert reply.json["code"] == 102
        assert text in reply.json["error"]
    assert send(client, "GET", "/classes/Game", {"where": {"$or": [item] * 20}}).status == 200


@pytest.mark.slow
@settings(
    max_examples=1_500, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)
@given(patterns)
def test_postgresql_compiles_every_accepted_pattern(connection, pattern):
    try:
        regex = compile_regex(pattern)
    except ServiceError:
        return
    # An error is one of the statement timeout, or of an automaton that PostgreSQL finds too large.
    connection.execute("SELECT 'text' ~ %s", [regex.postgres])


@pytest.mark.slow
@pytest.mark.parametrize(
    "pattern",
    [
        "(a|b|ab)*c",
        ".*.*.*x",
        "(a|b)*a(a|b){12}c",
        "([ab]*a[ab]{20}){8}[^ab]",
        "(.*[ab].{20}){20}x",
        "(a?){110}x",
        "\\b(\\w+\\b.?)*x",
        "(?m)(^.*$\\n)*x",
    ],
)
def test_postgresql_matches_long_texts_in_linear_time(connection, pattern):
    regex = compile_regex(pattern)
    for text in ("ab" * 100_000, "a" * 200_000, "a b\n" * 50_000, "abbabaaab" * 20_000):
        row = connection.execute("SELECT %s ~ %s", [text, regex.postgres]).fetchone()
        assert row == (regex.found_in(text),)


@pytest.fixture(scope="module")
def connection(django_db_setup):
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
        connection.execute("SET statement_timeout = '5s'")
        yield connection
