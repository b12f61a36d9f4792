"""What happens at the same moment: names, sessions, roles."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event
from typing import Any

import pytest
from django.db import connection

from objects.definitions import registry
from tests.people import PASSWORD, log_in, make_role, sign_up
from tests.rest import CLIENT, MASTER, Api, Reply

pytestmark = pytest.mark.django_db(transaction=True)


def at_once(actions: list[Callable[[], Reply]]) -> list[Reply]:
    """Run the actions in threads that begin together."""
    start = Barrier(len(actions))

    def run(action: Callable[[], Any]) -> Any:
        try:
            start.wait(30)
            return action()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(actions)) as pool:
        return [*pool.map(run, actions)]


def test_of_sign_ups_with_one_name_at_once_one_succeeds():
    names = ["ann", "ANN", "Ann", "aNN"]
    replies = at_once(
        [
            lambda name=name: Api(CLIENT).post("/users", {"username": name, "password": PASSWORD})
            for name in names
        ]
    )
    assert sorted(reply.status for reply in replies) == [201, 400, 400, 400]
    assert {reply.json.get("code") for reply in replies} == {None, 202}
    assert len(Api(MASTER).get("/users").json["results"]) == 1
    assert len(Api(MASTER).get("/sessions").json["results"]) == 1


@pytest.mark.slow
def test_a_taken_name_is_refused_as_such_while_the_class_is_read_again():
    # The statement that fails ends what its transaction can read: the class isn't asked for then.
    sign_up("ann")
    over = Event()

    def forget() -> None:
        while not over.is_set():
            registry.forget("_User")

    with ThreadPoolExecutor(1) as pool:
        forgetting = pool.submit(forget)
        try:
            replies = [
                Api(CLIENT).post("/users", {"username": "ANN", "password": PASSWORD})
                for _ in range(30)
            ]
        finally:
            over.set()
        forgetting.result(30)
    assert {(reply.status, reply.json["code"]) for reply in replies} == {(400, 202)}


def test_of_sign_ups_with_one_address_at_once_one_succeeds():
    replies = at_once(
        [
            lambda name=name: Api(CLIENT).post(
                "/users", {"username": name, "password": PASSWORD, "email": "a@example.org"}
            )
            for name in ("ann", "bob", "cat", "dan")
        ]
    )
    assert {reply.json.get("code") for reply in replies} == {None, 203}
    assert len(Api(MASTER).get("/users").json["results"]) == 1


def test_changes_of_roles_at_once_are_all_seen():
    users = [sign_up(name) for name in ("ann", "bob", "cat", "dan")]
    role_id = make_role(Api(MASTER), "staff")
    secret = Api(MASTER).make("Secret", ACL={"role:staff": {"read": True}})
    assert all(user.get(f"/classes/Secret/{secret}").status == 404 for user in users)
    replies = at_once(
        [
            lambda user=user: Api(MASTER).put(
                f"/roles/{role_id}",
                {"users": {"__op": "AddRelation", "objects": [user.pointer]}},
            )
            for user in users
        ]
    )
    assert [reply.status for reply in replies] == [200] * 4
    assert all(user.get(f"/classes/Secret/{secret}").status == 200 for user in users)


def test_a_new_password_and_a_log_in_at_once_leave_no_session_of_the_old_password():
    ann = sign_up("ann")
    for number in range(5):
        old, new = (PASSWORD if number == 0 else f"password {number}"), f"password {number + 1}"
        change, login = at_once(
            [
                lambda p=new: Api(MASTER).put(f"/users/{ann.user_id}", {"password": p}),
                lambda p=old: log_in("ann", p),
            ]
        )
        assert change.status == 200
        if login.status == 200:
            headers = {**CLIENT, "X-Svc-Session-Token": login.json["sessionToken"]}
            assert Api(headers).get("/users/me").error == (400, 209)
