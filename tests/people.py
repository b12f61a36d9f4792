"""Users of the REST face."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.rest import CLIENT, Api, Reply

PASSWORD = "correct horse"


@dataclass
class User(Api):
    """A caller with a user's session."""

    user_id: str = ""
    name: str = ""
    token: str = ""

    @property
    def pointer(self) -> dict[str, str]:
        return {"__type": "Pointer", "className": "_User", "objectId": self.user_id}


def with_token(token: str, **headers: str) -> Api:
    """A client with this session token."""
    return Api({**CLIENT, "X-Svc-Session-Token": token, **headers})


def as_user(name: str, reply: Reply) -> User:
    """The user whom an answer has signed up or in."""
    assert reply.status in (200, 201), reply.json
    token = reply.json["sessionToken"]
    return User(
        {**CLIENT, "X-Svc-Session-Token": token},
        user_id=reply.json["objectId"],
        name=name,
        token=token,
    )


def sign_up(name: str, **fields: Any) -> User:
    """A new user with a session."""
    body = {"username": name, "password": PASSWORD, **fields}
    return as_user(name, Api(CLIENT).post("/users", body))


def log_in(name: str, password: str = PASSWORD, **headers: str) -> Reply:
    """The answer to a log-in."""
    return Api({**CLIENT, **headers}).post("/login", {"username": name, "password": password})


def make_role(master: Api, name: str, users: list[User] = [], roles: list[str] = []) -> str:  # noqa: B006
    """A role with these members, and with these roles inheriting to it; its id."""
    body: dict[str, Any] = {"name": name, "ACL": {"*": {"read": True}}}
    if users:
        body["users"] = {"__op": "AddRelation", "objects": [user.pointer for user in users]}
    if roles:
        pointers = [
            {"__type": "Pointer", "className": "_Role", "objectId": role_id} for role_id in roles
        ]
        body["roles"] = {"__op": "AddRelation", "objects": pointers}
    return master.make("_Role", **body)
