"""Classes of people hold nothing that was saved around the routes that look after credentials."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize("name", ["_User", "_Session", "_Role", "_Installation"])
def test_nobody_saves_objects_of_people(name, master, client):
    reply = master.post(f"/classes/{name}", {"password": "secret", "name": "a"})
    assert reply.error == (400, 119)
    assert client.post(f"/classes/{name}", {"name": "a"}).error == (400, 119)
    batch = [{"method": "POST", "path": f"/api/classes/{name}", "body": {"name": "a"}}] * 2
    answers = master.post("/batch", {"requests": batch}).json
    assert [answer["error"]["code"] for answer in answers] == [119, 119]
    assert master.results(name) == []


def test_the_class_itself_can_be_declared(master):
    assert master.post("/schemas/_User", {}).status == 200
    assert master.post("/classes/_User", {"password": "secret"}).error == (400, 119)
    assert master.results("_User") == []
