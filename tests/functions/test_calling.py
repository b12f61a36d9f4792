"""``POST /functions/NAME``: endpoint 1 of the specification."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from backend.kernel.errors import DuplicateValue, ScriptFailed
from functions import GeoPoint, Pointer, Request, function
from tests.rest import Api


def test_the_result_is_what_the_function_returns(client: Api) -> None:
    @function()
    def add_up(request: Request, a: int, b: int = 1) -> int:
        return a + b

    assert client.post("/functions/add_up", {"a": 2}).json == {"result": 3}
    assert client.post("/functions/add_up", {"a": 2, "b": 5}).json == {"result": 7}


def test_the_application_id_is_enough(application: Api) -> None:
    @function("hello")
    def greet(request: Request, name: str = "world") -> str:
        assert request.user is None
        assert not request.master
        return f"Hello {name}!"

    reply = application.post("/functions/hello")
    assert (reply.status, reply.json) == (200, {"result": "Hello world!"})


def test_a_wrong_application_id_is_refused() -> None:
    api = Api({"X-Svc-Application-Id": "another"})
    assert api.post("/functions/hello").error == (403, 260)


def test_an_unknown_function_is_141_and_says_its_name(client: Api) -> None:
    reply = client.post("/functions/nobody")
    assert reply.error == (400, 141)
    assert reply.json["error"] == 'Invalid function: "nobody"'


@pytest.mark.parametrize("name", ["__init__", "constructor", "__proto__", "toString", "a.b"])
def test_names_of_the_language_are_no_functions(client: Api, name: str) -> None:
    assert client.post(f"/functions/{name}").error == (400, 141)


def test_a_path_below_a_function_is_no_route(client: Api) -> None:
    assert client.post("/functions/a/b").error == (404, 108)


def test_other_methods_are_not_allowed(client: Api) -> None:
    assert client.get("/functions/hello").error == (405, 108)


def test_no_result_is_null(client: Api) -> None:
    @function()
    def nothing(request: Request) -> None:
        return None

    assert client.post("/functions/nothing").json == {"result": None}


def test_typed_values_come_in_decoded_and_go_out_encoded(client: Api) -> None:
    observed: dict[str, Any] = {}

    @function()
    def look(
        request: Request, when: datetime, who: Pointer, where: GeoPoint, **remaining: Any
    ) -> Any:
        observed.update(when=when, who=who, where=where, rest=remaining)
        return {"when": when, "who": who, "where": where, **remaining}

    sent = {
        "when": {"__type": "Date", "iso": "2026-01-02T03:04:05.678Z"},
        "who": {"__type": "Pointer", "className": "_User", "objectId": "abc"},
        "where": {"__type": "GeoPoint", "latitude": 1.5, "longitude": -2},
        "data": {"__type": "Bytes", "base64": "aGk="},
        "nested": [{"at": {"__type": "Date", "iso": "2026-01-02T03:04:05.000Z"}}],
    }
    assert client.post("/functions/look", sent).json == {"result": sent}
    assert observed["when"] == datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)
    assert observed["who"] == Pointer("_User", "abc")
    assert observed["where"] == GeoPoint(1.5, -2)
    assert observed["rest"]["data"] == b"hi"


def test_objects_go_out_with_their_class(master: Api, client: Api) -> None:
    object_id = master.make("Project", name="A", due={"__type": "Date", "iso": _NOON})

    @function()
    def project(request: Request) -> Any:
        return request.objects("Project").get(object_id)

    result = client.post("/functions/project").json["result"]
    assert result["__type"] == "Object"
    assert result["className"] == "Project"
    assert result["objectId"] == object_id
    assert result["due"] == {"__type": "Date", "iso": _NOON}
    assert result["createdAt"].endswith("Z")


_NOON = "2026-05-01T12:00:00.000Z"


def test_dataclasses_and_large_numbers_go_out(client: Api) -> None:
    @dataclass
    class Balance:
        wei: int
        symbol: str

    @function()
    def balance(request: Request) -> Any:
        return [Balance(2**200, "ETH")]

    result = client.post("/functions/balance").json["result"]
    assert result == [{"wei": 2**200, "symbol": "ETH"}]


def test_a_result_that_json_cannot_say_is_an_error_of_its_own(client: Api) -> None:
    @function()
    def strange(request: Request) -> Any:
        return object()

    reply = client.post("/functions/strange")
    assert reply.status == 400
    assert "object" in reply.json["error"]


def test_parameters_in_the_query_string_count_too(client: Api) -> None:
    @function()
    def echo(request: Request, n: int, text: str) -> Any:
        return [n, text, sorted(request.params)]

    reply = client.call("POST", "/functions/echo?n=5&text=abc", {"more": 1})
    assert reply.json == {"result": [5, "abc", ["more", "n", "text"]]}


def test_a_service_error_keeps_its_code(client: Api) -> None:
    @function()
    def taken(request: Request) -> None:
        raise DuplicateValue("This name is taken.")

    reply = client.post("/functions/taken")
    assert (reply.error, reply.json["error"]) == ((400, 137), "This name is taken.")


def test_a_refusal_of_the_function_is_141_with_its_text(client: Api) -> None:
    @function()
    def refuse(request: Request) -> None:
        raise ScriptFailed("Not today.")

    reply = client.post("/functions/refuse")
    assert (reply.error, reply.json["error"]) == ((400, 141), "Not today.")


def test_any_other_exception_is_141_with_a_neutral_text_and_the_request_id(client: Api) -> None:
    @function()
    def broken(request: Request) -> None:
        raise RuntimeError("secret /path/to/things")

    reply = client.post("/functions/broken")
    assert reply.error == (400, 141)
    assert "secret" not in reply.json["error"]
    assert reply.headers["X-Request-Id"] in reply.json["error"]


def test_functions_call_each_other(client: Api) -> None:
    @function()
    def double(request: Request, n: int) -> int:
        return n * 2

    @function()
    def quadruple(request: Request, n: int) -> Any:
        return request.call("double", n=request.call("double", n=n))

    assert client.post("/functions/quadruple", {"n": 3}).json == {"result": 12}


def test_calls_that_never_end_are_stopped(client: Api) -> None:
    @function()
    def again(request: Request) -> Any:
        return request.call("again")

    reply = client.post("/functions/again")
    assert reply.error == (400, 141)
    assert "levels deep" in reply.json["error"]


def test_a_function_is_called_in_a_batch(client: Api) -> None:
    @function()
    def one(request: Request) -> int:
        return 1

    items = [
        {"method": "POST", "path": "/api/functions/one", "body": {}},
        {"method": "POST", "path": "/api/functions/two", "body": {}},
    ]
    answers = client.post("/batch", {"requests": items}).json
    assert answers[0] == {"success": {"result": 1}}
    assert answers[1]["error"]["code"] == 141


def test_the_request_says_who_calls_from_where(client: Api) -> None:
    observed: dict[str, Any] = {}

    @function()
    def who(request: Request) -> None:
        observed.update(
            headers=request.headers,
            address=request.address,
            installation=request.installation_id,
            context=request.context,
            request_id=request.request_id,
        )

    headers = {
        "X-Svc-Installation-Id": "device-1",
        "X-Svc-Cloud-Context": '{"from": "test"}',
        "X-Custom": "yes",
        "Authorization": "Bearer secret",
        "Cookie": "a=b",
    }
    reply = client.call("POST", "/functions/who", {}, headers=headers)
    assert reply.status == 200, reply.json
    assert observed["address"] == "127.0.0.1"
    assert observed["installation"] == "device-1"
    assert observed["context"] == {"from": "test"}
    assert observed["request_id"] == reply.headers["X-Request-Id"]
    assert observed["headers"]["x-custom"] == "yes"
    text = repr(observed["headers"])
    assert "secret" not in text
    assert "test-rest-key" not in text
    assert "a=b" not in text


@pytest.mark.parametrize("context", ["[]", "1", '"x"', "{", "null"])
def test_a_context_that_is_no_object_is_refused(client: Api, context: str) -> None:
    reply = client.call("POST", "/functions/x", {}, headers={"X-Svc-Cloud-Context": context})
    assert (reply.error, reply.json["error"]) == ((400, 107), "Invalid object for context.")


def test_one_request_finds_nothing_of_the_context_of_another(client: Api) -> None:
    @function()
    def note(request: Request) -> Any:
        request.context["n"] = request.context.get("n", 0) + 1
        return request.context["n"]

    assert client.post("/functions/note").json == {"result": 1}
    assert client.post("/functions/note").json == {"result": 1}
