"""``/classes/_User`` is ``/users``: SDKs use both."""

from __future__ import annotations

import pytest
from django.core.signals import setting_changed

from tests.people import PASSWORD, sign_up


@pytest.mark.parametrize("path", ["/users", "/classes/_User"])
def test_users_see_their_session_token_with_their_account(client, path):
    ann, bob = sign_up("ann"), sign_up("bob", ACL={"*": {"read": True}})
    assert ann.get(f"{path}/{ann.user_id}").json["sessionToken"] == ann.token
    assert "sessionToken" not in ann.get(f"{path}/{bob.user_id}").json
    assert "sessionToken" not in client.get(f"{path}/{bob.user_id}").json


@pytest.mark.parametrize("path", ["/users", "/classes/_User"])
def test_a_sign_up_says_where_the_user_is(client, path):
    reply = client.post(path, {"username": "ann", "password": PASSWORD})
    assert reply.headers["Location"].endswith(f"/api/users/{reply.json['objectId']}")


@pytest.fixture
def anonymous(settings):
    settings.SERVICE = {**settings.SERVICE, "ALLOW_ANONYMOUS_USERS": True}
    yield
    setting_changed.send(None, setting="SERVICE", value=None, enter=False)


@pytest.mark.parametrize("path", ["/users", "/classes/_User"])
def test_a_proof_that_is_known_signs_in(client, anonymous, path):
    body = {"authData": {"anonymous": {"id": "0123456789abcdef0123"}}}
    first, second = client.post(path, body), client.post(path, body)
    assert (first.status, second.status) == (201, 200)
    assert first.json["objectId"] == second.json["objectId"]
    assert first.json["sessionToken"] != second.json["sessionToken"]


@pytest.mark.parametrize("path", ["/api/users", "/api/classes/_User"])
def test_an_item_of_a_batch_shows_the_same(client, path):
    ann = sign_up("ann")
    requests = [{"method": "GET", "path": f"{path}/{ann.user_id}"}]
    (answer,) = ann.post("/batch", {"requests": requests}).json
    assert answer["success"]["sessionToken"] == ann.token
