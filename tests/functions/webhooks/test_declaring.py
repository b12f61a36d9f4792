"""``/hooks``: declaring webhooks, with the routes and texts of Parse."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from functions import Request, function
from objects.database import maintenance
from tests.people import sign_up
from tests.rest import MASTER, Api

URL = "https://hooks.example.org/path"
FUNCTION = {"functionName": "greet", "url": URL}
TRIGGER = {"className": "Game", "triggerName": "beforeSave", "url": URL}


def test_a_function_is_declared_shown_changed_and_removed(master: Api) -> None:
    assert master.get("/hooks/functions").json == []
    created = master.post("/hooks/functions", FUNCTION)
    assert (created.status, created.json) == (200, FUNCTION)
    assert master.get("/hooks/functions").json == [FUNCTION]
    assert master.get("/hooks/functions/greet").json == FUNCTION
    other = {**FUNCTION, "url": "https://other.example.org/"}
    assert master.put("/hooks/functions/greet", {"url": other["url"]}).json == other
    assert master.get("/hooks/functions/greet").json == other
    assert master.put("/hooks/functions/greet", {"__op": "Delete"}).json == {}
    gone = master.get("/hooks/functions/greet")
    assert gone.error == (400, 143)
    assert gone.json["error"] == "no function named: greet is defined"


def test_a_trigger_is_declared_shown_changed_and_removed(master: Api) -> None:
    assert master.get("/hooks/triggers").json == []
    assert master.post("/hooks/triggers", TRIGGER).json == TRIGGER
    assert master.get("/hooks/triggers").json == [TRIGGER]
    assert master.get("/hooks/triggers/Game/beforeSave").json == TRIGGER
    other = {**TRIGGER, "url": "https://other.example.org/"}
    assert master.put("/hooks/triggers/Game/beforeSave", {"url": other["url"]}).json == other
    assert master.delete("/hooks/triggers/Game/beforeSave").json == {}
    gone = master.get("/hooks/triggers/Game/beforeSave")
    assert gone.error == (400, 143)
    assert gone.json["error"] == "class Game does not exist"


def test_a_class_that_is_not_there_is_not_made(master: Api) -> None:
    master.post("/hooks/triggers", TRIGGER)
    assert master.get("/schemas/Game").error == (400, 103)
    assert master.post("/schemas/Game", {}).status == 200


def test_removing_what_is_not_there_is_no_error(master: Api) -> None:
    assert master.delete("/hooks/functions/nobody").json == {}
    assert master.put("/hooks/triggers/Game/beforeSave", {"__op": "Delete"}).json == {}


def test_nothing_is_declared_twice(master: Api) -> None:
    master.post("/hooks/functions", FUNCTION)
    master.post("/hooks/triggers", TRIGGER)
    again = master.post("/hooks/functions", FUNCTION)
    assert again.error == (400, 143)
    assert again.json["error"] == "function name: greet already exists"
    again = master.post("/hooks/triggers", TRIGGER)
    assert again.error == (400, 143)
    assert again.json["error"] == "class Game already has trigger beforeSave"


def test_what_is_not_there_is_not_changed(master: Api) -> None:
    reply = master.put("/hooks/functions/greet", {"url": URL})
    assert reply.json == {"code": 143, "error": "no function named: greet is defined"}
    reply = master.put("/hooks/triggers/Game/afterSave", {"url": URL})
    assert reply.json == {"code": 143, "error": "class Game does not exist"}
    assert master.get("/hooks/triggers/Game/afterSave").error == (400, 143)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"url": URL},
        {"functionName": "greet"},
        {"functionName": "greet", "url": 1},
        {"functionName": 5, "url": URL},
        {"functionName": {"$gt": ""}, "url": URL},
        {"functionName": "not/a/name", "url": URL},
        {"functionName": " name", "url": URL},
        {"functionName": "na'me", "url": URL},
        {"functionName": "na\nme", "url": URL},
        {"functionName": "x" * 200, "url": URL},
        {"className": "Game", "url": URL},
        {"className": "Game", "triggerName": "beforeSave"},
        {"className": "Game", "triggerName": "before_save", "url": URL},
        {"className": "Game", "triggerName": "constructor", "url": URL},
        {"className": "Game", "triggerName": ["beforeSave"], "url": URL},
        {"className": "Game", "triggerName": "beforeLogin", "url": URL},
        {"className": "_Session", "triggerName": "beforeSave", "url": URL},
        {"className": "_Session", "triggerName": "beforeFind", "url": URL},
        {"className": "@Config", "triggerName": "beforeDelete", "url": URL},
        {"className": "@Connect", "triggerName": "beforeConnect", "url": URL},
        {"className": "@Connect", "triggerName": "beforeSave", "url": URL},
        {"className": "Game", "triggerName": "beforeSubscribe", "url": URL},
        {"className": "Game", "triggerName": "afterEvent", "url": URL},
        {"className": "*", "triggerName": "beforeSave", "url": URL},
        {"className": "Game; DROP TABLE x", "triggerName": "beforeSave", "url": URL},
    ],
)
def test_a_declaration_that_makes_no_sense_is_143(master: Api, body: dict[str, Any]) -> None:
    reply = master.post("/hooks/functions", body)
    assert reply.error == (400, 143)
    assert reply.json["error"].startswith("invalid hook declaration")
    assert master.get("/hooks/functions").json == master.get("/hooks/triggers").json == []


@pytest.mark.parametrize(
    "url",
    [
        "http://hooks.example.org/",
        "ftp://hooks.example.org/",
        "file:///etc/passwd",
        "https://user:secret@hooks.example.org/",
        "https://user@hooks.example.org/",
        "https:///path",
        "https://hooks.example.org:port/",
        "https://hooks.example.org/#part",
        "https://hooks.example.org/a b",
        "https://hooks.example.org\\@10.0.0.1/",
        "https://höks.example.org/",
        "https://hooks.example.org/\r\nX-Evil: 1",
        "//hooks.example.org/",
        "hooks.example.org",
        "https://127.0.0.1/",
        "https://10.0.0.1/",
        "https://169.254.169.254/latest/meta-data/",
        "https://[::1]/",
        "https://[::ffff:127.0.0.1]/",
        "https://[64:ff9b::10.0.0.1]/",
        "https://[fd00:ec2::254]/",
        "https://0.0.0.0/",
        "https://" + "x" * 3000,
    ],
)
def test_an_address_that_is_not_called_is_143_and_not_repeated(master: Api, url: str) -> None:
    reply = master.post("/hooks/functions", {"functionName": "greet", "url": url})
    assert reply.error == (400, 143)
    assert "secret" not in reply.json["error"]
    assert "example" not in reply.json["error"]
    master.post("/hooks/functions", FUNCTION)
    assert master.put("/hooks/functions/greet", {"url": url}).error == (400, 143)
    assert master.get("/hooks/functions/greet").json == FUNCTION


@pytest.mark.parametrize(
    "url", ["http://hooks.example.org/", "https://10.0.0.1/", "https://127.0.0.1/"]
)
def test_the_error_of_an_address_names_the_setting_that_allows_it(master: Api, url: str) -> None:
    reply = master.post("/hooks/functions", {"functionName": "greet", "url": url})
    assert reply.error == (400, 143)
    assert "WEBHOOK_ALLOW_PRIVATE" in reply.json["error"]


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("hooks.example.org", "begin with https://"),
        ("ftp://hooks.example.org/", "begin with https://"),
        ("https:///path", "name a host"),
        ("https://user:secret@hooks.example.org/", "no credentials"),
        ("https://hooks.example.org/" + "x" * 3000, "at most 2048 characters"),
    ],
)
@pytest.mark.parametrize("networks", [(), ("127.0.0.0/8",)])
def test_the_error_of_an_address_names_the_part_whatever_the_settings(
    master: Api, settings: Any, url: str, reason: str, networks: tuple[str, ...]
) -> None:
    settings.SERVICE = {**settings.SERVICE, "WEBHOOK_ALLOW_PRIVATE": networks}
    reply = master.post("/hooks/functions", {"functionName": "greet", "url": url})
    assert reply.error == (400, 143)
    assert reason in reply.json["error"]


def test_the_error_of_a_trigger_names_those_that_there_are(master: Api) -> None:
    def error(class_name: str, trigger_name: str) -> str:
        hook = {"className": class_name, "triggerName": trigger_name, "url": URL}
        return str(master.post("/hooks/triggers", hook).json["error"])

    assert error("Game", "beforeFoo") == (
        "invalid hook declaration: there is no trigger beforeFoo; the triggers are beforeSave,"
        " afterSave, beforeDelete, afterDelete, beforeFind, afterFind, beforeLogin, afterLogin,"
        " afterLogout, beforePasswordResetRequest"
    )
    assert error("@Config", "beforeFind") == (
        "invalid hook declaration: @Config has no trigger beforeFind; its triggers: beforeSave,"
        " afterSave"
    )
    assert error("_JobStatus", "beforeSave").endswith("its triggers: none")
    assert "className" in error("no class", "beforeSave")


@pytest.mark.parametrize(
    ("class_name", "trigger_name"),
    [
        ("_User", "beforeLogin"),
        ("_User", "afterLogin"),
        ("_User", "beforePasswordResetRequest"),
        ("_Session", "afterLogout"),
        ("@File", "beforeSave"),
        ("@Config", "afterSave"),
        ("Game", "afterFind"),
    ],
)
def test_triggers_have_the_names_of_parse(master: Api, class_name: str, trigger_name: str) -> None:
    hook = {"className": class_name, "triggerName": trigger_name, "url": URL}
    assert master.post("/hooks/triggers", hook).json == hook
    assert master.get(f"/hooks/triggers/{class_name}/{trigger_name}").json == hook


def test_a_python_function_can_not_be_replaced(master: Api) -> None:
    @function()
    def greet(request: Request) -> str:
        return "from Python"

    reply = master.post("/hooks/functions", FUNCTION)
    assert reply.error == (400, 143)
    assert reply.json["error"] == "function name: greet already exists, as a Python function"


def test_a_python_function_of_a_later_version_comes_first(master: Api) -> None:
    master.post("/hooks/functions", FUNCTION)

    @function()
    def greet(request: Request) -> str:
        return "from Python"

    assert master.post("/functions/greet").json == {"result": "from Python"}
    assert master.get("/hooks/functions").json == [{**FUNCTION, "shadowed": True}]


WRITES = [
    ("POST", "/hooks/functions", {"functionName": "other", "url": URL}),
    ("POST", "/hooks/triggers", {**TRIGGER, "triggerName": "afterSave"}),
    ("PUT", "/hooks/functions/greet", {"url": "https://evil.example.org/"}),
    ("PUT", "/hooks/triggers/Game/beforeSave", {"url": "https://evil.example.org/"}),
    ("PUT", "/hooks/functions/greet", {"__op": "Delete"}),
    ("DELETE", "/hooks/functions/greet", None),
    ("DELETE", "/hooks/triggers/Game/beforeSave", None),
]
READS = [
    *("/hooks/functions", "/hooks/functions/greet"),
    *("/hooks/triggers", "/hooks/triggers/Game/beforeSave"),
]


@pytest.fixture
def declared(master: Api) -> None:
    master.post("/hooks/functions", FUNCTION)
    master.post("/hooks/triggers", TRIGGER)


def unchanged() -> bool:
    results = Api(MASTER).get("/hooks/functions").json, Api(MASTER).get("/hooks/triggers").json
    return results == ([FUNCTION], [TRIGGER])


@pytest.mark.usefixtures("declared")
@pytest.mark.parametrize(("method", "path", "body"), WRITES)
def test_the_read_only_master_key_changes_nothing(
    reader: Api, method: str, path: str, body: Any
) -> None:
    assert reader.call(method, path, body).error == (400, 119)
    batch = {"requests": [{"method": method, "path": f"/api{path}", "body": body or {}}]}
    assert reader.post("/batch", batch).json[0]["error"]["code"] == 119
    assert unchanged()


@pytest.mark.usefixtures("declared")
@pytest.mark.parametrize("path", READS)
def test_the_read_only_master_key_may_look(reader: Api, path: str) -> None:
    assert reader.get(path).status == 200


@pytest.mark.usefixtures("declared")
def test_others_neither_look_nor_change(client: Api, application: Api) -> None:
    for caller in (client, application, sign_up("ann")):
        for path in READS:
            assert caller.get(path).error == (403, 119)
        for method, path, body in WRITES:
            assert caller.call(method, path, body).error == (403, 119)
    assert unchanged()


def test_webhooks_are_declared_in_a_batch(master: Api) -> None:
    requests = [
        {"method": "POST", "path": "/api/hooks/functions", "body": FUNCTION},
        {"method": "POST", "path": "/api/hooks/triggers", "body": TRIGGER},
    ]
    answers = master.post("/batch", {"requests": requests, "transaction": True}).json
    assert answers == [{"success": FUNCTION}, {"success": TRIGGER}]
    assert unchanged()


@pytest.mark.django_db(transaction=True)
def test_maintenance_mode_refuses_changes() -> None:
    master = Api(MASTER)
    master.post("/hooks/functions", FUNCTION)
    master.post("/hooks/triggers", TRIGGER)
    maintenance.on()
    try:
        for method, path, body in WRITES:
            assert master.call(method, path, body).error == (400, 119)
        assert master.post("/hooks/functions", {}).error == (400, 119)
        assert unchanged()
    finally:
        maintenance.off()


@pytest.mark.parametrize("name", ["My-Test-Function", "my function", "search.it", "a:b(c)", "5"])
def test_names_of_functions_are_nearly_free(master: Api, client: Api, name: str) -> None:
    hook = {"functionName": name, "url": URL}
    assert master.post("/hooks/functions", hook).json == hook
    path = f"/hooks/functions/{quote(name)}"
    assert master.get(path).json == hook
    changed = {**hook, "url": f"{URL}/other"}
    assert master.put(path, {"url": changed["url"]}).json == changed
    assert master.put(path, {"__op": "Delete"}).json == {}
    reply = master.get(path)
    assert reply.json == {"code": 143, "error": f"no function named: {name} is defined"}


def test_unknown_names_of_classes_are_unknown_webhooks(master: Api) -> None:
    for name in ("Game", "no name", "_Nope"):
        reply = master.get(f"/hooks/triggers/{quote(name)}/beforeSave")
        assert (reply.status, reply.json["code"]) == (400, 143)
        assert reply.json["error"] == f"class {name} does not exist"


def test_two_slashes_after_the_mount_path_are_one(master: Api) -> None:
    master.post("//hooks/functions", FUNCTION)
    assert master.get("//hooks/functions").json == [FUNCTION]
    assert master.get("/hooks//functions").error == (404, 108)


def test_the_background_of_a_trigger_is_declared_changed_and_shown(master: Api) -> None:
    path = "/hooks/triggers/Game/afterSave"
    hook = {"className": "Game", "triggerName": "afterSave", "url": URL}
    behind = {**hook, "background": True}
    assert master.post("/hooks/triggers", behind).json == behind
    assert master.put(path, {"url": f"{URL}/b"}).json == {**behind, "url": f"{URL}/b"}
    assert master.put(path, {"url": URL, "background": False}).json == hook
    assert master.put(path, {"background": True}).json == behind
    assert master.get("/hooks/triggers").json == [behind]
    assert master.put(path, {}).error == (400, 143)
    assert master.put(path, {"background": "yes"}).error == (400, 143)


@pytest.mark.parametrize("trigger", ["beforeSave", "afterFind"])
def test_what_a_request_depends_on_is_not_left_to_a_worker(master: Api, trigger: str) -> None:
    hook = {"className": "Game", "triggerName": trigger, "url": URL, "background": True}
    reply = master.post("/hooks/triggers", hook)
    assert reply.error == (400, 143)
    assert reply.json["error"].startswith("invalid hook declaration: background is for after")
