"""``/installations``: one object for one app on one device, however often it registers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.people import sign_up
from tests.rest import CLIENT, MASTER, Api, Reply
from tests.threads import at_once

PHONE = "11111111-aaaa-bbbb-cccc-222222222222"
TABLET = "33333333-aaaa-bbbb-cccc-444444444444"
TOKEN = "0123456789abcdef" * 4
OTHER_TOKEN = "fedcba9876543210" * 4


def register(caller: Api, **fields: Any) -> str:
    """Register an installation; the id of its object."""
    reply = caller.post("/installations", {"deviceType": "ios", **fields})
    assert reply.status in (200, 201), reply.json
    object_id: str = reply.json["objectId"]
    return object_id


def stored(master: Api) -> dict[str, dict[str, Any]]:
    """All installations by their ids."""
    return {answer["objectId"]: answer for answer in master.get("/installations").json["results"]}


def test_an_update_may_repeat_the_id_of_the_object(client):
    place = register(client, installationId=PHONE, deviceType="ios")
    path = f"/installations/{place}"
    assert client.put(path, {"objectId": place, "deviceToken": TOKEN}).status == 200
    assert client.get(path).json["deviceToken"] == TOKEN
    assert client.put(path, {"objectId": "another", "badge": 1}).error == (400, 105)


# -- What a registration needs ---------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/installations", "/classes/_Installation"])
def test_a_device_registers_and_sees_and_changes_its_installation(client, path):
    body = {
        "installationId": PHONE.upper(),
        "deviceToken": TOKEN.upper(),
        "deviceType": "ios",
        "channels": ["news"],
        "badge": 3,
        "timeZone": "Europe/Paris",
        "favourite": "red",
    }
    reply = client.post(path, body)
    assert reply.status == 201
    assert set(reply.json) == {"objectId", "createdAt"}
    assert reply.headers["Location"].endswith(f"/_Installation/{reply.json['objectId']}")
    place = f"{path}/{reply.json['objectId']}"
    results = client.get(place).json
    assert {name: results[name] for name in body} == {
        **body,
        "installationId": PHONE,
        "deviceToken": TOKEN,
    }
    assert "ACL" not in results
    change = {"channels": {"__op": "AddUnique", "objects": ["sport"]}, "badge": 0}
    reply = client.put(place, change)
    assert (reply.status, reply.json["channels"]) == (200, ["news", "sport"])
    assert client.get(place).json["badge"] == 0


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({}, (400, 135)),
        ({"deviceType": "ios"}, (400, 135)),
        ({"deviceType": "ios", "deviceToken": ""}, (400, 135)),
        ({"deviceType": "ios", "installationId": None}, (400, 135)),
        ({"installationId": PHONE}, (400, 135)),
        ({"deviceToken": TOKEN}, (400, 135)),
        ({"deviceType": "ios", "deviceToken": {"$ne": None}}, (400, 111)),
        ({"deviceType": "ios", "installationId": {"$regex": "."}}, (400, 111)),
        ({"deviceType": "ios", "installationId": [PHONE]}, (400, 111)),
        ({"deviceType": 5, "installationId": PHONE}, (400, 111)),
        ({"deviceType": "ios", "installationId": PHONE, "appIdentifier": {"$ne": 1}}, (400, 111)),
        ({"deviceType": "ios", "installationId": PHONE, "channels": "news"}, (400, 111)),
    ],
)
def test_what_is_missing_or_wrong_is_named_and_nothing_is_stored(client, master, body, error):
    register(master, deviceToken=OTHER_TOKEN)
    assert client.post("/installations", body).error == error
    assert len(stored(master)) == 1


def test_a_short_token_keeps_its_case(client, master):
    object_id = register(client, deviceToken="aBc", deviceType="android")
    assert stored(master)[object_id]["deviceToken"] == "aBc"


def test_the_header_names_the_installation_of_a_client_alone(client, master):
    caller = Api({**CLIENT, "X-Svc-Installation-Id": PHONE.upper()})
    object_id = register(caller)
    assert stored(master)[object_id]["installationId"] == PHONE
    assert register(caller, badge=1) == object_id
    operator = Api({**MASTER, "X-Svc-Installation-Id": PHONE})
    assert operator.post("/installations", {"deviceType": "ios"}).error == (400, 135)


# -- Registering again -----------------------------------------------------------------------------


def test_the_same_installation_id_is_the_same_object(client, master):
    first = register(client, installationId=PHONE, channels=["news"])
    reply = client.post("/installations", {"installationId": PHONE.upper(), "badge": 2})
    assert reply.status == 200
    assert reply.json["objectId"] == first
    assert set(reply.json) == {"objectId", "createdAt", "updatedAt"}
    assert "Location" not in reply.headers
    (results,) = stored(master).values()
    assert (results["channels"], results["badge"]) == (["news"], 2)
    assert reply.json["createdAt"] == results["createdAt"]


def test_an_operator_counts_on_from_what_is_stored(client, master):
    register(client, installationId=PHONE, badge=2)
    reply = client.post(
        "/installations",
        {"installationId": PHONE, "badge": {"__op": "Increment", "amount": 1}},
    )
    assert reply.json["badge"] == 3


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"deviceToken": TOKEN}, {"deviceToken": TOKEN.upper()}),
        ({"deviceToken": TOKEN}, {"deviceToken": TOKEN, "installationId": PHONE}),
        ({"deviceToken": TOKEN, "installationId": PHONE}, {"deviceToken": TOKEN}),
    ],
)
def test_a_token_alone_names_the_device_that_has_it(client, master, first, second):
    object_id = register(client, **first, channels=["news"])
    assert register(client, **second) == object_id
    (results,) = stored(master).values()
    assert results["deviceToken"] == TOKEN
    assert results["channels"] == ["news"]
    assert results.get("installationId") == (first | second).get("installationId")


def test_a_new_installation_takes_over_the_token_of_another(client, master):
    register(client, installationId=PHONE, deviceToken=TOKEN)
    second = register(client, installationId=TABLET, deviceToken=TOKEN)
    assert stored(master).keys() == {second}


def test_a_known_installation_takes_over_the_token_of_another(client, master):
    phone = register(client, installationId=PHONE, deviceToken=TOKEN)
    tablet = register(client, installationId=TABLET, channels=["news"])
    assert register(client, installationId=TABLET, deviceToken=TOKEN) == tablet
    results = stored(master)
    assert results.keys() == {tablet}
    assert (results[tablet]["deviceToken"], results[tablet]["channels"]) == (TOKEN, ["news"])
    register(client, installationId=PHONE)
    assert client.get(f"/installations/{phone}").error == (404, 101)


def test_a_token_of_another_app_is_left_alone(client, master):
    first = register(client, installationId=PHONE, deviceToken=TOKEN, appIdentifier="org.one")
    second = register(client, installationId=TABLET, deviceToken=TOKEN, appIdentifier="org.two")
    assert stored(master).keys() == {first, second}
    reply = client.post("/installations", {"deviceType": "ios", "deviceToken": TOKEN})
    assert reply.error == (400, 132)


def test_an_installation_and_a_device_that_turn_out_to_be_one_become_one(client, master):
    tokens = register(client, deviceToken=TOKEN, badge=1)
    register(client, installationId=PHONE, channels=["news"], badge=9)
    assert register(client, installationId=PHONE, deviceToken=TOKEN) == tokens
    (results,) = stored(master).values()
    assert (results["installationId"], results["deviceToken"]) == (PHONE, TOKEN)
    assert (results["channels"], results["badge"]) == (["news"], 1)


# -- Changing --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        {"installationId": TABLET},
        {"installationId": None},
        {"installationId": {"__op": "Delete"}},
        {"deviceType": "android"},
        {"deviceType": {"__op": "Delete"}},
    ],
)
def test_what_an_installation_is_never_changes(client, master, change):
    object_id = register(client, installationId=PHONE, deviceToken=TOKEN)
    for caller in (client, master):
        assert caller.put(f"/installations/{object_id}", change).error == (400, 136)
    assert stored(master)[object_id]["installationId"] == PHONE


def test_the_token_of_an_installation_may_change_and_go(client, master):
    object_id = register(client, installationId=PHONE, deviceToken=TOKEN)
    same = {"installationId": PHONE.upper(), "deviceType": "ios", "deviceToken": OTHER_TOKEN}
    assert client.put(f"/installations/{object_id}", same).status == 200
    assert stored(master)[object_id]["deviceToken"] == OTHER_TOKEN
    assert client.put(f"/installations/{object_id}", {"deviceToken": None}).status == 200
    assert "deviceToken" not in stored(master)[object_id]


@pytest.mark.parametrize("value", [OTHER_TOKEN, None, {"__op": "Delete"}])
def test_the_token_that_a_device_is_known_by_stays(client, value):
    object_id = register(client, deviceToken=TOKEN)
    reply = client.put(f"/installations/{object_id}", {"deviceToken": value})
    assert reply.error == (400, 136)
    assert "deviceToken" in reply.json["error"]


def test_an_update_takes_over_the_token_of_another(client, master):
    register(client, installationId=PHONE, deviceToken=TOKEN)
    tablet = register(client, installationId=TABLET)
    assert client.put(f"/installations/{tablet}", {"deviceToken": TOKEN}).status == 200
    assert stored(master).keys() == {tablet}


def test_a_device_learns_the_installation_that_it_is(client, master):
    register(client, installationId=PHONE, channels=["news"])
    tokens = register(client, deviceToken=TOKEN, score=1)
    change = {
        "installationId": PHONE,
        "deviceToken": TOKEN,
        "score": {"__op": "Increment", "amount": 1},
    }
    assert client.put(f"/installations/{tokens}", change).json["score"] == 2
    results = stored(master)
    assert results.keys() == {tokens}
    assert (results[tokens]["installationId"], results[tokens]["channels"]) == (PHONE, ["news"])


def test_an_update_says_which_object_is_left(client, master):
    tokens = register(client, deviceToken=TOKEN)
    phone = register(client, installationId=PHONE, channels=["news"])
    reply = client.put(f"/installations/{phone}", {"deviceToken": TOKEN})
    assert (reply.status, reply.json["objectId"]) == (200, tokens)
    assert stored(master).keys() == {tokens}
    assert stored(master)[tokens]["channels"] == ["news"]
    other = register(client, deviceToken=OTHER_TOKEN, badge=4)
    reply = client.put(f"/installations/{other}", {"installationId": PHONE})
    assert (reply.status, reply.json["objectId"]) == (200, tokens)
    results = stored(master)
    assert results.keys() == {tokens}
    assert (results[tokens]["badge"], results[tokens]["deviceToken"]) == (4, TOKEN)


# -- Who may --------------------------------------------------------------------------------------


def test_clients_neither_list_nor_count_nor_remove_installations(client, master, reader):
    object_id = register(client, installationId=PHONE)
    ann = sign_up("ann")
    for caller in (client, ann):
        for path in ("/installations", "/classes/_Installation"):
            assert caller.get(path).error == (400, 119)
            assert caller.get(path, count=1, limit=0).error == (400, 119)
            assert caller.get(path, where={"installationId": PHONE}).error == (400, 119)
            assert caller.delete(f"{path}/{object_id}").error == (400, 119)
    assert reader.get("/installations").json["results"][0]["objectId"] == object_id
    assert reader.delete(f"/installations/{object_id}").error == (400, 119)
    assert reader.post("/installations", {"installationId": PHONE}).error == (400, 119)
    assert master.delete(f"/installations/{object_id}").status == 200


def test_other_queries_are_no_way_around(client, master):
    object_id = register(client, installationId=PHONE, deviceToken=TOKEN)
    pointer = {"__type": "Pointer", "className": "_Installation", "objectId": object_id}
    master.make("Note", phone=PHONE, device=pointer)
    inner = {"className": "_Installation", "where": {"deviceToken": TOKEN}}
    for where in (
        {"device": {"$inQuery": inner}},
        {"device": {"$notInQuery": inner}},
        {"phone": {"$select": {"query": inner, "key": "installationId"}}},
        {"phone": {"$dontSelect": {"query": inner, "key": "installationId"}}},
        {"$or": [{"device": {"$inQuery": inner}}]},
    ):
        assert len(master.results("Note", where=where)) in (0, 1)
        assert client.get("/classes/Note", where=where).error == (400, 119), where


def test_an_access_list_of_an_installation_holds(client, master):
    ann = sign_up("ann")
    own = {ann.user_id: {"read": True, "write": True}}
    object_id = register(ann, installationId=PHONE, deviceToken=TOKEN, ACL=own)
    again = {"deviceType": "ios", "installationId": PHONE, "badge": 1}
    assert client.get(f"/installations/{object_id}").error == (404, 101)
    assert client.post("/installations", again).error == (404, 101)
    same_token = {"deviceType": "ios", "deviceToken": TOKEN}
    assert client.post("/installations", same_token).error == (404, 101)
    assert ann.post("/installations", again).json["objectId"] == object_id
    # Another user's registration doesn't remove what its caller may not write.
    other = register(client, installationId=TABLET, deviceToken=TOKEN)
    assert stored(master).keys() == {object_id, other}


def test_two_installations_become_one_only_for_who_may_change_both(client, master):
    ann = sign_up("ann")
    own = {ann.user_id: {"read": True, "write": True}}
    phone = register(ann, installationId=PHONE, secret="x", ACL=own)
    tokens = register(client, deviceToken=TOKEN)
    both = {"deviceType": "ios", "installationId": PHONE, "deviceToken": TOKEN}
    assert client.post("/installations", both).error == (404, 101)
    assert stored(master).keys() == {phone, tokens}
    assert ann.post("/installations", both).json["objectId"] == tokens
    # What was private stays so.
    assert stored(master)[tokens]["ACL"] == own
    assert client.get(f"/installations/{tokens}").error == (404, 101)


def test_permissions_of_the_class_hold(client, master):
    permissions = {"get": {"*": True}, "create": {"*": True}, "update": {}}
    reply = master.put("/schemas/_Installation", {"classLevelPermissions": permissions})
    assert reply.status == 200, reply.json
    register(client, installationId=PHONE, deviceToken=TOKEN)
    again = {"deviceType": "ios", "installationId": PHONE}
    assert client.post("/installations", again).error == (400, 119)
    register(client, installationId=TABLET, deviceToken=TOKEN)
    assert len(stored(master)) == 2


# -- Batches and races -----------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/api/installations", "/api/classes/_Installation"])
@pytest.mark.parametrize("transaction", [False, True])
def test_a_batch_registers_by_the_same_rules(client, master, path, transaction):
    bodies = [
        {"installationId": PHONE, "deviceType": "ios"},
        {"installationId": PHONE, "deviceToken": TOKEN},
        {"installationId": TABLET, "deviceType": "ios", "deviceToken": TOKEN},
    ]
    requests = [{"method": "POST", "path": path, "body": body} for body in bodies]
    reply = client.post("/batch", {"requests": requests, "transaction": transaction})
    first, second, third = (answer["success"]["objectId"] for answer in reply.json)
    assert first == second
    assert stored(master).keys() == {third}
    reply = client.post("/batch", {"requests": [{"method": "POST", "path": path, "body": {}}]})
    assert reply.json[0]["error"]["code"] == 135


@pytest.mark.django_db(transaction=True)
def test_registrations_at_once_give_one_object():
    client, master = Api(CLIENT), Api(MASTER)
    body = {"installationId": PHONE, "deviceType": "ios"}
    replies = at_once([lambda: client.post("/installations", body)] * 8)
    assert sorted(reply.status for reply in replies) == [200] * 7 + [201]
    assert len({reply.json["objectId"] for reply in replies}) == 1
    assert len(stored(master)) == 1


@pytest.mark.django_db(transaction=True)
def test_one_of_those_that_claim_a_token_at_once_has_it():
    client, master = Api(CLIENT), Api(MASTER)
    for number in range(3):
        client.post("/installations", {"installationId": f"known-{number}", "deviceType": "ios"})
    existing = list(stored(master))

    def create(number: int) -> int:
        ids = {"installationId": f"new-{number}", "deviceToken": TOKEN}
        return client.post("/installations", {"deviceType": "ios", **ids}).status

    def change(object_id: str) -> int:
        return client.put(f"/installations/{object_id}", {"deviceToken": TOKEN}).status

    actions = [lambda n=n: create(n) for n in range(5)] + [lambda i=i: change(i) for i in existing]
    statuses = at_once(actions)
    assert all(status in (200, 201, 404) for status in statuses), statuses
    owners = [item for item in stored(master).values() if item.get("deviceToken") == TOKEN]
    assert len(owners) == 1


@pytest.mark.django_db(transaction=True)
def test_objects_that_become_one_at_once_are_one():
    client, master = Api(CLIENT), Api(MASTER)
    both = {"deviceType": "ios", "installationId": PHONE, "deviceToken": TOKEN}

    def actions() -> list[Callable[[], Reply]]:
        phone = f"/installations/{register(client, installationId=PHONE, channels=['news'])}"
        tokens = f"/installations/{register(client, deviceToken=TOKEN)}"
        return [
            lambda: client.post("/installations", both),
            lambda: client.put(phone, {"deviceToken": TOKEN}),
            lambda: client.put(tokens, {"installationId": PHONE}),
            lambda: client.post("/installations", {"deviceType": "ios", "deviceToken": TOKEN}),
        ]

    for _ in range(5):
        master.delete("/purge/_Installation")
        replies = at_once(actions())
        # Who comes too late finds another object, or was one of two that had to be repeated.
        assert {reply.json.get("code", 0) for reply in replies} <= {0, 101, 251}
        (results,) = stored(master).values()
        assert (results["installationId"], results["deviceToken"]) == (PHONE, TOKEN)
        assert results["channels"] == ["news"]
