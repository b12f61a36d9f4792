"""A name means the same to every layer: no spelling of a class reaches it past its rules.

PostgreSQL's client library reads C strings, which end at the first NUL. A class name with a NUL
found the real class there, while rules, triggers, limits and protected fields were looked up by
the whole name and found nothing.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest
from django.db import connection, transaction
from django.test import Client

from backend.kernel.errors import IncorrectType, InvalidClassName, ServiceError
from backend.kernel.principal import MASTER
from objects import service, triggers
from objects.database.statements import fetch
from objects.definitions import registry
from objects.definitions.models import ObjectClass
from tests.people import PASSWORD, log_in, make_role, sign_up, with_token
from tests.rate_limits import limit, nothing_counted
from tests.rest import Api, Reply

__all__ = ["limit", "nothing_counted"]

CONTROLS = [*map(chr, range(0x20)), "\x7f", "\x80", "\x9f"]


def refused(reply: Reply, *codes: int) -> None:
    """Assert that a request was refused in the service's own form with one of these codes."""
    assert 400 <= reply.status < 500, (reply.status, reply.json)
    assert set(reply.json) == {"code", "error"}
    assert reply.json["code"] in codes, reply.json


def sent(api: Api, method: str, path: str, body: Any = None) -> list[Reply]:
    """The answers to a request alone, in a batch, and in a batch that is a transaction.

    ``path`` is not encoded. A batch has it as it is and percent-encoded.
    """
    replies = [api.call(method, quote(path), body)]
    for written in (path, quote(path)):
        item = {"method": method, "path": f"/api{written}", "body": body or {}}
        for together in (False, True):
            reply = api.post("/batch", {"requests": [item], "transaction": together})
            if reply.status == 200:
                (answer,) = reply.json
                reply = Reply(400 if "error" in answer else 200, next(iter(answer.values())), {})
            replies.append(reply)
    return replies


# -- The break-ins ---------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["\x00", "\x00x", "\x00\x00"])
def test_a_session_can_not_be_moved_to_another_account(client, suffix):
    sign_up("victim")
    mallory = sign_up("mallory")
    (session,) = mallory.results("_Session")
    path = f"/classes/_Session{suffix}/{session['objectId']}"
    victim = {
        "__type": "Pointer",
        "className": "_User",
        "objectId": log_in("victim").json["objectId"],
    }
    for reply in sent(mallory, "PUT", path, {"user": victim}):
        refused(reply, 103)
    assert with_token(mallory.token).get("/users/me").json["username"] == "mallory"


def test_the_rules_of_users_hold_for_every_spelling_of_their_class(client, master):
    sign_up("victim")
    mallory = sign_up("mallory")
    path = f"/classes/_User\x00/{mallory.user_id}"
    before = master.get(f"/users/{mallory.user_id}").json
    for body in (
        {"emailVerified": True},
        {"authData": {"facebook": {"id": "1"}}},
        {"password": "in plain text"},
        {"username": "victim"},
    ):
        for reply in sent(mallory, "PUT", path, body):
            refused(reply, 103)
    assert master.get(f"/users/{mallory.user_id}").json == before


def test_a_role_can_not_be_renamed(client, master):
    mallory = sign_up("mallory")
    role = make_role(master, "Own", [mallory])
    master.put(f"/roles/{role}", {"ACL": {mallory.user_id: {"read": True, "write": True}}})
    for reply in sent(mallory, "PUT", f"/classes/_Role\x00/{role}", {"name": "Admin"}):
        refused(reply, 103)
    assert master.get(f"/roles/{role}").json["name"] == "Own"


def test_the_limit_of_sign_ups_is_not_avoided(client, master, limit):
    limit({"path": "/users", "methods": ["POST"], "count": 1})
    account = {"username": "mallory", "password": PASSWORD}
    for reply in sent(client, "POST", "/classes/_User\x00", account):
        refused(reply, 103)
    assert master.results("_User") == []


@pytest.fixture
def refusing_trigger():
    """A ``before_save`` of the class Game that refuses everything."""

    def refuse(occasion: triggers.Occasion) -> None:
        raise IncorrectType("refused by the trigger")

    triggers.register("before_save", "Game", refuse)
    yield
    triggers.unregister("before_save", "Game", refuse)


def test_a_refusing_trigger_runs_for_every_spelling(client, master, refusing_trigger):
    master.post("/schemas/Game", {"fields": {"score": {"type": "Number"}}})
    for reply in sent(client, "POST", "/classes/Game\x00", {"score": 1}):
        refused(reply, 103)
    assert master.results("Game") == []


@pytest.mark.parametrize("control", CONTROLS)
def test_a_name_with_a_control_character_has_no_bucket_of_its_own(client, limit, control):
    limit({"path": "/login", "count": 1, "per": "account"})
    sign_up("victim")
    for name in (f"victim{control}1", f"{control}victim", f"victim{control}"):
        for path, body in (
            ("/login", {"username": name, "password": "a guess"}),
            ("/login", {"email": name, "password": "a guess"}),
        ):
            for reply in sent(client, "POST", path, body)[:2]:
                refused(reply, 200)
    # None of them was counted for the victim, and none found the account.
    assert log_in("victim").status == 200
    assert log_in("victim").status == 429


def test_a_name_with_a_control_character_is_refused_without_limits_too(client):
    sign_up("victim")
    refused(log_in("victim\x00"), 200)
    refused(client.post("/users", {"username": "a\x00b", "password": PASSWORD}), 200, 111)
    refused(client.post("/users", {"username": "a\tb", "password": PASSWORD}), 200)
    account = {"username": "ann", "password": PASSWORD, "email": "a\x01@example.org"}
    refused(client.post("/users", account), 125)


def test_hooks_with_a_nul_are_refused(master):
    for path, code in (
        ("/hooks/functions/a\x00", 105),
        ("/hooks/triggers/Game\x00/beforeSave", 103),
        ("/hooks/triggers/Game/beforeSave\x00", 105),
    ):
        for method, body in (
            ("GET", None),
            ("PUT", {"url": "https://example.org"}),
            ("DELETE", None),
        ):
            for reply in sent(master, method, path, body):
                refused(reply, code)


def test_login_as_refuses_a_user_id_with_a_nul(master):
    user = sign_up("ann")
    for user_id in (f"{user.user_id}\x00", f"{user.user_id}\x00x", "\x00", "\ud800"):
        for reply in sent(master, "POST", "/loginAs", {"userId": user_id})[:2]:
            refused(reply, 101, 107)
    assert len(master.results("_Session")) == 1


# -- Paths -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("control", CONTROLS)
@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/classes/Game{}", 103),
        ("/classes/Game/abc{}", 105),
        ("/classes/Ga{}me/abc", 103),
        ("/functions/hello{}", 105),
        ("/files/a{}.txt", 105),
        ("/no/such{}/route", 108),
        ("/{}", 108),
        ("/health{}", 108),
    ],
)
def test_control_characters_in_a_path_are_refused_before_routing(client, path, code, control):
    refused(client.call("GET", quote(path.format(control))), code)


@pytest.mark.parametrize("escaped", ["%2500", "%250a", "%257F", "%25c2%2580"])
def test_control_characters_that_are_encoded_twice_are_refused(client, escaped):
    refused(client.call("GET", f"/classes/Game{escaped}"), 103)


@pytest.mark.parametrize("encoded", ["%ff", "%c3", "%c0%80", "%ed%a0%80", "%f8%88%80%80%80"])
def test_a_path_that_is_not_utf_8_is_refused(client, encoded):
    refused(client.call("GET", f"/classes/Game{encoded}"), 103)
    refused(client.call("GET", f"/events/seen{encoded}"), 105)
    refused(client.call("GET", f"/nowhere{encoded}"), 108)
    item = {"method": "GET", "path": f"/api/classes/Game{encoded}"}
    refused(client.post("/batch", {"requests": [item]}), 103)


@pytest.mark.parametrize(
    "path", ["/admin/%00", "/admin/login/%0a", "/nowhere%7f", "/%ff", "/health%00"]
)
def test_other_paths_of_the_server_are_refused_alike(db, path):
    response = Client().get(path)
    assert response.status_code == 400
    assert response.json()["code"] == 108


def test_a_path_in_a_batch_is_decoded_as_that_of_a_request(master):
    object_id = master.make("Game", score=1)
    item = {"method": "GET", "path": f"/api/classes/%47ame/{object_id}"}
    (answer,) = master.post("/batch", {"requests": [item]}).json
    assert answer["success"] == master.get(f"/classes/%47ame/{object_id}").json


# -- The layers below ------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["a\x00b", "\x00", "half \ud800"])
def test_the_store_sends_no_text_that_the_database_reads_otherwise(db, text):
    for sql, params in (
        ("SELECT %s::text", (text,)),
        ("SELECT %s::text[]", (["a", text],)),
        (f"SELECT '{text}'", ()),
    ):
        for prepare in (True, False):
            with pytest.raises(IncorrectType):
                fetch(sql, params, prepare=prepare)
    assert fetch("SELECT 1", (), prepare=False) == [("1",)]


def test_the_store_refuses_a_nul_that_json_holds(db):
    with pytest.raises(IncorrectType):
        fetch("SELECT (%s::jsonb)->>0", ('["\\u0000"]',), prepare=False)


@pytest.mark.parametrize("text", ["a\x00b", "half \ud800"])
def test_the_orm_sends_no_text_that_the_database_reads_otherwise(db, text):
    for query in (
        lambda: ObjectClass.objects.filter(name=text).exists(),
        lambda: ObjectClass.objects.filter(name__in=["a", text]).exists(),
        lambda: ObjectClass.objects.filter(definition__contains={"a": text}).exists(),
        lambda: ObjectClass.objects.filter(name="a").update(name=text),
        lambda: ObjectClass.objects.create(name=text, version=1),
    ):
        with pytest.raises(IncorrectType), transaction.atomic():
            query()
    with connection.cursor() as cursor:
        with pytest.raises(IncorrectType):
            cursor.execute(f"SELECT '{text}'")
        with pytest.raises(IncorrectType):
            cursor.execute("SELECT %s", [text])
        cursor.execute("SELECT 1")


@pytest.mark.parametrize("name", ["_User\x00", "_user", "_User ", "", "a b", "_Join:users:_Role"])
def test_the_registry_finds_no_class_by_a_name_that_is_none(db, name):
    for find in (registry.find, registry.current, registry.lock):
        with pytest.raises(InvalidClassName):
            find(name)


@pytest.mark.parametrize("name", ["Game\x00", "Game ", "Gam\u0435", "Ga\u200bme"])
def test_the_object_service_refuses_a_name_that_is_none(master, name):
    object_id = master.make("Game", score=1)
    for action in (
        lambda: service.create(MASTER, name, {"score": 2}),
        lambda: service.create_many(MASTER, name, [{"score": 2}, {"score": 3}]),
        lambda: service.update(MASTER, name, object_id, {"score": 2}),
        lambda: service.delete(MASTER, name, object_id),
        lambda: service.get(MASTER, name, object_id),
    ):
        with pytest.raises(ServiceError) as refusal:
            action()
        assert refusal.value.code == 103
    assert [game["score"] for game in master.results("Game")] == [1]
