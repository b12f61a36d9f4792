"""Linking accounts to providers as SDKs do it: what they send back, renew, link and take off."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from django.core.signals import setting_changed

from functions import TriggerRequest, after_save, before_login, before_save
from functions.runtime.registry import registry
from functions.webhooks.payload import shown
from objects.database import maintenance
from objects.users.adapters import ProviderIdentity, Unproven
from tests.objects.users.badge import Badge
from tests.people import PASSWORD, User, as_user, log_in, sign_up, with_token

BADGE = {"badge": {"number": "123", "pin": "321"}}
OTHER_BADGE = {"badge": {"number": "456", "pin": "654"}}
CARD = {"card": {"number": "777", "pin": "777", "colour": "red"}}
DEVICE = {"anonymous": {"id": "8f14e45f-ceea-467f-9575-5f1c6f5f2f4e"}}


class Card(Badge):
    """As a badge; the provider says something else of it, too, which changes."""

    def verify(self, data: Mapping[str, Any]) -> ProviderIdentity:
        identity = super().verify(data)
        if "colour" not in data:
            raise Unproven("no colour")
        return ProviderIdentity(identity.id, {"colour": data["colour"]})


@pytest.fixture(autouse=True)
def providers(settings) -> Iterator[None]:
    settings.SERVICE = {
        **settings.SERVICE,
        "ALLOW_ANONYMOUS_USERS": True,
        "AUTH_ADAPTERS": {
            "badge": {"adapter": "tests.objects.users.badge.Badge"},
            "card": {"adapter": "tests.objects.users.test_linking.Card"},
        },
    }
    with registry.temporarily():
        yield
    setting_changed.send(None, setting="SERVICE", value=None, enter=False)


@pytest.fixture
def ann(client) -> User:
    return as_user("ann", client.post("/users", {"authData": BADGE}))


def auth_data(user: User) -> Any:
    return user.get("/users/me").json.get("authData")


# -- Sessions -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "provider"),
    [(BADGE, "badge"), (DEVICE, "anonymous"), ({**BADGE, **CARD}, "badge,card")],
)
def test_a_session_of_providers_names_them_and_calls_signing_up_a_login(client, data, provider):
    expected = {"action": "login", "authProvider": provider}
    for status in (201, 200):
        reply = client.post("/users", {"authData": data})
        assert reply.status == status
        session = with_token(reply.json["sessionToken"]).get("/sessions/me").json
        assert session["createdWith"] == expected


def test_an_installation_has_one_session_of_a_user_of_a_provider(client, master):
    phone = {"X-Svc-Installation-Id": "phone"}
    for _ in range(3):
        reply = client.call("POST", "/users", {"authData": BADGE}, headers=phone)
    (session,) = master.get("/sessions").json["results"]
    assert session["installationId"] == "phone"
    assert with_token(reply.json["sessionToken"]).get("/users/me").status == 200


def test_signing_in_by_a_provider_names_the_user_s_address(client, ann):
    reply = client.post("/classes/_User", {"authData": BADGE})
    assert reply.status == 200
    assert reply.headers["Location"].endswith(f"/api/users/{ann.user_id}")


def test_linking_by_the_master_key_gives_a_session_and_linking_by_the_user_none(master):
    bob = sign_up("bob")
    path = f"/users/{bob.user_id}"
    assert "sessionToken" not in bob.put(path, {"authData": CARD}).json
    assert "sessionToken" not in master.put(path, {"colour": "red"}).json
    reply = master.put(path, {"authData": BADGE})
    session = with_token(reply.json["sessionToken"]).get("/sessions/me").json
    assert session["user"] == bob.pointer
    assert session["createdWith"] == {"action": "login", "authProvider": "badge"}
    assert "sessionToken" not in master.put(path, {"authData": {"badge": None}}).json
    assert bob.get("/users/me").status == 200


def test_the_read_only_master_key_links_nothing(reader):
    bob = sign_up("bob")
    assert reader.put(f"/users/{bob.user_id}", {"authData": BADGE}).error == (400, 119)
    assert auth_data(bob) is None


# -- What is sent back, and what is new -----------------------------------------------------------


def test_a_second_provider_is_linked_by_all_of_auth_data(ann, client):
    stored = auth_data(ann)
    assert "pin" not in stored["badge"]
    reply = ann.put(f"/users/{ann.user_id}", {"authData": {**stored, **CARD}})
    assert reply.status == 200, reply.json
    assert auth_data(ann) == {**stored, "card": {"id": "777", "colour": "red"}}
    assert client.post("/users", {"authData": CARD}).json["objectId"] == ann.user_id
    assert client.post("/users", {"authData": BADGE}).json["objectId"] == ann.user_id


def test_what_differs_from_the_stored_data_has_to_be_proven(ann, client):
    stored = auth_data(ann)
    path = f"/users/{ann.user_id}"
    for changed in ({"badge": {"id": "456"}}, {"badge": {**stored["badge"], "pin": "000"}}):
        assert ann.put(path, {"authData": changed}).error == (404, 101)
    assert auth_data(ann) == stored
    # Where it isn't stored yet, data without a proof links no one.
    bob = sign_up("bob")
    assert bob.put(f"/users/{bob.user_id}", {"authData": stored}).error == (404, 101)
    assert client.post("/users", {"authData": stored}).error == (404, 101)


def test_signing_in_stores_what_the_provider_says_now(client, master):
    card = as_user("card", client.post("/users", {"authData": CARD}))
    blue = {"card": {**CARD["card"], "colour": "blue"}}
    reply = client.post("/users", {"authData": blue})
    assert reply.json["objectId"] == card.user_id
    assert reply.json["authData"] == {"card": {"id": "777", "colour": "blue"}}
    assert auth_data(card) == reply.json["authData"]
    refused = {"card": {**CARD["card"], "colour": "green", "pin": "no"}}
    assert client.post("/users", {"authData": refused}).error == (404, 101)
    assert master.get(f"/users/{card.user_id}").json["authData"] == reply.json["authData"]


def test_signing_in_links_what_else_is_proven(ann, client):
    reply = client.post("/users", {"authData": {**BADGE, **CARD}})
    assert reply.json["objectId"] == ann.user_id
    assert reply.json["authData"].keys() == {"badge", "card"}
    assert client.post("/users", {"authData": CARD}).json["objectId"] == ann.user_id


def test_signing_in_during_maintenance_changes_nothing(ann, client):
    before = auth_data(ann)
    maintenance.on()
    try:
        reply = client.post("/users", {"authData": {**BADGE, **CARD}})
        assert reply.json["objectId"] == ann.user_id
        assert auth_data(ann) == before
        assert ann.put(f"/users/{ann.user_id}", {"authData": CARD}).error == (400, 119)
    finally:
        maintenance.off()


def test_identities_of_two_users_sign_in_neither(ann, client):
    client.post("/users", {"authData": CARD})
    assert client.post("/users", {"authData": {**BADGE, **CARD}}).error == (400, 208)
    assert auth_data(ann).keys() == {"badge"}


# -- With a session -------------------------------------------------------------------------------


def test_a_proof_of_another_user_is_refused_with_a_session(ann, client):
    bob = sign_up("bob")
    reply = bob.post("/users", {"authData": BADGE})
    assert reply.json == {"code": 208, "error": "this auth is already used"}
    assert bob.put(f"/users/{bob.user_id}", {"authData": BADGE}).json == reply.json
    # Without the proof, nobody learns that the identity belongs to someone.
    forged = {"badge": {"number": "123", "pin": "no"}}
    unknown = {"badge": {"number": "999", "pin": "no"}}
    assert bob.post("/users", {"authData": forged}).error == (404, 101)
    assert bob.post("/users", {"authData": unknown}).error == (404, 101)


def test_a_proof_of_the_session_s_user_keeps_the_session(ann, master):
    reply = ann.post("/users", {"authData": BADGE})
    assert (reply.status, reply.json["sessionToken"]) == (200, ann.token)
    assert len(master.get("/sessions").json["results"]) == 1


# -- Taking identities off ------------------------------------------------------------------------


def test_a_provider_is_taken_off_by_null_and_auth_data_is_gone_with_the_last(ann, client):
    path = f"/users/{ann.user_id}"
    ann.put(path, {"authData": CARD})
    assert ann.put(path, {"authData": {"badge": None}}).status == 200
    assert auth_data(ann) == {"card": {"id": "777", "colour": "red"}}
    assert ann.put(path, {"authData": {"card": None}}).status == 200
    assert "authData" not in ann.get("/users/me").json
    assert client.post("/users", {"authData": BADGE}).status == 201


@pytest.mark.parametrize("caller", ["owner", "master"])
def test_auth_data_itself_is_not_null(ann, client, master, caller):
    api = ann if caller == "owner" else master
    reply = api.put(f"/users/{ann.user_id}", {"authData": None})
    assert reply.json == {"code": 252, "error": "This authentication method is unsupported."}
    new = {"username": "bob", "password": PASSWORD, "authData": None}
    assert client.post("/users", new).error == (400, 252)
    assert auth_data(ann).keys() == {"badge"}


def test_others_take_nothing_off(ann, client):
    bob = sign_up("bob")
    for caller in (bob, client):
        reply = caller.put(f"/users/{ann.user_id}", {"authData": {"badge": None}})
        assert reply.error == (400, 206)
    assert auth_data(ann).keys() == {"badge"}


# -- Anonymous users ------------------------------------------------------------------------------


def test_an_anonymous_user_becomes_one_with_a_password_and_keeps_all_else(client):
    device = as_user("device", client.post("/users", {"authData": DEVICE, "note": "x"}))
    assert auth_data(device) == DEVICE
    change = {"username": "ann", "password": PASSWORD, "authData": {"anonymous": None}}
    reply = device.put(f"/users/{device.user_id}", change)
    assert reply.status == 200
    ann = as_user("ann", log_in("ann"))
    assert ann.user_id == device.user_id
    me = ann.get("/users/me").json
    assert me["note"] == "x"
    assert "authData" not in me
    again = client.post("/users", {"authData": DEVICE})
    assert (again.status, again.json["objectId"] != ann.user_id) == (201, True)


def test_an_anonymous_user_becomes_one_of_a_provider(client):
    device = as_user("device", client.post("/users", {"authData": DEVICE}))
    change = {"authData": {**BADGE, "anonymous": None}}
    assert device.put(f"/users/{device.user_id}", change).status == 200
    assert auth_data(device).keys() == {"badge"}
    assert client.post("/users", {"authData": BADGE}).json["objectId"] == device.user_id


def test_ids_of_anonymous_users_are_as_long_as_the_setting_says(client, settings):
    short = {"authData": {"anonymous": {"id": "1234"}}}
    assert client.post("/users", short).error == (404, 101)
    settings.SERVICE = {**settings.SERVICE, "ANONYMOUS_ID_LENGTH": 4}
    assert client.post("/users", short).status == 201
    assert client.post("/users", {"authData": {"anonymous": {"id": "123"}}}).error == (404, 101)


def test_an_anonymous_user_deletes_the_account(client, master):
    device = as_user("device", client.post("/users", {"authData": DEVICE}))
    assert client.delete(f"/users/{device.user_id}").error == (400, 206)
    assert device.delete(f"/users/{device.user_id}").json == {}
    assert master.get("/users").json["results"] == master.get("/sessions").json["results"] == []
    assert client.post("/users", {"authData": DEVICE}).status == 201


# -- Triggers -------------------------------------------------------------------------------------


def test_triggers_see_the_proven_data_and_never_the_proof(client):
    seen: list[tuple[str, Any]] = []

    @before_save("_User")
    def before(request: TriggerRequest) -> None:
        seen.append(("before", request.object["authData"]))
        request.object["note"] = "x"

    @after_save("_User")
    def after(request: TriggerRequest) -> None:
        seen.append(("after", request.object["authData"]))

    @before_login()
    def entering(request: TriggerRequest) -> None:
        seen.append(("login", request.object["authData"]))

    ann = as_user("ann", client.post("/users", {"authData": BADGE}))
    stored = {"badge": {"id": "123", "number": "123"}}
    assert auth_data(ann) == stored
    assert ("before", stored) in seen
    client.post("/users", {"authData": BADGE})
    assert ("login", stored) in seen
    ann.put(f"/users/{ann.user_id}", {"authData": CARD})
    both = {**stored, "card": {"id": "777", "colour": "red"}}
    assert seen[-1][1] == both
    assert auth_data(ann) == both
    ann.put(f"/users/{ann.user_id}", {"authData": {"badge": None}, "note": "y"})
    assert auth_data(ann).keys() == {"card"}
    assert "pin" not in str(seen)
    assert shown("_User", {"authData": stored, "password": "x"})["authData"] == stored


def test_a_trigger_links_no_identity_without_a_proof(client):
    @before_save("_User")
    def forge(request: TriggerRequest) -> None:
        request.object["authData"] = {"badge": {"id": "123"}}

    assert client.post("/users", {"username": "ann", "password": PASSWORD}).error == (404, 101)
