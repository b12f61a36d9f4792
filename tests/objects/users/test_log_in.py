"""``/login``, ``/verifyPassword``, ``/loginAs``, ``/logout``."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from objects.users.models import FailedLogins
from tests.people import PASSWORD, as_user, log_in, sign_up, with_token
from tests.rest import CLIENT, Api


@pytest.mark.parametrize("name", ["ann", "ANN"])
def test_a_name_and_its_password_give_the_user_and_a_session(client, name):
    ann = sign_up("ann", email="ann@example.org", colour="red")
    reply = log_in(name)
    assert reply.status == 200
    assert reply.json["objectId"] == ann.user_id
    assert (reply.json["colour"], reply.json["email"]) == ("red", "ann@example.org")
    assert reply.json["sessionToken"] != ann.token
    assert with_token(reply.json["sessionToken"]).get("/users/me").status == 200


@pytest.mark.parametrize("name", [" ann", "ann ", "\u3000ann\u00a0 ", " ann@example.org "])
def test_spaces_around_a_name_do_not_matter(client, name):
    ann = sign_up("ann", email="ann@example.org")
    assert log_in(name).json["objectId"] == ann.user_id
    assert log_in(name, "wrong").error == (404, 101)


@pytest.mark.parametrize("name", ["ann\n", "\tann", " "])
def test_control_characters_around_a_name_are_refused(client, name):
    sign_up("ann")
    assert log_in(name).status in (400, 404)


def test_parameters_of_the_query_count_as_well_as_a_body(client):
    sign_up("ann", email="ann@example.org")
    assert client.get("/login", username="ann", password=PASSWORD).status == 200
    reply = client.post("/login", {"email": "ann@example.org", "password": PASSWORD})
    assert reply.json["username"] == "ann"
    reply = client.post("/login", {"_method": "GET", "username": "ann", "password": PASSWORD})
    assert reply.json["username"] == "ann"


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({}, (400, 200)),
        ({"password": PASSWORD}, (400, 200)),
        ({"username": "ann"}, (400, 201)),
        ({"username": "ann", "password": "wrong"}, (404, 101)),
        ({"username": "nobody", "password": PASSWORD}, (404, 101)),
        ({"username": "ann", "password": {"$ne": None}}, (404, 101)),
        ({"username": {"$ne": None}, "password": PASSWORD}, (404, 101)),
        ({"username": "ann", "email": "bob@example.org", "password": PASSWORD}, (404, 101)),
        ({"username": "an%", "password": PASSWORD}, (404, 101)),
    ],
)
def test_anything_else_is_refused(client, body, error):
    sign_up("ann", email="ann@example.org")
    sign_up("bob", email="bob@example.org")
    assert client.post("/login", body).error == error
    assert client.post("/verifyPassword", body).error == error


def test_an_unknown_user_is_reported_the_same_as_a_wrong_password(client):
    sign_up("ann")
    wrong = client.post("/login", {"username": "ann", "password": "wrong"})
    unknown = client.post("/login", {"username": "nobody", "password": "wrong"})
    assert wrong.json == unknown.json


def test_a_session_token_that_comes_along_doesn_t_matter(client):
    sign_up("ann")
    reply = log_in("ann", **{"X-Svc-Session-Token": "r:" + "0" * 32})
    assert reply.status == 200


def test_a_user_whom_no_one_may_see_can_t_log_in(client, master):
    ann = sign_up("ann")
    assert master.put(f"/users/{ann.user_id}", {"ACL": {}}).status == 200
    assert log_in("ann").error == (404, 101)


def test_a_password_is_verified_without_a_session(client, master):
    ann = sign_up("ann")
    reply = client.post("/verifyPassword", {"username": "ann", "password": PASSWORD})
    assert reply.json["objectId"] == ann.user_id
    assert "sessionToken" not in reply.json
    assert len(master.get("/sessions").json["results"]) == 1


def test_the_master_key_logs_in_as_anybody(client, master, reader):
    ann = sign_up("ann")
    reply = master.post("/loginAs", {"userId": ann.user_id})
    again = as_user("ann", reply)
    assert again.get("/users/me").json["objectId"] == ann.user_id
    created_with = again.get("/sessions/me").json["createdWith"]
    assert created_with == {"action": "login", "authProvider": "masterkey"}
    assert master.post("/loginAs", {}).error == (400, 162)
    assert master.post("/loginAs", {"userId": {"$ne": 1}}).error == (400, 162)
    assert master.post("/loginAs", {"userId": "nobody"}).error == (404, 101)
    assert reader.post("/loginAs", {"userId": ann.user_id}).error == (400, 119)
    assert client.post("/loginAs", {"userId": ann.user_id}).error == (403, 119)
    assert ann.post("/loginAs", {"userId": ann.user_id}).error == (403, 119)


def test_the_user_of_a_login_by_the_master_key_is_in_the_query_or_the_body(client, master):
    ann = sign_up("ann")
    query = f"/loginAs?userId={ann.user_id}"
    assert master.post(query).json["objectId"] == ann.user_id
    assert client.post(query).json == {"code": 119, "error": "master key is required"}
    form = {"content_type": "application/x-www-form-urlencoded"}
    reply = master.call("POST", "/loginAs", raw=f"userId={ann.user_id}".encode(), **form)
    assert reply.json["objectId"] == ann.user_id


def test_an_address_given_as_user_name_logs_in(client):
    ann = sign_up("ann", email="ann@example.org")
    sign_up("bob", email="bob@example.org")
    for address in ("ann@example.org", "ANN@example.org"):
        assert log_in(address).json["objectId"] == ann.user_id
        body = {"username": address, "password": PASSWORD}
        assert client.post("/verifyPassword", body).json["objectId"] == ann.user_id
    assert log_in("ann@example.org", "wrong").json == log_in("eve@example.org", "wrong").json
    both = {"username": "bob@example.org", "email": "ann@example.org", "password": PASSWORD}
    assert client.post("/login", both).error == (404, 101)


def test_a_user_name_precedes_the_same_address(client):
    ann = sign_up("ann", email="shared@example.org")
    other = client.post("/users", {"username": "shared@example.org", "password": "another one"})
    assert log_in("shared@example.org", "another one").json["objectId"] == other.json["objectId"]
    assert log_in("shared@example.org").error == (404, 101)
    body = {"email": "shared@example.org", "password": PASSWORD}
    assert client.post("/login", body).json["objectId"] == ann.user_id


@pytest.fixture
def squatted(master):
    """``ann``, whose verified address is the user name of ``squatter``; both ids."""
    ann = sign_up("ann", email="ann@example.org")
    assert master.put(f"/users/{ann.user_id}", {"emailVerified": True}).status == 200
    body = {"username": "ann@example.org", "password": "squatter's"}
    return ann.user_id, Api(CLIENT).post("/users", body).json["objectId"]


@pytest.mark.parametrize("route", ["/login", "/verifyPassword"])
def test_an_address_that_is_another_s_user_name_still_logs_its_owner_in(client, squatted, route):
    ann, squatter = squatted
    for spelling in ("ann@example.org", "ANN@example.org", "ann＠example.org"):  # noqa: RUF001
        body = {"username": spelling, "password": PASSWORD}
        assert client.post(route, body).json["objectId"] == ann
        body["password"] = "squatter's"
        assert client.post(route, body).json["objectId"] == squatter
        body["password"] = "wrong"
        assert client.post(route, body).error == (404, 101)


def test_an_owner_s_conditions_apply_behind_a_squatter(client, master, squatted):
    ann, _ = squatted
    master.put(f"/users/{ann}", {"ACL": {}})
    assert log_in("ann@example.org").error == (404, 101)


def test_a_log_in_by_address_is_no_guess_at_the_user_with_that_name(client, settings, squatted):
    settings.SERVICE = {**settings.SERVICE, "LOCKOUT_THRESHOLD": 3}
    ann, squatter = squatted
    for _ in range(4):
        assert log_in("ann@example.org").json["objectId"] == ann
    assert log_in("ann@example.org", "squatter's").json["objectId"] == squatter
    # Nor does it take back the guesses of others.
    for _ in range(2):
        log_in("ann@example.org", "wrong")
        log_in("ann@example.org")
    log_in("ann@example.org", "wrong")
    assert "locked" in log_in("ann@example.org", "squatter's").json["error"]


def test_a_squatter_s_lock_does_not_lock_the_owner_out(client, settings, squatted):
    settings.SERVICE = {**settings.SERVICE, "LOCKOUT_THRESHOLD": 3}
    ann, squatter = squatted
    FailedLogins.objects.create(
        user_id=squatter, count=3, locked_until=timezone.now() + timedelta(minutes=5)
    )
    assert log_in("ann@example.org").json["objectId"] == ann
    assert "locked" in log_in("ann@example.org", "squatter's").json["error"]


def test_guesses_by_address_count_as_those_by_name(client, settings):
    settings.SERVICE = {**settings.SERVICE, "LOCKOUT_THRESHOLD": 3}
    sign_up("ann", email="ann@example.org")
    for name in ("ann@example.org", "ann", "ann@example.org"):
        assert log_in(name, "wrong").error == (404, 101)
    for name in ("ann@example.org", "ann"):
        assert "locked" in log_in(name).json["error"]


def test_a_form_logs_in_as_json_does(client):
    sign_up("ann", email="ann@example.org")
    form = {"content_type": "application/x-www-form-urlencoded; charset=utf-8"}
    raw = b"username=ann%40example.org&password=correct+horse"
    assert client.call("POST", "/login", raw=raw, **form).json["username"] == "ann"
    json = b'  {"username": "ann", "password": "correct horse"}'
    assert client.call("POST", "/login", raw=json, **form).json["username"] == "ann"
    twice = b"username=ann&username=bob&password=correct+horse"
    assert client.call("POST", "/login", raw=twice, **form).error == (404, 101)
    for broken in (b"\xff=1", b"%ff=1", b"nonsense", b"a=b&" * 200, b"=%00&&"):
        assert client.call("POST", "/login", raw=broken, **form).error == (400, 107)


def test_logging_out_ends_this_session_and_no_other(client):
    ann = sign_up("ann")
    other = as_user("ann", log_in("ann"))
    assert ann.post("/logout").json == {}
    assert ann.get("/users/me").error == (400, 209)
    assert other.get("/users/me").status == 200
    assert client.post("/logout").json == {}


def test_a_new_session_on_an_installation_ends_the_former_one_there(client):
    sign_up("ann")
    first = as_user("ann", log_in("ann", **{"X-Svc-Installation-Id": "phone"}))
    other = as_user("ann", log_in("ann", **{"X-Svc-Installation-Id": "tablet"}))
    second = as_user("ann", log_in("ann", **{"X-Svc-Installation-Id": "phone"}))
    assert first.get("/users/me").error == (400, 209)
    assert other.get("/users/me").status == second.get("/users/me").status == 200


def test_the_master_key_ends_the_session_that_comes_along(client, master, reader):
    ann = sign_up("ann")
    other = as_user("ann", log_in("ann"))
    token = {"X-Svc-Session-Token": ann.token}
    assert reader.call("POST", "/logout", {}, headers=token).json == {}
    assert ann.get("/users/me").status == 200
    assert master.call("POST", "/logout", {}, headers=token).json == {}
    assert master.call("POST", "/logout", {}, headers=token).json == {}
    assert ann.get("/users/me").error == (400, 209)
    assert other.get("/users/me").status == 200
