"""``PUT`` and ``DELETE /users/ID``: an account is its user's own."""

from __future__ import annotations

import pytest

from tests.people import PASSWORD, log_in, sign_up, with_token


def test_users_change_their_own_fields(client):
    ann = sign_up("ann")
    reply = ann.put(
        f"/users/{ann.user_id}", {"colour": "red", "age": {"__op": "Increment", "amount": 3}}
    )
    assert reply.status == 200
    assert set(reply.json) == {"updatedAt", "age"}
    assert ann.get("/users/me").json["colour"] == "red"


def test_no_other_caller_changes_or_removes_an_account(client, master, reader):
    ann, bob = sign_up("ann"), sign_up("bob")
    # Not even a user whom the access list lets write.
    ann.put(f"/users/{ann.user_id}", {"ACL": {"*": {"read": True, "write": True}}})
    for path in (f"/users/{ann.user_id}", f"/classes/_User/{ann.user_id}"):
        for caller in (bob, client):
            assert caller.put(path, {"colour": "red"}).error == (400, 206)
            assert caller.delete(path).error == (400, 206)
        assert reader.put(path, {"colour": "red"}).error == (400, 119)
        assert reader.delete(path).error == (400, 119)
    assert "colour" not in ann.get("/users/me").json
    assert master.put(f"/users/{ann.user_id}", {"colour": "blue"}).status == 200
    assert ann.get("/users/me").json["colour"] == "blue"


def test_a_user_keeps_the_right_to_their_own_account(client):
    ann = sign_up("ann")
    assert ann.put(f"/users/{ann.user_id}", {"ACL": {}}).status == 200
    assert ann.get("/users/me").json["ACL"] == {ann.user_id: {"read": True, "write": True}}
    assert ann.put(f"/users/{ann.user_id}", {"ACL": {"__op": "Delete"}}).status == 200
    assert ann.get("/users/me").json["ACL"] == {ann.user_id: {"read": True, "write": True}}


def test_a_name_can_change_and_is_free_again(client):
    ann, bob = sign_up("ann"), sign_up("bob")
    assert ann.put(f"/users/{ann.user_id}", {"username": "BOB"}).error == (400, 202)
    assert ann.put(f"/users/{ann.user_id}", {"username": "Ann"}).status == 200
    assert ann.put(f"/users/{ann.user_id}", {"username": ""}).error == (400, 200)
    assert bob.put(f"/users/{bob.user_id}", {"username": "robert"}).status == 200
    assert log_in("bob").error == (404, 101)
    assert log_in("robert").status == 200
    sign_up("bob")


def test_an_address_can_change_be_removed_and_is_free_again(client, master):
    ann, bob = sign_up("ann", email="ann@example.org"), sign_up("bob")
    assert bob.put(f"/users/{bob.user_id}", {"email": "ANN@example.org"}).error == (400, 203)
    assert ann.put(f"/users/{ann.user_id}", {"email": {"__op": "Delete"}}).status == 200
    assert ann.get("/users/me").json.get("email") is None
    assert bob.put(f"/users/{bob.user_id}", {"email": "ANN@example.org"}).status == 200
    assert bob.put(f"/users/{bob.user_id}", {"email": 5}).error == (400, 125)


def test_clients_don_t_say_whether_an_address_is_verified(client, master):
    ann = sign_up("ann", email="ann@example.org")
    assert ann.put(f"/users/{ann.user_id}", {"emailVerified": True}).error == (400, 119)
    assert master.put(f"/users/{ann.user_id}", {"emailVerified": True}).status == 200
    assert ann.get("/users/me").json["emailVerified"] is True
    ann.put(f"/users/{ann.user_id}", {"email": "other@example.org"})
    assert ann.get("/users/me").json["emailVerified"] is False


def test_a_new_password_ends_all_sessions_and_begins_one(client):
    ann = sign_up("ann")
    other = log_in("ann").json["sessionToken"]
    reply = ann.put(f"/users/{ann.user_id}", {"password": "another one"})
    assert set(reply.json) == {"updatedAt", "sessionToken"}
    assert ann.get("/users/me").error == (400, 209)
    assert with_token(other).get("/users/me").error == (400, 209)
    assert with_token(reply.json["sessionToken"]).get("/users/me").status == 200
    assert log_in("ann").error == (404, 101)
    assert log_in("ann", "another one").status == 200


def test_a_new_password_by_the_master_key_ends_all_sessions(client, master):
    ann = sign_up("ann")
    reply = master.put(f"/users/{ann.user_id}", {"password": "another one"})
    assert set(reply.json) == {"updatedAt"}
    assert ann.get("/users/me").error == (400, 209)
    assert log_in("ann", "another one").status == 200


@pytest.mark.parametrize(
    "value", ["", None, 5, {"__op": "Delete"}, {"__op": "Increment", "amount": 1}]
)
def test_a_password_is_a_text(client, value):
    ann = sign_up("ann")
    assert ann.put(f"/users/{ann.user_id}", {"password": value}).error == (400, 201)
    assert log_in("ann", PASSWORD).status == 200


def test_removing_an_account_removes_all_that_belongs_to_it(client, master):
    from objects.users.models import Password, Session

    ann = sign_up("ann")
    log_in("ann")
    assert ann.delete(f"/users/{ann.user_id}").json == {}
    assert ann.get("/users/me").error == (400, 209)
    assert log_in("ann").error == (404, 101)
    assert not Password.objects.exists()
    assert not Session.objects.exists()
    sign_up("ann")


def test_purging_the_class_removes_all_that_belongs_to_users(client, master):
    from objects.users.models import Password

    ann = sign_up("ann")
    assert master.delete("/purge/_User").status == 200
    assert ann.get("/users/me").error == (400, 209)
    assert not Password.objects.exists()
    sign_up("ann")
