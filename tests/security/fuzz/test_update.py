"""Bodies of writes: parsed, fitted to a schema and applied to an object, or refused."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from objects.core.access.acl import parse_acl
from objects.core.update.operations import apply, echo, fit
from objects.core.update.parser import parse_write
from tests.objects.sql.world import GENERIC
from tests.security.fuzz.mutation import Mutator
from tests.security.fuzz.targets import (
    EXAMPLES,
    accepts,
    check_nothing_long_is_remembered,
    check_work_is_proportional,
    fuzz,
)
from tests.security.fuzz.test_where import DATE, OBJECT, POINT, POINTER

CORPUS: list[dict[str, Any]] = [
    {},
    {"name": "a", "score": 1.5, "flag": None, "fresh": {"a": [1, {"b": None}]}},
    {"when": DATE, "owner": POINTER, "place": POINT},
    {"area": {"__type": "Polygon", "coordinates": [[0, 0], [0, 1], [1, 1]]}},
    {"blob": {"__type": "Bytes", "base64": "YQ=="}},
    {"file": {"__type": "File", "name": "a.txt", "url": "http://localhost/a.txt"}},
    {"score": {"__op": "Increment", "amount": 2}, "count": {"__op": "Increment", "amount": -1}},
    {"tags": {"__op": "Add", "objects": [1, "a"]}},
    {"tags": {"__op": "AddUnique", "objects": [{"a": 1}, 1]}},
    {"tags": {"__op": "Remove", "objects": ["a", None]}},
    {"name": {"__op": "Delete"}, "info.a.b": 5, "info.c": {"__op": "Delete"}},
    {"info.n": {"__op": "Increment", "amount": 1}, "tags.0": "x"},
    {"name": {"__op": "SetOnInsert", "amount": "x"}},
    {"likes": {"__op": "AddRelation", "objects": [POINTER]}},
    {"likes": {"__op": "RemoveRelation", "objects": [POINTER]}},
    {"likes": {"__op": "Batch", "ops": [{"__op": "AddRelation", "objects": [POINTER]}]}},
    {"ACL": {"*": {"read": True}, "role:Admin": {"write": True}, "aaaaaaaaaa": {"read": True}}},
    {"ACL": {"__op": "Delete"}},
]


def use(body: Any) -> None:
    """Parse, fit and apply, as a create and as an update."""
    for creating in (True, False):
        write = parse_write(body, creating=creating)
        write, _ = fit(write, GENERIC.schema)
        after = apply(write, OBJECT)
        echo(write, after)
        # What is stored is JSON, and reads back as it is.
        assert msgspec.json.decode(msgspec.json.encode(after)) == after
        if write.acl is not None:
            wire = write.acl.to_wire()
            assert wire is None or parse_acl(wire) == write.acl


def make(mutator: Mutator) -> Any:
    return mutator.json(mutator.sample())


def test_the_examples_are_valid():
    accepts(lambda body: parse_write(body, creating=False), CORPUS)


@EXAMPLES
def test_any_write_is_applied_or_refused(examples):
    before = msgspec.json.encode(OBJECT)
    fuzz(use, make, CORPUS, examples)
    assert msgspec.json.encode(OBJECT) == before


@pytest.mark.parametrize(
    "grown",
    [
        lambda size: {f"a{number}": number for number in range(size)},
        lambda size: {f"info.a{number}": number for number in range(size)},
        lambda size: {f"a{number}.b.c.d": number for number in range(size)},
        lambda size: {"tags": {"__op": "AddUnique", "objects": list(range(size))}},
        lambda size: {"tags": {"__op": "Remove", "objects": [{"a": n} for n in range(size)]}},
        lambda size: {"info": [{"a": [number]} for number in range(size)]},
        lambda size: {"ACL": {f"role:a{number}": {"read": True} for number in range(size)}},
    ],
    ids=["fields", "nested fields", "paths", "unique", "removed", "values", "access list"],
)
def test_work_is_proportional_to_size(grown):
    check_work_is_proportional(use, grown, (30, 120, 480))


def test_nothing_long_is_remembered():
    for body in (
        lambda text: {"name": text},
        lambda text: {text: 1},
        lambda text: {f"info.{text}": 1},
        lambda text: {"info": {text: 1}},
        lambda text: {"ACL": {f"role:{text}": {"read": True}}},
    ):
        check_nothing_long_is_remembered(use, body)
