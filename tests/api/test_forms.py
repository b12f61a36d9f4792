"""Bodies that are forms, as Parse Server accepts them beside JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.rest import APPLICATION, CLIENT, Api, Reply

pytestmark = pytest.mark.django_db

FORM = "application/x-www-form-urlencoded"


def send(api: Api, text: str | bytes) -> Reply:
    raw = text if isinstance(text, bytes) else text.encode()
    return api.call("POST", "/classes/Game", raw=raw, content_type=FORM)


def test_the_values_of_a_form_are_texts(master: Api) -> None:
    assert send(master, "name=chess&n=1&a%20b=").error == (400, 105)
    assert send(master, "name=chess+club&n=1&empty=&tags=a&tags=b").status == 201
    (game,) = master.results("Game")
    assert (game["name"], game["n"], game["empty"]) == ("chess club", "1", "")
    assert game["tags"] == ["a", "b"]


def test_json_under_the_media_type_of_a_form_is_json(master: Api) -> None:
    assert send(master, ' {"n": 1, "text": "a=b"}').status == 201
    assert master.results("Game")[0]["n"] == 1
    assert send(master, "{bad=1").error == (400, 107)
    assert send(master, "text").error == (400, 107)


def test_credentials_and_a_context_may_be_in_a_form_and_keys_in_headers(master: Api) -> None:
    master.post("/schemas/Game", {})
    key = {name: value for name, value in CLIENT.items() if name not in APPLICATION}
    text = "_ApplicationId=test-app&n=1&_context=" + json.dumps({"a": 1})
    assert send(Api(key), text).status == 201
    assert send(Api({}), text).error == (403, 262)
    assert send(Api(key), "_ApplicationId=test-app&n=1&_context=bad").error == (400, 107)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b"a=%ff", (400, 107)),
        (b"a=\xff", (400, 107)),
        (b"a=1&" * 101, (400, 107)),
        (b"a=" + b"x" * 2_000_000, (413, 116)),
    ],
)
def test_other_forms_are_refused(client: Api, body: bytes, error: Any) -> None:
    assert send(client, body).error == error
