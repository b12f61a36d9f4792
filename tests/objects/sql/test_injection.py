"""Hostile keys and values in every position: nothing of them is ever in the SQL."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

import pytest

from backend.kernel.errors import InvalidKeyName
from objects.core.query.parser import parse_order, parse_where
from objects.sql.compiler import compile_query, order_by
from objects.sql.fields import field_expression
from objects.sql.fragments import literal
from tests.objects.sql.world import THINGS, World, thing

HOSTILE = [
    "'; DROP TABLE thing; --",
    "' OR '1'='1",
    '" || pg_sleep(10) || "',
    "') OR TRUE --",
    "%s", "%(x)s", "%%", "$1", "${jndi:x}", "\\", "\\'", "\\u0027", "\\u0000",
    "' UNION SELECT NULL --",
    '" ? (@ == 1) || $.x', "$.*", "@", "? (true)", '"', "a\nb", "\u2028", "\U0001f600",
    "{x,y}", "{", '{"', "NULL", "x::text", "/*", "*/", "[*]", "strict $", "E'\\x27'",
    "(select 1)", "&", "|", "!", ":*", "a' & 'b", "<->",
]  # fmt: skip
MARK = "hostile-mark"


def value_positions(text: str) -> list[dict[str, Any]]:
    pointer = {"__type": "Pointer", "className": "Other", "objectId": "o1"}
    return [
        {"name": text},
        {"unknown": text},
        {"tags": text},
        {"tags": [text]},
        {"tags": {"a": text}},
        {"info": {text.replace("$", "S").replace(".", "_") or "k": text}},
        {"info.a": text},
        {"objectId": text},
        {"name": {"$ne": text}},
        {"title": {"$gt": text}},
        {"info.a": {"$lt": text}},
        {"name": {"$in": [text, "x"]}},
        {"tags": {"$nin": [text, None]}},
        {"tags": {"$all": [text, "x"]}},
        {"tags": {"$containedBy": [text]}},
        {"name": {"$regex": "^\\Q" + text.replace("\\E", "")}},
        {"tags": {"$regex": "\\Q" + text.replace("\\E", "")}},
        {"tags": {"$all": [{"$regex": "^\\Q" + text.replace("\\E", "")}]}},
        {"file": {"__type": "File", "name": text}},
        {"name": {"$text": {"$search": {"$term": text}}}},
        {"name": {"$text": {"$search": {"$term": text, "$diacriticSensitive": True}}}},
        {"$text": {"$search": {"$term": text, "$diacriticSensitive": True}}},
        {"owner": {"$inQuery": {"className": "Other", "where": {"name": text}}}},
        {
            "name": {
                "$select": {"query": {"className": "Other", "where": {"tags": text}}, "key": "name"}
            }
        },
        {"$or": [{"name": text}, {"owner": pointer}]},
        {"$nor": [{"name": text}]},
    ]


@pytest.mark.parametrize("stored", THINGS)
@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_value_is_only_a_value(world: World, stored, text):
    world.fill([thing("x", name=text, tags=[text], info={"a": text})])
    for where in value_positions(text):
        query = parse_where(where)
        matches = world.in_sql(query, THINGS[stored])
        if "$text" not in str(where):
            assert matches == [obj["objectId"] for obj in world.in_memory(query)], where
    assert world.in_sql(parse_where({"name": text}), THINGS[stored]) == ["x"]
    assert world.in_sql(parse_where({"tags": text}), THINGS[stored]) == ["x"]


@pytest.mark.parametrize("stored", THINGS)
@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_key_is_refused_or_only_a_key(world: World, stored, text):
    world.fill([thing("x", info={"a": 1})])
    for key in (text, f"info.{text}", f"info.a.{text}", f"tags.0.{text}", f"unknown.{text}"):
        for operand in (1, None, {"$gt": 1}, {"$exists": True}, {"$in": [1, {}]}, {"$regex": "x"}):
            with suppress(InvalidKeyName):
                query = parse_where({key: operand})
                matches = world.in_sql(query, THINGS[stored])
                assert matches == [obj["objectId"] for obj in world.in_memory(query)]
        with suppress(InvalidKeyName):
            keys = parse_order(key)
            assert world.in_sql(parse_where(None), THINGS[stored], keys) == ["x"]


def test_nothing_that_a_client_writes_is_in_the_text():
    owner = {"__type": "Pointer", "className": "Thing", "objectId": MARK}
    for where in [
        *value_positions(MARK),
        {f"info.{MARK}": 1},
        {f"unknown.{MARK}.0": None},
        {"owner": {"$inQuery": {"className": "hostilemark"}}},
        {"$relatedTo": {"object": owner, "key": "hostilemark"}},
    ]:
        query = parse_where(where)
        for table in THINGS.values():
            condition = compile_query(query, table)
            assert "hostile" not in condition.text, where
            assert condition.text.count("%s") == len(condition.params)
    sorting = order_by(parse_order(f"info.{MARK},unknown{MARK[:1]}"), THINGS["in data"])
    assert "hostile" not in sorting.text


def test_numbers_and_dates_are_parameters_too():
    for where in (
        {"score": {"$gt": 31337}},
        {"count": {"$in": [31337]}},
        {"place": {"$nearSphere": [31.337, 31.337]}},
        {"createdAt": {"$gt": "2031-03-03"}},
    ):
        for table in THINGS.values():
            assert not re.search("31.?337|2031", compile_query(parse_where(where), table).text)


@pytest.mark.parametrize("name", ["a'", 'a"', "a b", "", "a;", "a%s", "é", "a\n"])
def test_only_plain_names_become_literals(name):
    with pytest.raises(ValueError, match="not a name"):
        literal(name)
    with pytest.raises(ValueError, match="not a name"):
        field_expression(name, "String")
