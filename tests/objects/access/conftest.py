"""Callers of the REST face, among them users with real sessions."""

from __future__ import annotations

import pytest

from tests.callers import *  # noqa: F403
from tests.objects.access.tables import MEMBER_ID, OWNER_ID, STRANGER_ID
from tests.objects.access.transports import TRANSPORTS, Send
from tests.people import PASSWORD, User, as_user, make_role
from tests.rest import Api


@pytest.fixture
def people(master: Api, reader: Api, client: Api, settings) -> dict[str, Api]:
    """The callers of the tables over REST. ``member`` holds Team through two other roles.

    Users have the ids of the tables, so that all readings share them.
    """
    users: dict[str, User] = {}
    before = settings.SERVICE
    settings.SERVICE = {**before, "ALLOW_CUSTOM_OBJECT_ID": True}
    for name, user_id in (("owner", OWNER_ID), ("member", MEMBER_ID), ("stranger", STRANGER_ID)):
        body = {"username": name, "password": PASSWORD, "objectId": user_id}
        users[name] = as_user(name, master.post("/users", body))
    settings.SERVICE = before
    inner = make_role(master, "Inner", [users["member"]])
    middle = make_role(master, "Middle", roles=[inner])
    make_role(master, "Team", roles=[middle])
    make_role(master, "Other")
    return {"master": master, "reader": reader, "client": client, **users}


@pytest.fixture(params=TRANSPORTS, ids=[item.__name__ for item in TRANSPORTS])
def send(request) -> Send:
    """One of the ways on which a request can come."""
    results: Send = request.param
    return results
