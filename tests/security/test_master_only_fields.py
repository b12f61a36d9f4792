"""Fields of users that decide about rights or features are written by the master key alone."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from django.core import checks
from django.core.signals import setting_changed

from functions import FunctionRequest, before_save, function
from functions.models import FeatureFlag
from functions.runtime.registry import registry
from objects.users.accounts import master_fields
from tests.objects.access.transports import TRANSPORTS
from tests.people import PASSWORD, as_user, sign_up

FIELDS = ("betaTester", "emailVerified", "plan")
ROUTES = ("/users", "/classes/_User")


@pytest.fixture(autouse=True)
def plan_is_ours(settings):
    settings.SERVICE = {**settings.SERVICE, "MASTER_ONLY_USER_FIELDS": ("plan",)}


@pytest.fixture
def temporarily():
    """Forget what the test registers."""
    with registry.temporarily():
        yield


def refuses(reply, field: str) -> bool:
    assert reply.status == 400, reply.json
    assert reply.json["code"] == 119
    named = "email verification" if field == "emailVerified" else field
    return named in reply.json["error"]


def bodies(field: str) -> list[dict[str, object]]:
    """All forms in which a write can name the field."""
    return [
        {field: True},
        {field: False},
        {field: None},
        {field: {"__op": "Delete"}},
        {field: {"__op": "Increment", "amount": 1}},
        {field: {"__op": "Add", "objects": [1]}},
        {field: {"__op": "SetOnInsert", "amount": True}},
        {f"{field}.on": True},
        {f"{field}.on": {"__op": "Delete"}},
        {"colour": "red", field: True},
    ]


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("field", FIELDS)
def test_a_user_can_not_set_one_on_any_way(client, master, route, field):
    ann = sign_up("ann")
    path = f"{route}/{ann.user_id}"
    before = master.get(path).json
    for send in TRANSPORTS:
        for body in bodies(field):
            assert refuses(send(ann, "PUT", path, body), field), (send, body)
    assert master.get(path).json == before


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("field", FIELDS)
def test_a_sign_up_can_not_set_one(client, master, route, field):
    for send in TRANSPORTS:
        for body in bodies(field):
            new = {"username": "bob", "password": PASSWORD, **body}
            assert refuses(send(client, "POST", route, new), field), (send, body)
    assert master.get("/users").json["results"] == []


def test_neither_a_provider_s_sign_up_nor_the_upgrade_of_an_anonymous_user_sets_one(
    client, master, settings
):
    settings.SERVICE = {
        **settings.SERVICE,
        "ALLOW_ANONYMOUS_USERS": True,
        "AUTH_ADAPTERS": {"badge": {"adapter": "tests.objects.users.badge.Badge"}},
    }
    badge = {"badge": {"number": "123", "pin": "321"}}
    device = {"anonymous": {"id": "8f14e45f-ceea-467f-9575-5f1c6f5f2f4e"}}
    assert refuses(client.post("/users", {"authData": badge, "betaTester": True}), "betaTester")
    user = as_user("device", client.post("/users", {"authData": device}))
    value = {"username": "ann", "password": PASSWORD, "authData": {"anonymous": None}}
    path = f"/users/{user.user_id}"
    assert refuses(user.put(path, {**value, "betaTester": True}), "betaTester")
    assert user.put(path, value).status == 200
    assert client.post("/users", {"authData": device, "plan": "pro"}).error == (400, 119)
    # Who has an identity signs in by it: nothing of the body is stored.
    badge_owner = client.post("/users", {"authData": badge})
    again = client.post("/users", {"authData": badge, "betaTester": True})
    assert again.json["objectId"] == badge_owner.json["objectId"]
    assert "betaTester" not in again.json
    setting_changed.send(None, setting="SERVICE", value=None, enter=False)


def test_a_function_with_its_caller_s_rights_sets_none_and_one_with_the_master_key_does(
    client, temporarily
):
    @function("own")
    def own(request: FunctionRequest) -> None:
        request.objects("_User").update(str(request.user_id), {"betaTester": True})

    @function("team")
    def team(request: FunctionRequest) -> None:
        request.objects.as_master("_User").update(str(request.user_id), {"betaTester": True})

    ann = sign_up("ann")
    assert refuses(ann.post("/functions/own"), "betaTester")
    assert ann.post("/functions/team").status == 200
    assert ann.get("/users/me").json["betaTester"] is True


def test_a_trigger_of_the_deployment_may_set_one_for_a_client(client, temporarily):
    @before_save("_User")
    def testers(request):
        if str(request.object.get("email", "")).endswith("@example.org"):
            request.object["betaTester"] = True

    ann = sign_up("ann", email="ann@example.org")
    bob = sign_up("bob", email="bob@example.com")
    assert ann.get("/users/me").json["betaTester"] is True
    assert "betaTester" not in bob.get("/users/me").json
    new = {"username": "cy", "password": PASSWORD, "betaTester": True}
    assert refuses(client.post("/users", new), "betaTester")


@pytest.mark.parametrize("field", FIELDS)
def test_the_master_key_sets_all_of_them(client, master, field):
    ann = sign_up("ann")
    path = f"/users/{ann.user_id}"
    assert master.put(path, {field: True}).status == 200
    assert ann.get(path).json[field] is True
    new = {"username": "bob", "password": PASSWORD, field: True}
    assert master.post("/users", new).status == 201
    assert master.put(path, {field: {"__op": "Delete"}}).status == 200


def test_the_read_only_master_key_sets_none(client, reader):
    ann = sign_up("ann")
    assert reader.put(f"/users/{ann.user_id}", {"betaTester": True}).error == (400, 119)


def test_users_write_their_other_fields_also_those_with_similar_names(client):
    ann = sign_up("ann")
    body = {"betaTesters": 1, "BetaTester": True, "plans": ["x"], "settings": {"betaTester": True}}
    assert ann.put(f"/users/{ann.user_id}", body).status == 200


def test_other_classes_have_such_fields_for_everyone(client, master):
    note = master.make("Note", betaTester=False)
    assert client.put(f"/classes/Note/{note}", {"betaTester": True}).status == 200


def test_no_one_makes_themselves_a_beta_tester(client, master):
    FeatureFlag.objects.update_or_create(name="newMarketplace", defaults={"on": True, "rollout": 0})
    ann = sign_up("ann")

    def has_access() -> bool:
        request = {"feature": "newMarketplace", "userId": ann.user_id}
        access: bool = client.post("/functions/checkFeatureAccess", request).json["result"][
            "hasAccess"
        ]
        return access

    ann.put(f"/users/{ann.user_id}", {"betaTester": True})
    assert not has_access()
    master.put(f"/users/{ann.user_id}", {"betaTester": True})
    assert has_access()


# -- Fields of the deployment ---------------------------------------------------------------------


def warnings() -> list[str]:
    findings = checks.run_checks(tags=["security"], include_deployment_checks=True)
    return [item.msg for item in findings if item.id == "functions.W001"]


def test_the_deployment_check_names_rights_that_hang_on_fields_which_users_write(
    temporarily,
):
    before = warnings()

    @function("exports", require_user_keys={"plan": ["pro"], "company": None})
    def exports(request: FunctionRequest) -> None: ...

    assert warnings() == before

    @function("reports", require_user_keys={"level": [3], "company": None})
    def reports(request: FunctionRequest) -> None: ...

    (new,) = set(warnings()) - set(before)
    assert "reports" in new
    assert "_User.level" in new


def test_the_names_are_those_of_the_service_and_of_the_setting():
    assert [name for name in (*FIELDS, "colour") if master_fields.is_master_only(name)] == [*FIELDS]


def start(value: str) -> subprocess.CompletedProcess[str]:
    code = (
        "from backend.settings import django as settings;"
        "print(settings.SERVICE['MASTER_ONLY_USER_FIELDS'])"
    )
    environment = {**os.environ, "MASTER_ONLY_USER_FIELDS": value}
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_the_setting_is_a_list_of_names():
    assert start("plan, credits").stdout.strip() == "('plan', 'credits')"
    for wrong in ("a b", "password", "plan,email", "x.y", "_x"):
        done = start(wrong)
        assert done.returncode == 1
        assert "MASTER_ONLY_USER_FIELDS must list fields" in done.stderr
