"""While maintenance mode is on, no route writes anything, for any caller; afterwards each does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlencode

import pytest
from django.test import Client

from backend.kernel.principal import MASTER as MASTER_KEY
from functions import Request, function
from functions.runtime.registry import registry
from objects import service
from objects.database import maintenance
from objects.users.email import tokens
from tests.objects.maintenance.database_snapshot import everything_stored
from tests.people import PASSWORD, User, make_role, sign_up
from tests.rest import CLIENT, MASTER, READ_ONLY, Api, Reply

FORM = "application/x-www-form-urlencoded"
MESSAGE = "System is currently in read-only mode for maintenance."
REFUSED = (400, {"code": 119, "error": MESSAGE})


def names_the_mode(reply: Reply) -> bool:
    """Whether the headers name maintenance mode, and say when to try again."""
    named = reply.headers.get("X-Svc-Mode")
    assert (named, reply.headers.get("Retry-After")) in (("maintenance", "60"), (None, None))
    return named is not None


@dataclass
class Place:
    """What there is when maintenance begins."""

    ann: User
    game: str
    empty: str
    role: str
    session: str
    installation: str
    file: str


@pytest.fixture
def place(master: Api) -> Place:
    ann = sign_up("ann", email="ann@example.org")
    master.post("/schemas/Empty", {"fields": {"name": {"type": "String"}}})
    installation = {"deviceType": "ios", "installationId": "c6a7d1a0-0000-4000-8000-000000000001"}
    file = master.call("POST", "/files/a.txt", raw=b"text", content_type="text/plain")
    assert file.status == 201, file.json
    return Place(
        ann,
        master.make("Game", score=1, title="chess"),
        "Empty",
        make_role(master, "staff"),
        ann.post("/sessions", {}).json["objectId"],
        master.post("/installations", installation).json["objectId"],
        file.json["name"],
    )


Call = Callable[[Place], Reply]


def _pointer(place: Place) -> dict[str, str]:
    return {"__type": "Pointer", "className": "Game", "objectId": place.game}


WRITES: dict[str, Call] = {
    "create": lambda p: Api(CLIENT).post("/classes/Game", {"score": 2}),
    "create with the master key": lambda p: Api(MASTER).post("/classes/Game", {"score": 2}),
    "create with a session": lambda p: p.ann.post("/classes/Game", {"score": 2}),
    "create in a new class": lambda p: Api(MASTER).post("/classes/Fresh", {"score": 2}),
    "create with a new field": lambda p: Api(CLIENT).post("/classes/Game", {"fresh": 2}),
    "create with members": lambda p: Api(MASTER).post(
        "/classes/Game", {"likes": {"__op": "AddRelation", "objects": [_pointer(p)]}}
    ),
    "update": lambda p: Api(CLIENT).put(f"/classes/Game/{p.game}", {"score": 2}),
    "update with the master key": lambda p: Api(MASTER).put(
        f"/classes/Game/{p.game}", {"score": {"__op": "Increment", "amount": 1}}
    ),
    "update of what is stored": lambda p: Api(CLIENT).put(
        f"/classes/Game/{p.game}", {"tags": {"__op": "AddUnique", "objects": ["a"]}}
    ),
    "update that changes nothing": lambda p: Api(CLIENT).put(f"/classes/Game/{p.game}", {}),
    "update by _method": lambda p: Api(CLIENT).post(
        f"/classes/Game/{p.game}", {"_method": "PUT", "score": 2}
    ),
    "delete": lambda p: Api(CLIENT).delete(f"/classes/Game/{p.game}"),
    "delete by _method": lambda p: Api(CLIENT).post(
        f"/classes/Game/{p.game}", {"_method": "DELETE"}
    ),
    "delete with the master key": lambda p: Api(MASTER).delete(f"/classes/Game/{p.game}"),
    "batch in a transaction": lambda p: Api(CLIENT).post(
        "/batch",
        {
            "transaction": True,
            "requests": [
                {"method": "POST", "path": "/api/classes/Game", "body": {"score": 2}},
                {"method": "PUT", "path": f"/api/classes/Game/{p.game}", "body": {"score": 2}},
            ],
        },
    ),
    "sign-up": lambda p: Api(CLIENT).post("/users", {"username": "bob", "password": PASSWORD}),
    "sign-up with the master key": lambda p: Api(MASTER).post(
        "/classes/_User", {"username": "bob", "password": PASSWORD}
    ),
    "change of a user": lambda p: p.ann.put(f"/users/{p.ann.user_id}", {"email": "a@example.org"}),
    "change of a password": lambda p: p.ann.put(f"/users/{p.ann.user_id}", {"password": "other"}),
    "delete of a user": lambda p: p.ann.delete(f"/users/{p.ann.user_id}"),
    "new role": lambda p: Api(MASTER).post("/roles", {"name": "crew", "ACL": {}}),
    "change of a role": lambda p: Api(MASTER).put(
        f"/roles/{p.role}", {"users": {"__op": "AddRelation", "objects": [p.ann.pointer]}}
    ),
    "delete of a role": lambda p: Api(MASTER).delete(f"/roles/{p.role}"),
    "new session": lambda p: p.ann.post("/sessions", {}),
    "change of a session": lambda p: p.ann.put("/sessions/me", {"note": "x"}),
    "delete of a session": lambda p: p.ann.delete(f"/sessions/{p.session}"),
    "new installation": lambda p: Api(CLIENT).post(
        "/installations", {"deviceType": "ios", "deviceToken": "a" * 64}
    ),
    "change of an installation": lambda p: Api(MASTER).put(
        f"/installations/{p.installation}", {"channels": ["news"]}
    ),
    "delete of an installation": lambda p: Api(MASTER).delete(f"/installations/{p.installation}"),
    "new class": lambda p: Api(MASTER).post(
        "/schemas/Fresh", {"fields": {"name": {"type": "String", "unique": True}}}
    ),
    "change of a class": lambda p: Api(MASTER).put(
        "/schemas/Game", {"fields": {"title": {"__op": "Delete"}}}
    ),
    "new index": lambda p: Api(MASTER).put(
        "/schemas/Empty", {"indexes": {"by_name": {"name": 1}}}
    ),
    "delete of a class": lambda p: Api(MASTER).delete("/schemas/Empty"),
    "purge": lambda p: Api(MASTER).delete("/purge/Game"),
    "upload": lambda p: p.ann.call(
        "POST", "/files/b.txt", raw=b"more", content_type="text/plain"
    ),
    "upload with the master key": lambda p: Api(MASTER).post(
        "/files/b.txt", {"base64": "bW9yZQ==", "_ContentType": "text/plain"}
    ),
    "delete of a file": lambda p: Api(MASTER).delete(f"/files/{p.file}"),
    "change of the config": lambda p: Api(MASTER).put("/config", {"params": {"limit": 1}}),
    "event": lambda p: Api(CLIENT).post("/events/AppOpened", {}),
}  # fmt: skip


@pytest.mark.parametrize("write", WRITES)
def test_a_write_is_refused_and_nothing_is_stored_and_afterwards_it_is_done(write, place, settings):
    settings.SERVICE = {**settings.SERVICE, "FILE_UPLOAD_AUTHENTICATED": True}
    before = everything_stored()
    maintenance.on()
    reply = WRITES[write](place)
    assert (reply.status, reply.json) == REFUSED
    assert names_the_mode(reply)
    assert everything_stored() == before
    maintenance.off()
    reply = WRITES[write](place)
    assert reply.status in (200, 201), reply.json
    assert not names_the_mode(reply)


@pytest.mark.parametrize("path", ["/requestPasswordReset", "/verificationEmailRequest"])
def test_no_letter_is_requested(path, place, verifying, postbox):
    maintenance.on()
    body = {"email": "ann@example.org"}
    reply = postbox.after(lambda: Api(CLIENT).post(path, body))
    assert (reply.status, reply.json) == REFUSED
    assert postbox.letters == []
    maintenance.off()
    assert postbox.after(lambda: Api(CLIENT).post(path, body)).status == 200
    assert len(postbox.letters) == 1


@pytest.mark.parametrize(
    ("page", "purpose", "fields"),
    [
        ("verify_email", tokens.VERIFY, {}),
        ("request_password_reset", tokens.RESET, {"new_password": "another one"}),
    ],
)
def test_a_mailed_link_is_refused_and_stays_good(page, purpose, fields, place, verifying):
    token = tokens.issue(place.ann.user_id, purpose, "ann@example.org")
    before = everything_stored()
    maintenance.on()
    script = Api({"X-Requested-With": "XMLHttpRequest"})
    browser = Client(raise_request_exception=False)
    path, body = f"/apps/test-app/{page}", {"token": token, **fields}
    reply = script.post(path, body)
    assert (reply.status, reply.json) == REFUSED
    assert names_the_mode(reply)
    person = browser.post(f"/api{path}", urlencode(body), content_type=FORM)
    assert person.status_code == 400
    assert person.headers["X-Svc-Mode"] == "maintenance"
    assert MESSAGE in person.content.decode()
    assert everything_stored() == before
    maintenance.off()
    assert script.post(path, body).status == 200


def test_a_letter_that_was_on_its_way_is_sent_afterwards(place, verifying, postbox):
    from celery.exceptions import Retry

    from objects.users.email.tasks import mail_link

    maintenance.on()
    with pytest.raises(Retry):
        mail_link.apply(args=("verify",), kwargs={"user_id": place.ann.user_id}, throw=True)
    assert postbox.letters == []
    maintenance.off()
    mail_link.apply(args=("verify",), kwargs={"user_id": place.ann.user_id}, throw=True)
    assert len(postbox.letters) == 1


def test_each_write_of_a_batch_is_refused_and_its_reads_work(place):
    requests = [
        {"method": "POST", "path": "/api/classes/Game", "body": {"score": 2}},
        {"method": "POST", "path": "/api/classes/Game", "body": {"score": 3}},
        {"method": "POST", "path": "/api/classes/Game", "body": {"a.b!": 3}},
        {"method": "GET", "path": f"/api/classes/Game/{place.game}"},
        {"method": "DELETE", "path": f"/api/classes/Game/{place.game}"},
    ]
    before = everything_stored()
    maintenance.on()
    reply = Api(CLIENT).post("/batch", {"requests": requests})
    assert reply.status == 200
    assert names_the_mode(reply)
    refused = {"error": REFUSED[1]}
    assert [*reply.json[:3], reply.json[4]] == [refused] * 4
    assert reply.json[3]["success"]["objectId"] == place.game
    assert everything_stored() == before
    only_reads = Api(CLIENT).post("/batch", {"requests": requests[3:4]})
    assert only_reads.status == 200
    assert not names_the_mode(only_reads)


@pytest.mark.parametrize("position", range(3))
def test_one_refused_write_is_enough_for_the_headers_of_a_batch(place, position):
    requests = [{"method": "GET", "path": f"/api/classes/Game/{place.game}"}] * 3
    requests[position] = {"method": "PUT", "path": f"/api/classes/Game/{place.game}", "body": {}}
    wrong = {"method": "GET", "path": "/api/classes/Game/nothing123"}
    maintenance.on()
    for headers in ({}, {"X-Svc-Request-Id": "once"}):
        body = {"requests": [*requests, wrong]}
        assert names_the_mode(Api({**CLIENT, **headers}).post("/batch", body))
        assert not names_the_mode(Api(CLIENT).post("/batch", {"requests": [wrong]}))


def test_a_write_of_a_function_is_refused_by_name(place, client):
    with registry.temporarily():

        @function("writes")
        def writes(request: Request) -> str:
            return service.create(MASTER_KEY, "Game", {"score": 1}).object_id

        @function("reads")
        def reads(request: Request) -> int:
            return int(bool(service.get(MASTER_KEY, "Game", place.game)))

        maintenance.on()
        reply = client.post("/functions/writes", {})
        assert (reply.status, reply.json) == REFUSED
        assert names_the_mode(reply)
        reply = client.post("/functions/reads", {})
        assert reply.status == 200
        assert not names_the_mode(reply)


def test_scripts_of_other_origins_may_read_the_headers(place):
    maintenance.on()
    reply = Api({**CLIENT, "Origin": "https://app.example.org"}).post("/classes/Game", {})
    assert names_the_mode(reply)
    exposed = reply.headers["Access-Control-Expose-Headers"].lower().split(", ")
    assert {"x-svc-mode", "retry-after"} <= {*exposed}


def test_the_read_only_master_key_gets_the_same_error(place):
    maintenance.on()
    reply = Api(READ_ONLY).put(f"/classes/Game/{place.game}", {"score": 2})
    assert (reply.status, reply.json) == REFUSED


def test_the_operator_s_message_is_answered(place):
    maintenance.on("Back at 18:00.")
    reply = Api(CLIENT).delete(f"/classes/Game/{place.game}")
    assert reply.json == {"code": 119, "error": "Back at 18:00."}


def test_maintenance_comes_before_every_other_refusal(place):
    Api(MASTER).put("/schemas/Game", {"classLevelPermissions": {"find": {"*": True}}})
    stranger = sign_up("bob")
    wrong = [
        lambda: Api(CLIENT).post("/classes/Game", {"score": 2}),
        lambda: Api(CLIENT).put(f"/classes/Game/{place.game}", {"score": 2}),
        lambda: stranger.delete(f"/classes/Game/{place.game}"),
        lambda: stranger.put(f"/users/{place.ann.user_id}", {"email": "x@example.org"}),
        lambda: Api(CLIENT).post("/classes/Nowhere", {}),
        lambda: Api(MASTER).put("/classes/Game/nothing123", {"score": 2}),
        lambda: Api(MASTER).delete("/classes/Nowhere/nothing123"),
        lambda: Api(MASTER).put(f"/classes/Game/{place.game}", {"score": "text"}),
        lambda: Api(MASTER).post("/classes/Game", {"not a name!": 1}),
        lambda: Api(CLIENT).post("/users", {"username": "ann", "password": PASSWORD}),
        lambda: Api(CLIENT).post("/users", {"username": "carl"}),
        lambda: Api(MASTER).post("/schemas/Game", {}),
        lambda: Api(MASTER).delete("/schemas/Game"),
        lambda: Api(CLIENT).call("POST", "/files/a!!.txt", raw=b""),
        lambda: Api(CLIENT).delete(f"/files/{place.file}"),
    ]
    other_errors = [call().json["error"] for call in wrong]
    assert MESSAGE not in other_errors
    maintenance.on()
    assert [(reply.status, reply.json) for reply in (call() for call in wrong)] == [REFUSED] * len(
        wrong
    )


def test_wrong_credentials_come_first_and_routes_for_the_master_key_stay_that(place):
    maintenance.on()
    assert Api({**CLIENT, "X-Svc-REST-API-Key": "wrong"}).post("/classes/Game").error == (403, 262)
    assert Api(CLIENT).post("/schemas/Game", {}).error == (403, 119)
