"""``/config``: parameters of the app, read by clients, changed with the master key."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from backend.kernel.errors import ScriptFailed
from objects import triggers
from objects.files.models import StoredFile
from objects.files.orphans import unused_files
from tests.people import make_role, sign_up
from tests.rest import CLIENT, MASTER, Api
from tests.threads import at_once


def params(api):
    reply = api.get("/config")
    assert reply.status == 200, reply.json
    return reply.json["params"]


def save(api, value, hidden=None):
    body = {"params": value} if hidden is None else {"params": value, "masterKeyOnly": hidden}
    return api.put("/config", body)


def test_without_any_parameters_the_config_is_empty(client, master):
    for api in (client, master):
        assert api.get("/config").json == {"params": {}, "masterKeyOnly": {}}


def test_what_the_master_key_saves_clients_read(client, master):
    reply = save(master, {"welcome": "hello", "limits": {"notes": [1, 2.5]}, "on": True})
    assert (reply.status, reply.json) == (200, {"result": True})
    expected = {"welcome": "hello", "limits": {"notes": [1, 2.5]}, "on": True}
    assert params(client) == params(master) == expected


def test_a_save_changes_what_it_names_and_leaves_the_rest(client, master):
    save(master, {"a": 1, "b": 2})
    save(master, {"b": 3, "c": None})
    assert params(client) == {"a": 1, "b": 3, "c": None}
    assert master.put("/config", {}).json == {"result": True}
    assert params(client) == {"a": 1, "b": 3, "c": None}


def test_a_parameter_is_removed_by_the_operator(client, master):
    save(master, {"a": 1, "b": 2}, {"b": True})
    save(master, {"a": {"__op": "Delete"}, "b": {"__op": "Delete"}, "never": {"__op": "Delete"}})
    assert master.get("/config").json == {"params": {}, "masterKeyOnly": {}}


def test_parameters_are_changed_by_update_operators(client, master):
    save(master, {"count": 5, "list": [1, 2]})
    changes = {
        "count": {"__op": "Increment", "amount": 2},
        "fresh": {"__op": "Increment", "amount": 3},
        "list": {"__op": "AddUnique", "objects": [2, 3]},
        "tags": {"__op": "Add", "objects": ["a"]},
    }
    assert save(master, changes).status == 200
    assert params(client) == {"count": 7, "fresh": 3, "list": [1, 2, 3], "tags": ["a"]}
    save(master, {"list": {"__op": "Remove", "objects": [1, 3]}}, {"list": True})
    assert params(client) == {"count": 7, "fresh": 3, "tags": ["a"]}
    assert params(master)["list"] == [2]


def test_increments_at_the_same_time_all_count(transactional_db):
    master = Api(MASTER)
    save(master, {"count": 0})
    change = {"count": {"__op": "Increment", "amount": 1}}
    at_once([partial(save, master, change) for _ in range(8)])
    assert params(master) == {"count": 8}


def test_a_file_that_is_stored_elsewhere_keeps_its_address(client, master):
    file = {"__type": "File", "name": "name.txt", "url": "https://cdn.example.org/name.txt"}
    own = {"__type": "File", "name": f"{'a' * 32}_x.txt", "url": "https://evil.example.org/x.txt"}
    save(master, {"file": file, "own": own})
    assert params(client)["file"] == file
    assert "evil" not in params(client)["own"]["url"]


def test_parameters_for_the_master_key_alone_are_hidden_from_all_others(master, reader):
    save(master, {"public": 1, "secret": "s3cret"}, {"secret": True, "public": False})
    shown = {"params": {"public": 1, "secret": "s3cret"}, "masterKeyOnly": {"secret": True}}
    assert master.get("/config").json == reader.get("/config").json == shown
    ann, bob = sign_up("ann"), sign_up("bob")
    make_role(master, "Team", users=[ann])
    for api in (Api(CLIENT), ann, bob):
        assert api.get("/config").json == {"params": {"public": 1}, "masterKeyOnly": {}}


def test_a_parameter_that_is_set_again_without_being_named_secret_is_public(client, master):
    """As the SDKs document it: what isn't in ``masterKeyOnly`` is for everybody."""
    save(master, {"a": 1, "b": 1}, {"a": True, "b": True})
    save(master, {"a": 2})
    assert params(client) == {"a": 2}
    assert master.get("/config").json["masterKeyOnly"] == {"b": True}


def test_only_the_master_key_saves(client, master, reader, application):
    save(master, {"a": 1})
    ann = sign_up("ann")
    make_role(master, "Team", users=[ann])
    for api in (client, ann):
        assert save(api, {"a": 2}).error == (403, 119)
    assert save(reader, {"a": 2}).error == (400, 119)
    assert save(application, {"a": 2}).error == (403, 262)
    assert application.get("/config").error == (403, 262)
    assert params(client) == {"a": 1}


def test_typed_values_are_stored_in_their_canonical_form(client, master):
    pointer = {"__type": "Pointer", "className": "Game", "objectId": "abc"}
    values = {
        "when": {"__type": "Date", "iso": "2020-01-01T01:00:00+01:00"},
        "place": {"__type": "GeoPoint", "latitude": 1.0, "longitude": 2, "more": 3},
        "game": pointer | {"__type": "Object", "score": 1},
        "big": 10**30,
        "whole": 1.0,
    }
    assert save(master, values).status == 200
    assert params(client) == {
        "when": {"__type": "Date", "iso": "2020-01-01T00:00:00.000Z"},
        "place": {"__type": "GeoPoint", "latitude": 1, "longitude": 2},
        "game": pointer,
        "big": 10**30,
        "whole": 1,
    }


@pytest.mark.parametrize(
    ("body", "code", "place"),
    [
        ({"params": [1]}, 107, "params"),
        ({"params": {"a b": 1}}, 105, "a b"),
        ({"params": {"": 1}}, 105, "params"),
        ({"params": {"a.b": 1}}, 105, "a.b"),
        ({"params": {"_a": 1}}, 105, "_a"),
        ({"params": {"constructor": 1}}, 105, "constructor"),
        ({"params": {"a": {"constructor": 1}}}, 105, "constructor"),
        ({"params": {"a": {"$b": 1}}}, 121, "params.a.$b"),
        ({"params": {"a": {"__type": "Date", "iso": "soon"}}}, 111, "params.a.iso"),
        ({"params": {"a": {"__type": "Relation", "className": "Game"}}}, 111, "params.a"),
        ({"params": {"a": {"__op": "AddRelation", "objects": []}}}, 108, "params.a"),
        ({"params": {"a": {"__op": "Increment", "amount": "1"}}}, 107, "params.a"),
        ({"params": {"kept": {"__op": "Add", "objects": [1]}}}, 111, "params.kept"),
        ({"params": {"a": {"__op": ["Delete"]}}}, 108, "params.a"),
        ({"params": {"a": {"b": {"__op": "Delete"}}}}, 107, "params.a"),
        ({"params": {"a": "\u0000"}}, 111, "params.a"),
        ({"params": {"a": 1}, "masterKeyOnly": ["a"]}, 107, "masterKeyOnly"),
        ({"params": {"a": 1}, "masterKeyOnly": {"a": "yes"}}, 107, "masterKeyOnly.a"),
        ({"params": {"a": 1}, "masterKeyOnly": {"b": True}}, 107, "masterKeyOnly.b"),
    ],
)
def test_a_save_that_makes_no_sense_is_refused_and_changes_nothing(master, body, code, place):
    save(master, {"kept": 1})
    refused = master.put("/config", body)
    assert refused.error == (400, code)
    assert place in refused.json["error"]
    assert params(master) == {"kept": 1}


def test_there_are_at_most_1000_parameters_of_together_one_megabyte(master):
    assert save(master, {f"p{n}": n for n in range(1000)}).status == 200
    assert save(master, {"one_more": 1}).error == (413, 116)
    assert save(master, {"one_more": 1, "p0": {"__op": "Delete"}}).status == 200
    assert save(master, {"p1": "x" * 1024 * 1024}).error == (413, 116)
    assert params(master)["p1"] == 1


def test_a_batch_reads_and_saves_the_config(master):
    requests = [
        {"method": "PUT", "path": "/api/config", "body": {"params": {"a": 1}}},
        {"method": "GET", "path": "/api/config"},
        {"method": "PUT", "path": "/api/config", "body": {"params": {"a b": 1}}},
    ]
    first, second, third = master.post("/batch", {"requests": requests}).json
    assert first == {"success": {"result": True}}
    assert second["success"]["params"] == {"a": 1}
    assert third["error"]["code"] == 105
    assert master.post("/batch", {"requests": requests, "transaction": True}).status == 400


@pytest.fixture
def trigger():
    """Registers handlers for the time of a test."""
    registered = []

    def register(event, handler):
        triggers.register(event, triggers.CONFIG, handler)
        registered.append((event, triggers.CONFIG, handler))

    yield register
    for item in registered:
        triggers.unregister(*item)


def test_a_trigger_before_the_save_changes_or_refuses_it(master, client, trigger):
    save(master, {"a": 1, "secret": 1}, {"secret": True})
    saved_values = []

    def check(occasion):
        saved_values.append((dict(occasion.object), dict(occasion.original)))
        if occasion.object.get("a") == "bad":
            raise ScriptFailed("a can't be that")
        occasion.object["stamped"] = 1.0
        occasion.object.pop("gone", None)

    trigger("before_save", check)
    assert save(master, {"a": 2, "gone": 1}).status == 200
    assert saved_values == [({"a": 2, "gone": 1, "secret": 1}, {"a": 1, "secret": 1})]
    assert params(client) == {"a": 2, "stamped": 1}
    assert master.get("/config").json["masterKeyOnly"] == {"secret": True}
    assert save(master, {"a": "bad", "b": 1}).error == (400, 141)
    assert params(client) == {"a": 2, "stamped": 1}


@pytest.mark.django_db(transaction=True)
def test_a_trigger_after_the_save_sees_what_was_saved(trigger):
    master = Api(MASTER)
    save(master, {"a": 1})
    saved_values = []
    trigger(
        "after_save", lambda occasion: saved_values.append((occasion.object, occasion.original))
    )
    save(master, {"b": 2})
    assert save(master, {"a b": 2}).status == 400
    assert saved_values == [({"a": 1, "b": 2}, {"a": 1})]


def test_a_file_that_a_parameter_names_is_in_use(master):
    names = []
    for _ in range(2):
        body = {"base64": "aGVsbG8=", "_ContentType": "text/plain", "_ApplicationId": "test-app"}
        made = Api({}).post("/files/a.txt", {**body, "_MasterKey": "test-master-key"})
        names.append(made.json["name"])
    StoredFile.objects.update(created_at=datetime.now(UTC) - timedelta(days=2))
    assert save(master, {"logo": {"__type": "File", "name": names[0]}}).status == 200
    assert params(master)["logo"]["url"].endswith(names[0])
    with unused_files() as results:
        assert [unused_file.name for unused_file in results] == names[1:]


@pytest.mark.django_db(transaction=True)
def test_saves_at_the_same_moment_lose_nothing():
    saves = [
        partial(save, Api(MASTER), {f"p{n}": n, "last": n}, {f"p{n}": n % 2 == 0})
        for n in range(12)
    ]
    assert [reply.status for reply in at_once(saves)] == [200] * 12
    stored = Api(MASTER).get("/config").json
    assert stored["params"].pop("last") in range(12)
    assert stored["params"] == {f"p{n}": n for n in range(12)}
    assert stored["masterKeyOnly"] == {f"p{n}": True for n in range(0, 12, 2)}


def test_a_flag_is_deleted_with_its_parameter(master):
    """As Parse Dashboard does it."""
    body = {"params": {"greeting": "hello"}, "masterKeyOnly": {"greeting": True}}
    assert master.put("/config", body).status == 200
    deletion = {"greeting": {"__op": "Delete"}}
    assert master.put("/config", {"params": deletion, "masterKeyOnly": deletion}).status == 200
    assert master.get("/config").json == {"params": {}, "masterKeyOnly": {}}
