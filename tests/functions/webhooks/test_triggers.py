"""Triggers that are webhooks and are waited for: before saves, deletes, searches, log-ins."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from functions import TriggerRequest, before_save
from tests.functions.webhooks.receiver import Received, Receiver
from tests.people import PASSWORD, log_in, sign_up
from tests.rest import Api

DATE = {"__type": "Date", "iso": "2026-01-02T03:04:05.678Z"}


def declare(master: Api, class_name: str, trigger: str, url: str) -> None:
    hook = {"className": class_name, "triggerName": trigger, "url": url}
    assert master.post("/hooks/triggers", hook).json == hook


def echo(item: Received) -> Any:
    return {"success": item.json["object"]}


# -- Saving ---------------------------------------------------------------------------------------


def test_before_save_is_reported_the_object_and_what_it_was(
    master: Api, receiver: Receiver
) -> None:
    declare(master, "Game", "beforeSave", receiver.on("/", {"success": {}}))
    game = master.make("Game", name="chess", at=DATE)
    master.put(f"/classes/Game/{game}", {"name": "go", "n": {"__op": "Increment", "amount": 2}})
    new, changed = (item.json for item in receiver.received)
    assert new["triggerName"] == "beforeSave"
    assert new["object"] == {"className": "Game", "name": "chess", "at": DATE}
    assert "original" not in new
    assert new["master"] is True
    assert changed["object"]["name"] == "go"
    assert changed["object"]["n"] == 2
    assert changed["object"]["objectId"] == changed["original"]["objectId"] == game
    assert changed["original"]["name"] == "chess"
    assert changed["original"]["className"] == "Game"


def test_fields_that_are_answered_are_stored(master: Api, client: Api, receiver: Receiver) -> None:
    def answer(item: Received) -> Any:
        return {"success": {**item.json["object"], "hello": "world", "at": DATE}}

    declare(master, "Game", "beforeSave", receiver.on("/", answer))
    created = master.post("/classes/Game", {"name": "chess"}).json
    assert created["hello"] == "world"
    stored = client.get(f"/classes/Game/{created['objectId']}").json
    assert (stored["name"], stored["hello"], stored["at"]) == ("chess", "world", DATE)
    assert "className" not in stored
    master.put(f"/classes/Game/{created['objectId']}", {"hello": "moon"})
    assert client.get(f"/classes/Game/{created['objectId']}").json["hello"] == "world"


@pytest.mark.parametrize("success", [{}, True, None, "yes", []])
def test_any_other_success_lets_the_object_be(
    master: Api, receiver: Receiver, success: Any
) -> None:
    declare(master, "Game", "beforeSave", receiver.on("/", {"success": success}))
    game = master.make("Game", name="chess")
    assert master.get(f"/classes/Game/{game}").json["name"] == "chess"


def test_a_field_is_removed_by_the_operator(master: Api, receiver: Receiver) -> None:
    answer = {"success": {"secret": {"__op": "Delete"}}}
    declare(master, "Game", "beforeSave", receiver.on("/", answer))
    game = master.make("Game", name="chess", secret=1)
    assert "secret" not in master.get(f"/classes/Game/{game}").json


def test_what_the_service_sets_itself_is_not_changed(master: Api, receiver: Receiver) -> None:
    answer = {"objectId": "other", "createdAt": "2000-01-01T00:00:00.000Z", "className": "Other"}
    declare(master, "Game", "beforeSave", receiver.on("/", {"success": answer}))
    game = master.make("Game", name="chess")
    assert master.get(f"/classes/Game/{game}").json["createdAt"] > "2020"


def test_a_field_that_can_not_be_is_the_usual_error(master: Api, receiver: Receiver) -> None:
    declare(master, "Game", "beforeSave", receiver.on("/", {"success": {"no name": 1}}))
    assert master.post("/classes/Game", {"name": "chess"}).error == (400, 105)
    assert master.results("Game") == []


@pytest.mark.parametrize("trigger", ["beforeSave", "beforeDelete"])
def test_a_refusal_undoes_everything(master: Api, receiver: Receiver, trigger: str) -> None:
    game = master.make("Game", name="chess")
    refusal = {"error": {"code": 4000, "error": "no"}}
    declare(master, "Game", trigger, receiver.on("/", refusal))
    if trigger == "beforeSave":
        reply = master.put(f"/classes/Game/{game}", {"name": "go"})
        assert master.post("/classes/Game", {}).error == (400, 4000)
    else:
        reply = master.delete(f"/classes/Game/{game}")
    assert (reply.status, reply.json) == (400, {"code": 4000, "error": "no"})
    assert [result["name"] for result in master.results("Game")] == ["chess"]


def test_a_webhook_that_fails_refuses(master: Api, receiver: Receiver) -> None:
    declare(master, "Game", "beforeSave", receiver.on("/", {"success": {}}, status=503))
    reply = master.post("/classes/Game", {})
    expected = (
        "The webhook for the trigger beforeSave of Game failed: it responded with status 503."
    )
    assert reply.json == {"code": 141, "error": expected}
    assert master.get("/schemas/Game").error == (400, 103)


@pytest.mark.django_db(transaction=True)
def test_a_webhook_is_called_for_each_object_of_a_batch(master: Api, receiver: Receiver) -> None:
    def answer(item: Received) -> Any:
        if item.json["object"]["n"] == 2:
            return {"error": "not two"}
        return {"success": {"seen": True}}

    declare(master, "Game", "beforeSave", receiver.on("/", answer))
    master.post("/schemas/Game", {})
    requests = [
        {"method": "POST", "path": "/api/classes/Game", "body": {"n": n}} for n in (1, 2, 3)
    ]
    first, second, third = master.post("/batch", {"requests": requests}).json
    assert first["success"]["seen"] is third["success"]["seen"] is True
    assert second == {"error": {"code": 141, "error": "not two"}}


def test_python_triggers_come_first(master: Api, receiver: Receiver) -> None:
    @before_save("Game")
    def first(request: TriggerRequest) -> None:
        request.object["order"] = ["python"]

    def second(item: Received) -> Any:
        return {"success": {"order": [*item.json["object"]["order"], "webhook"]}}

    declare(master, "Game", "beforeSave", receiver.on("/", second))
    game = master.make("Game")
    assert master.get(f"/classes/Game/{game}").json["order"] == ["python", "webhook"]


def test_passwords_and_proofs_are_not_told(master: Api, receiver: Receiver) -> None:
    declare(master, "_User", "beforeSave", receiver.on("/", echo))
    sign_up("ann", email="ann@example.org")
    assert log_in("ann").status == 200
    (request,) = receiver.received
    assert PASSWORD.encode() not in request.raw
    assert request.json["object"]["username"] == "ann"
    assert not {"password", "authData"} & request.json["object"].keys()


# -- Finding --------------------------------------------------------------------------------------


def test_before_find_is_reported_the_question_and_narrows_it(
    master: Api, receiver: Receiver
) -> None:
    for n in range(4):
        master.make("Game", n=n, public=n % 2 == 0)
    declare(
        master, "Game", "beforeFind", receiver.on("/", {"success": {"where": {"public": True}}})
    )
    results = master.results("Game", where={"n": {"$gt": 0}}, order="-n", limit=5, keys="n,public")
    assert [result["n"] for result in results] == [2]
    (body,) = (result.json for result in receiver.received)
    assert body["query"] == {
        "className": "Game",
        "where": {"n": {"$gt": 0}},
        "limit": 5,
        "skip": 0,
        "order": "-n",
        "keys": "n,public",
    }
    assert (body["isGet"], body["count"]) == (False, False)


def test_before_find_narrows_counts_and_gets_too(master: Api, receiver: Receiver) -> None:
    hidden = master.make("Game", public=False)
    master.make("Game", public=True)
    declare(
        master, "Game", "beforeFind", receiver.on("/", {"success": {"where": {"public": True}}})
    )
    assert master.get("/classes/Game", count=1, limit=0).json["count"] == 1
    assert master.get(f"/classes/Game/{hidden}").error == (404, 101)
    assert [item.json["isGet"] for item in receiver.received] == [False, True]


def test_before_find_may_answer_itself_or_refuse(master: Api, receiver: Receiver) -> None:
    master.make("Game", n=1)
    made_up = [{"className": "Game", "objectId": "made0up000", "n": 5}]
    declare(master, "Game", "beforeFind", receiver.on("/", {"success": made_up}))
    assert master.results("Game") == [{"objectId": "made0up000", "n": 5}]
    receiver.on("/", {"error": "not you"})
    assert master.get("/classes/Game").json == {"code": 141, "error": "not you"}
    receiver.on("/", {"success": [1]})
    assert master.get("/classes/Game").error == (400, 141)


def test_after_find_changes_what_is_found(master: Api, receiver: Receiver) -> None:
    game = master.make("Game", name="chess")

    def answer(item: Received) -> Any:
        return {"success": [{**row, "name": row["name"].upper()} for row in item.json["objects"]]}

    declare(master, "Game", "afterFind", receiver.on("/", answer))
    assert master.results("Game")[0]["name"] == "CHESS"
    body = master.get(f"/classes/Game/{game}").json
    assert body["name"] == "CHESS"
    assert "className" not in body
    receiver.on("/", {"success": {}})
    assert master.results("Game")[0]["name"] == "chess"


def test_searching_users_does_not_go_in_circles(master: Api, receiver: Receiver) -> None:
    ann = sign_up("ann")
    declare(master, "_User", "beforeFind", receiver.on("/", {"success": {}}))
    declare(master, "_User", "afterFind", receiver.on("/after", {"success": {}}))
    assert ann.get(f"/users/{ann.user_id}").status == 200
    assert receiver.received[0].json["user"] == ann.pointer


# -- People, files, parameters --------------------------------------------------------------------


def test_before_login_may_refuse(master: Api, receiver: Receiver) -> None:
    ann = sign_up("ann")
    declare(master, "_User", "beforeLogin", receiver.on("/", {"error": "come back later"}))
    reply = log_in("ann")
    assert reply.json == {"code": 141, "error": "come back later"}
    (body,) = (item.json for item in receiver.received)
    assert body["triggerName"] == "beforeLogin"
    assert body["object"]["objectId"] == ann.user_id
    assert "user" not in body  # nobody is logged in yet
    assert "sessionToken" not in body["object"]
    master.delete("/hooks/triggers/_User/beforeLogin")
    assert log_in("ann").status == 200


def test_files_are_looked_at_before_they_are_saved(master: Api, receiver: Receiver) -> None:
    declare(master, "@File", "beforeSave", receiver.on("/", {"success": {"metadata": {"a": 1}}}))
    reply = master.call("POST", "/files/hello.txt", raw=b"hello", content_type="text/plain")
    assert reply.status == 201
    (body,) = (item.json for item in receiver.received)
    assert body["object"]["className"] == "@File"
    assert body["fileSize"] == 5
    name = reply.json["name"]
    assert master.get(f"/files/test-app/metadata/{name}").json["metadata"] == {"a": 1}
    receiver.on("/", {"error": "no files"})
    reply = master.call("POST", "/files/hello.txt", raw=b"hello", content_type="text/plain")
    assert reply.error == (400, 141)


@pytest.mark.django_db(transaction=True)
def test_triggers_of_files_get_the_address_of_the_client(master: Api, receiver: Receiver) -> None:
    events = ("beforeSave", "afterSave", "beforeFind", "afterFind", "beforeDelete", "afterDelete")
    for event in events:
        declare(master, "@File", event, receiver.on(f"/{event}", {"success": None}))
    saved = master.call("POST", "/files/hello.txt", raw=b"hello", content_type="text/plain").json
    assert Client().get(f"/api/files/test-app/{saved['name']}").status_code == 200
    assert master.delete(f"/files/{saved['name']}").status == 200
    bodies = [item.json for item in receiver.received]
    assert {body["triggerName"]: body["ip"] for body in bodies} == dict.fromkeys(
        events, "127.0.0.1"
    )


def test_a_webhook_keeps_a_file_from_a_reader(master: Api, client: Api, receiver: Receiver) -> None:
    saved = master.call("POST", "/files/hello.txt", raw=b"hello", content_type="text/plain").json
    declare(master, "@File", "beforeFind", receiver.on("/", {"error": "not for you"}))
    reply = client.get(f"/files/test-app/{saved['name']}")
    assert reply.json == {"code": 141, "error": "not for you"}
    (body,) = (item.json for item in receiver.received)
    assert body["object"]["name"] == saved["name"]


def test_parameters_of_the_app_are_looked_at_before_they_are_saved(
    master: Api, client: Api, receiver: Receiver
) -> None:
    def answer(item: Received) -> Any:
        return {"success": {"params": {"rate": item.json["object"]["params"]["rate"] * 2}}}

    declare(master, "@Config", "beforeSave", receiver.on("/", answer))
    assert master.put("/config", {"params": {"rate": 2, "name": "x"}}).status == 200
    assert client.get("/config").json["params"] == {"rate": 4, "name": "x"}


def test_a_search_in_a_class_that_is_not_there_has_triggers_too(
    master: Api, receiver: Receiver
) -> None:
    declare(master, "Game", "beforeFind", receiver.on("/", raw=b""))
    declare(master, "Game", "afterFind", receiver.on("/after", {"success": [{"objectId": "a"}]}))
    assert master.results("Game") == [{"objectId": "a"}]
    assert master.get("/classes/Game/unknown").error == (404, 101)
    receiver.on("/", {"error": "not you"})
    assert master.get("/classes/Game").json == {"code": 141, "error": "not you"}
    assert master.get("/classes/Game/unknown").json == {"code": 141, "error": "not you"}


def test_before_find_replaces_options_of_the_query(master: Api, receiver: Receiver) -> None:
    for n in range(5):
        master.make("Game", n=n, kind="a", extra=1)
    options = {
        "where": {"n": {"$gt": 0}},
        "limit": 2,
        "skip": 1,
        "order": "-n",
        "keys": "n,kind",
        "excludeKeys": "kind",
    }
    declare(master, "Game", "beforeFind", receiver.on("/", {"success": options}))
    found = master.results("Game", limit=1, order="n")
    assert [game["n"] for game in found] == [3, 2]
    assert found[0].keys() == {"objectId", "createdAt", "updatedAt", "n"}
    receiver.on("/", {"success": {"limit": "many"}})
    assert master.get("/classes/Game").error == (400, 102)


def test_the_query_is_reported_to_both_triggers_of_a_search(
    master: Api, receiver: Receiver
) -> None:
    game = master.make("Game", n=1)
    declare(master, "Game", "beforeFind", receiver.on("/", raw=b""))
    declare(master, "Game", "afterFind", receiver.on("/", raw=b""))
    master.get("/classes/Game", where={"n": 1}, count=1, include="a,b", readPreference="SECONDARY")
    master.get(f"/classes/Game/{game}")
    before, after, before_get, after_get = (item.json for item in receiver.received)
    for body in (before, after):
        assert body["query"]["where"] == {"n": 1}
        assert body["query"]["include"] == "a,b"
        assert body["query"]["readPreference"] == "SECONDARY"
        assert body["isGet"] is False
    assert before["count"] is True
    assert [found["objectId"] for found in after["objects"]] == [game]
    for body in (before_get, after_get):
        assert body["query"]["where"] == {"objectId": game}
        assert body["isGet"] is True


def test_results_of_operators_are_in_the_response(master: Api, receiver: Receiver) -> None:
    player = master.make("Player")
    game = master.make("Game", n=10)
    answer = {
        "n": {"__op": "Increment", "amount": -9},
        "players": {"__op": "AddRelation", "objects": [pointer("Player", player)]},
        "text": "new",
    }
    declare(master, "Game", "beforeSave", receiver.on("/", {"success": answer}))
    changed = master.put(f"/classes/Game/{game}", {}).json
    assert (changed["n"], changed["text"], "players" in changed) == (1, "new", False)
    related = {"$relatedTo": {"object": pointer("Game", game), "key": "players"}}
    assert [found["objectId"] for found in master.results("Player", where=related)] == [player]


def test_a_whole_object_takes_back_what_it_does_not_name(master: Api, receiver: Receiver) -> None:
    def stripped(item: Received) -> Any:
        fields = item.json["object"]
        return {"success": {name: fields[name] for name in fields if name not in ("a", "ACL")}}

    declare(master, "Game", "beforeSave", receiver.on("/", stripped))
    acl = {"role:x": {"read": True}}
    game = master.make("Game", a=1, b=2, ACL=acl)
    stored = master.get(f"/classes/Game/{game}").json
    assert ("a" in stored, stored["b"], stored["ACL"]) == (False, 2, acl)
    receiver.on("/", raw=b"")
    master.put(f"/classes/Game/{game}", {"a": 1})
    receiver.on("/", stripped)
    assert master.put(f"/classes/Game/{game}", {"a": 5, "b": 3}).json["a"] == 1
    stored = master.get(f"/classes/Game/{game}").json
    assert (stored["a"], stored["b"]) == (1, 3), "a stays as it was"


def test_a_whole_user_keeps_its_password(master: Api, receiver: Receiver) -> None:
    declare(master, "_User", "beforeSave", receiver.on("/", echo))
    ann = sign_up("ann")
    assert log_in("ann").status == 200
    assert ann.put(f"/users/{ann.user_id}", {"password": "other password"}).status == 200
    assert log_in("ann", "other password").status == 200


def test_a_chosen_id_is_shown_and_may_be_chosen_by_the_trigger(
    master: Api, receiver: Receiver, settings: Any
) -> None:
    settings.SERVICE = {**settings.SERVICE, "ALLOW_CUSTOM_OBJECT_ID": True}
    declare(master, "Game", "beforeSave", receiver.on("/", echo))
    assert master.make("Game", objectId="mine") == "mine"
    assert receiver.received[-1].json["object"]["objectId"] == "mine"
    receiver.on("/", {"success": {"objectId": "theirs"}})
    assert master.make("Game") == "theirs"
    assert "objectId" not in receiver.received[-1].json["object"]
    receiver.on("/", {"success": {"objectId": "role:admin"}})
    assert master.post("/classes/Game", {}).error == (400, 104)


def test_headers_are_sent_without_those_that_authenticate(master: Api, receiver: Receiver) -> None:
    declare(master, "Game", "beforeSave", receiver.on("/", raw=b""))
    secret = {
        "Cookie": "a=secret",
        "Authorization": "Bearer secret",
        "X-Parse-Webhook-Key": "secret",
        "X-Parse-Session-Token": "secret",
    }
    headers = {**master.headers, **secret, "X-App-Version": "7"}
    reply = Api(headers).post("/classes/Game", {"n": 1})
    assert reply.status == 201, reply.json
    (request,) = receiver.received
    assert b"secret" not in request.raw
    sent = request.json["headers"]
    assert sent["x-app-version"] == "7"
    assert (sent["content-type"], sent["content-length"]) == ("application/json", "8")


# -- Included objects -----------------------------------------------------------------------------


def pointer(class_name: str, object_id: str) -> dict[str, str]:
    return {"__type": "Pointer", "className": class_name, "objectId": object_id}


def test_before_find_is_called_for_included_objects(master: Api, receiver: Receiver) -> None:
    first, second = master.make("Player", name="ann"), master.make("Player", name="bob")
    one = master.make("Game", player=pointer("Player", first))
    both = master.make("Game", players=[pointer("Player", first), pointer("Player", second)])
    declare(master, "Player", "beforeFind", receiver.on("/", raw=b""))
    master.get(f"/classes/Game/{one}")
    assert receiver.received == []
    found = master.get(f"/classes/Game/{one}", include="player").json
    assert found["player"]["name"] == "ann"
    found = master.get(f"/classes/Game/{both}", include="players").json
    assert [player["name"] for player in found["players"]] == ["ann", "bob"]
    single, several = (item.json for item in receiver.received)
    assert single["query"]["where"] == {"objectId": first}
    assert several["query"]["where"] == {"objectId": {"$in": sorted([first, second])}}
    assert (single["isGet"], several["isGet"]) == (True, False)


def test_a_refusal_for_included_objects_is_the_response(master: Api, receiver: Receiver) -> None:
    player = master.make("Player")
    master.make("Game", player=pointer("Player", player))
    declare(master, "Player", "beforeFind", receiver.on("/", {"error": "not you"}))
    assert master.get("/classes/Game").status == 200
    reply = master.get("/classes/Game", include="player")
    assert reply.json == {"code": 141, "error": "not you"}


def test_included_objects_are_changed_and_dropped(master: Api, receiver: Receiver) -> None:
    players = [master.make("Player", name=name) for name in ("ann", "bob")]
    master.make("Game", players=[pointer("Player", player) for player in players])

    def answer(item: Received) -> Any:
        kept = [found for found in item.json["objects"] if found["name"] == "bob"]
        return {"success": [{**found, "name": "BOB"} for found in kept]}

    declare(master, "Player", "afterFind", receiver.on("/", answer))
    (game,) = master.results("Game", include="players")
    assert [player["name"] for player in game["players"]] == ["BOB"]
