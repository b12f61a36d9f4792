"""What works in maintenance mode: reading, signing in and out, the service's own writers."""

from __future__ import annotations

import pytest

from backend.kernel.errors import UnderMaintenance
from backend.kernel.principal import MASTER as ITSELF
from objects import service, triggers
from objects.database import maintenance
from objects.database.statements import fetch
from objects.triggers import Occasion
from tests.people import PASSWORD, log_in, sign_up
from tests.rest import CLIENT, MASTER, Api
from tests.statements import traffic


@pytest.fixture
def game(master):
    return master.make("Game", score=1)


def test_objects_classes_and_files_are_read(game, client, master):
    master.call("PUT", "/config", {"params": {"limit": 1}})
    file = master.call("POST", "/files/a.txt", raw=b"text", content_type="text/plain").json
    maintenance.on()
    assert [result["objectId"] for result in client.results("Game", where={"score": 1})] == [game]
    assert client.get(f"/classes/Game/{game}").status == 200
    assert client.post(f"/classes/Game/{game}", {"_method": "GET"}).status == 200
    assert client.get("/classes/Game", count=1, limit=0).json["count"] == 1
    assert master.get("/aggregate/Game", pipeline=[{"$match": {}}]).status == 200
    assert master.get("/schemas/Game").status == 200
    assert client.get("/config").json["params"] == {"limit": 1}
    assert client.get(f"/files/test-app/metadata/{file['name']}").status == 200
    assert Api().get("/health").status == 200


def test_classes_that_no_one_has_requested_before_are_read(client, master):
    """Classes of models come into being when they are first asked for."""
    fetch("DELETE FROM objects_class WHERE name = '_Installation'", (), prepare=False)
    maintenance.on()
    assert master.get("/installations").json == {"results": []}


def test_users_sign_in_and_out(master):
    ann = sign_up("ann")
    maintenance.on()
    reply = log_in("ann")
    assert reply.status == 200
    session = Api({**CLIENT, "X-Svc-Session-Token": reply.json["sessionToken"]})
    assert session.get("/users/me").json["username"] == "ann"
    assert log_in("ann", "wrong").error == (404, 101)
    assert Api(CLIENT).get("/verifyPassword", username="ann", password=PASSWORD).status == 200
    assert master.post("/loginAs", {"userId": ann.user_id}).status == 200
    assert session.post("/logout").status == 200
    assert session.get("/users/me").error == (400, 209)


def test_reading_and_writing_cost_no_further_statement(game, client):
    """The switch is read by the statements that are sent anyway."""
    paths = [("GET", None), ("PUT", {"score": 2}), ("PUT", {"score": 3})]
    for method, body in paths:
        client.call(method, f"/classes/Game/{game}", body)
        with traffic() as recorded:
            assert client.call(method, f"/classes/Game/{game}", body).status == 200
        assert recorded.executions == 1


def test_triggers_are_not_run_for_writes_that_are_refused(game, client):
    observed: list[str] = []

    def note(occasion: Occasion) -> None:
        observed.append(occasion.event)

    events = ("before_save", "before_delete", "saved", "after_save")
    for event in events:
        triggers.register(event, "Game", note)
    try:
        maintenance.on()
        assert client.post("/classes/Game", {"score": 2}).error == (400, 119)
        assert client.put(f"/classes/Game/{game}", {"score": 2}).error == (400, 119)
        assert client.delete(f"/classes/Game/{game}").error == (400, 119)
        assert observed == []
        maintenance.off()
        client.post("/classes/Game", {"score": 2})
        assert "before_save" in observed
    finally:
        for event in events:
            triggers.unregister(event, "Game", note)


def create() -> None:
    service.create(ITSELF, "Game", {"score": 2, "fresh": True})


def test_server_code_is_refused_like_everyone(game):
    maintenance.on()
    with pytest.raises(UnderMaintenance):
        create()


def test_the_chain_goes_on_recording_unless_it_is_paused(game):
    maintenance.on()
    assert not maintenance.is_chain_paused()
    with maintenance.recording():
        create()
        maintenance.check()
    maintenance.on(pause_chain=True)
    assert maintenance.is_chain_paused()
    with maintenance.recording():
        with pytest.raises(UnderMaintenance):
            create()
        with pytest.raises(UnderMaintenance):
            service.update(ITSELF, "Game", game, {"score": 2})
    maintenance.on(pause_chain=False)
    with maintenance.recording():
        create()
    with pytest.raises(UnderMaintenance):
        create()


def test_the_service_s_bookkeeping_is_never_refused(game):
    maintenance.on(pause_chain=True)
    with maintenance.own_records():
        create()
    with pytest.raises(UnderMaintenance):
        create()


def test_a_request_with_an_id_that_was_refused_is_carried_out_when_it_is_sent_again(game):
    named = Api({**MASTER, "X-Svc-Request-Id": "order-1"})
    maintenance.on()
    assert named.post("/classes/Game", {"score": 7}).error == (400, 119)
    maintenance.off()
    assert named.post("/classes/Game", {"score": 7}).status == 201


def test_unused_files_are_left_alone(master):
    from objects.files.tasks import clean_files
    from tests.backend.commands.conftest import run

    maintenance.on()
    clean_files()
    with pytest.raises(Exception, match="read-only mode"):
        run("clean_files", "--delete")
    run("clean_files")
