"""The line of a request in the log explains why it was refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from backend.logs import lines, setup
from functions import ScriptFailed, TriggerRequest, before_save, function
from functions.runtime.registry import registry
from tests.people import sign_up
from tests.rest import APPLICATION, CLIENT, MASTER, READ_ONLY, Api

pytestmark = pytest.mark.django_db
END = b'{"event":"the end"}'


@pytest.fixture(autouse=True)
def debug_lines(db: None, capfd: pytest.CaptureFixture[str]) -> Iterator[None]:
    setup.configure("DEBUG", "json", "test")
    lines.write(END)
    capfd.readouterr()
    yield
    setup.configure("WARNING", "json", "test")


@pytest.fixture
def line(capfd: pytest.CaptureFixture[str]) -> Any:
    """The line of the only request since the last call."""

    def read() -> dict[str, Any]:
        lines.write(END)
        records = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
        (request,) = [record for record in records if record.get("logger") == "request"]
        return request

    return read


def of(line: dict[str, Any], *names: str) -> tuple[Any, ...]:
    return tuple(line.get(name) for name in names)


def test_a_refusal_has_code_text_and_the_kind_of_key(line: Any) -> None:
    reply = Api(CLIENT).get("/schemas")
    written = line()
    assert of(written, "status", "code", "error") == (403, 119, reply.json["error"])
    assert of(written, "level", "method", "key", "user") == ("info", "GET", "rest key", None)


@pytest.mark.parametrize(
    ("headers", "kind"),
    [
        (CLIENT, "rest key"),
        (MASTER, "master"),
        (READ_ONLY, "read-only master"),
        (APPLICATION, "application"),
        ({**APPLICATION, "X-Svc-Javascript-Key": "test-javascript-key"}, "javascript key"),
        ({**APPLICATION, "X-Svc-Maintenance-Key": "test-maintenance-key"}, "maintenance"),
    ],
)
def test_the_kind_of_key_is_named(line: Any, headers: dict[str, str], kind: str) -> None:
    Api(headers).get("/classes/Thing")
    assert line()["key"] == kind


def test_a_wrong_key_is_explained_and_not_written(line: Any) -> None:
    Api({**APPLICATION, "X-Svc-Master-Key": "guessed-key"}).get("/classes/Thing")
    written = line()
    assert of(written, "status", "code", "key") == (403, 261, None)
    assert "guessed-key" not in str(written)


def test_the_user_is_named_and_the_token_is_not(line: Any) -> None:
    user = Api(CLIENT).post("/users", {"username": "someone", "password": "pass"}).json
    line()
    Api({**CLIENT, "X-Svc-Session-Token": user["sessionToken"]}).get("/classes/_Session/x")
    written = line()
    assert of(written, "user", "code") == (user["objectId"], 101)
    assert user["sessionToken"] not in str(written)


def test_the_method_is_the_one_that_an_sdk_means(line: Any) -> None:
    body = {"_method": "GET", "_ApplicationId": "test-app", "_JavaScriptKey": "test-javascript-key"}
    Api().post("/classes/Thing", body)
    assert of(line(), "method", "key") == ("GET", "javascript key")


def test_an_error_s_text_is_masked_and_short(line: Any) -> None:
    with registry.temporarily():

        @function()
        def leaky(request: Any) -> None:
            raise ScriptFailed("password=hunter2 " + "x" * 5000, code=4711)

        Api(CLIENT).post("/functions/leaky")
    written = line()
    assert written["code"] == 4711
    assert written["error"].startswith("password=*** xxx")
    assert len(written["error"]) <= 500


def test_the_line_of_a_batch_has_its_first_error(line: Any) -> None:
    def create(class_name: str) -> dict[str, Any]:
        return {"method": "POST", "path": f"/api/classes/{class_name}", "body": {}}

    requests = [create("Thing"), create("_Bad"), create("not a class")]
    answers = Api(MASTER).post("/batch", {"requests": requests}).json
    assert ["error" in answer for answer in answers] == [False, True, True]
    assert of(line(), "status", "code") == (200, answers[1]["error"]["code"])
    Api(MASTER).post("/batch", {"requests": requests[:1]})
    assert of(line(), "status", "code") == (200, None)


def test_a_line_names_route_class_object_caller_address_and_size(line: Any) -> None:
    user = sign_up("ann")
    line_of_sign_up = line()
    assert of(line_of_sign_up, "route", "class_name") == ("/users", "_User")
    Api(MASTER).make("Thing", n=0)
    line()
    created = user.post("/classes/Thing", {"n": 1}).json["objectId"]
    written = line()
    assert of(written, "route", "class_name") == ("/classes/{class_name}", "Thing")
    assert of(written, "object_id", "user") == (created, user.user_id)
    session = user.get("/sessions/me").json["objectId"]
    line()
    reply = user.get(f"/classes/Thing/{created}")
    written = line()
    assert written["route"] == "/classes/{class_name}/{object_id}"
    assert of(written, "object_id", "session") == (created, session)
    assert of(written, "address", "bytes") == ("127.0.0.1", int(reply.headers["Content-Length"]))


def test_a_line_names_the_function_and_what_ran(line: Any) -> None:
    with registry.temporarily():

        @before_save("Thing")
        def check(request: TriggerRequest) -> None: ...

        @function()
        def pay(request: Any) -> None:
            request.objects.as_master("Thing").create(n=1)

        Api(CLIENT).post("/functions/pay")
    written = line()
    assert of(written, "route", "function") == ("/functions/{name}", "pay")
    assert written["ran"] == "function pay, trigger before_save of Thing"


def test_the_line_of_a_batch_names_the_class_and_action_of_its_first_error(line: Any) -> None:
    requests = [
        {"method": "POST", "path": "/api/classes/Thing", "body": {}},
        {"method": "DELETE", "path": "/api/classes/Thing/missing000"},
    ]
    Api(MASTER).post("/batch", {"requests": requests})
    written = line()
    assert of(written, "item", "class_name", "object_id") == (
        "DELETE /classes/Thing/missing000",
        "Thing",
        "missing000",
    )


def test_a_secret_in_a_path_is_in_no_field(line: Any) -> None:
    token = "r:0123456789abcdef0123456789abcdef"
    for path in (f"/sessions/{token}", f"/classes/{token}", f"/functions/{token}"):
        Api(CLIENT).get(path)
        assert token not in str(line())


def test_the_line_of_a_page_names_the_staff_user(line: Any) -> None:
    client = Client()
    client.force_login(User.objects.create_user("staff-ann", is_staff=True, is_superuser=True))
    assert client.get("/admin/logs/").status_code == 200
    written = line()
    assert of(written, "route", "key", "staff") == ("admin:logs", "staff", "staff-ann")


def test_an_internal_error_is_an_error_line(line: Any, settings: Any) -> None:
    adapters = {"door": {"adapter": "no.such.module"}}
    settings.SERVICE = {**settings.SERVICE, "AUTH_ADAPTERS": adapters}
    reply = Api(CLIENT).post("/users", {"authData": {"door": {"id": "x"}}})
    assert reply.status == 500
    assert of(line(), "level", "status", "code") == ("error", 500, 1)


@pytest.mark.parametrize(
    ("path", "status", "level"),
    [
        ("/admin/login/", 200, "debug"),
        ("/admin/", 302, "debug"),
        ("/static/nothing.css", 404, "info"),
        ("/health", 200, "debug"),
        ("/nowhere", 404, "info"),
    ],
)
def test_pages_and_static_files_are_debug_unless_they_are_refused(
    line: Any, path: str, status: int, level: str
) -> None:
    assert Client().get(path).status_code == status
    assert of(line(), "status", "level") == (status, level)


def test_debug_lines_are_written_at_level_debug_alone(capfd: pytest.CaptureFixture[str]) -> None:
    setup.configure("INFO", "json", "test")
    Client().get("/admin/login/")
    Api(CLIENT).get("/classes/Thing")
    lines.write(END)
    paths = [json.loads(line).get("path") for line in capfd.readouterr().err.splitlines()]
    assert paths == ["/api/classes/Thing", None]
