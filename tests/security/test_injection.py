"""Hostile text in every position of every route: refused or harmless, never more."""

from __future__ import annotations

import pytest
from django.db import connection

from tests.rest import CLIENT, Api
from tests.security.hostile import HEADERS, TEXTS, calls


@pytest.fixture
def game(master):
    object_id = master.make(
        "Game",
        name="chess",
        score=1,
        tags=["a"],
        info={"x": 1},
        owner={"__type": "Pointer", "className": "Game", "objectId": "aaaaaaaaaa"},
        spot={"__type": "GeoPoint", "latitude": 1, "longitude": 2},
        friends={"__type": "Relation", "className": "Game"},
    )
    master.post("/schemas/Other", {"fields": {"name": {"type": "String"}}})
    return object_id


def tables():
    with connection.cursor() as cursor:
        cursor.execute("SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace")
        return {name for (name,) in cursor.fetchall()}


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_hostile_text_is_refused_or_harmless(master, game, text):
    bystander = master.make("Bystander", secret="kept")
    before = tables()
    for place, call in calls(master, game, text):
        reply = call()
        assert reply.status < 500, (place, reply.json)
        if reply.status >= 400:
            assert set(reply.json) == {"code", "error"}, place
            for word in ("SELECT", "psycopg", "Traceback", "objects_object"):
                assert word not in reply.json["error"], place
    assert before <= tables()
    (left,) = master.results("Bystander")
    assert (left["objectId"], left["secret"]) == (bystander, "kept")
    assert len(master.results("Game", where={"objectId": game})) == 1


@pytest.mark.parametrize("text", ["x" * 5000, "' OR 1=1", "\x7f", "é", "%00", "a, b", "Basic eA=="])
def test_hostile_headers_are_refused_or_harmless(game, text):
    for name in HEADERS:
        reply = Api(CLIENT).call("GET", f"/classes/Game/{game}", headers={name: text})
        assert reply.status < 500, (name, reply.json)
        assert text not in str(reply.headers.get("X-Request-Id"))
        if reply.status >= 400:
            assert set(reply.json) == {"code", "error"}, name
