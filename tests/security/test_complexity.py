"""Theme 9 of the advisories on Parse Server: no request breaks or stops the service."""

from __future__ import annotations

from typing import Any

import pytest


def nested_or(depth):
    where: dict[str, Any] = {"score": 1}
    for _ in range(depth):
        where = {"$or": [where]}
    return where


def nested_subqueries(depth):
    where: dict[str, Any] = {}
    for _ in range(depth):
        where = {"to": {"$inQuery": {"className": "Game", "where": where}}}
    return where


@pytest.mark.parametrize(
    "params",
    [
        {"where": nested_or(60)},
        {"where": nested_subqueries(30)},
        {"where": {"$or": [{"score": n} for n in range(5000)]}},
        {"where": {"score": {"$in": list(range(20_000))}}},
        {"include": ",".join(f"a{n}" for n in range(500))},
        {"include": ".".join(["a"] * 20)},
        {"limit": 10**9, "skip": 10**12},
    ],
    ids=["depth", "sub-queries", "breadth", "list", "includes", "include depth", "numbers"],
)
def test_a_query_that_asks_too_much_is_refused(client, game, send, params):
    """cmj3-wx7h-ffvg, 6qh5-m6g3-xhq6, 9xp9-j92r-p88v: nothing bounded a query."""
    reply = send(client, "GET", "/classes/Game", params)
    assert reply.json["code"] == 102


@pytest.mark.parametrize(
    "pattern",
    ["(a+)+$", "^(a|a)*$", "(.*)*x", "a" * 20_000, "(" * 500 + ")" * 500, "[", "a{1,99999}"],
)
def test_a_pattern_neither_hangs_nor_breaks_nor_tells_of_the_database(
    master, client, send, pattern
):
    """mf3j-86qx-cq5j, 827p-g5x5-h86c, 9cp7-3q5w-j92g: ReDoS, and errors with inner detail."""
    master.make("Game", name="a" * 2000 + "!")
    reply = send(client, "GET", "/classes/Game", {"where": {"name": {"$regex": pattern}}})
    assert reply.status in (200, 400)
    if reply.status == 400:
        assert reply.json["code"] in (102, 107, 124)
        assert "SELECT" not in reply.json["error"]


def test_a_batch_can_not_multiply_itself(client, game):
    """cmj3-wx7h-ffvg: a batch inside of a batch."""
    inner = {"method": "POST", "path": "/api/batch", "body": {"requests": []}}
    assert client.post("/batch", {"requests": [inner] * 3}).error == (400, 107)


def test_a_schema_is_not_poisoned_by_a_refused_write(master, client, game, send):
    """9ccr-fpp6-78qf: a field stayed in the schema after its write was refused."""
    before = master.get("/schemas/Game").json
    for body in (
        {"fresh": 1, "score": "text"},
        {"fresh": {"__type": "Date", "iso": "x"}},
        {"fresh": 1, "ACL": "x"},
        {"fresh": 1, "__proto__": 1},
    ):
        assert send(client, "POST", "/classes/Game", body).status >= 400
        assert send(client, "PUT", f"/classes/Game/{game}", body).status >= 400
        assert send(client, "PUT", "/classes/Game/aaaaaaaaaa", body).status >= 400
    assert master.get("/schemas/Game").json == before
