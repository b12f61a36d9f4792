"""Parameters that are nested too deeply are an error of the client's."""

from __future__ import annotations

from typing import Any

import pytest

from functions import Request, function
from tests.rest import Api


def nested(depth: int, kind: str) -> str:
    start, end = {"list": ("[", "]"), "object": ('{"a":', "}")}[kind]
    return start * depth + "1" + end * depth


@pytest.mark.parametrize("kind", ["list", "object"])
@pytest.mark.parametrize("depth", [202, 400, 5000])
def test_a_parameter_that_is_nested_too_deeply_is_refused(
    client: Api, kind: str, depth: int
) -> None:
    @function()
    def take(request: Request, value: Any) -> None: ...

    raw = f'{{"value": {nested(depth, kind)}}}'.encode()
    assert client.call("POST", "/functions/take", raw=raw).error == (400, 107)
    encoded = raw.decode().replace('{"value": ', "", 1)[:-1]
    if len(encoded) < 2000:
        reply = client.call("POST", f"/functions/take?value={encoded}", raw=b"{}")
        assert reply.error == (400, 107)


@pytest.mark.parametrize("kind", ["list", "object"])
def test_a_parameter_that_is_nested_deeply_goes_in_and_out(client: Api, kind: str) -> None:
    @function()
    def give_back(request: Request, value: Any) -> Any:
        return value

    raw = f'{{"value": {nested(195, kind)}}}'.encode()
    reply = client.call("POST", "/functions/give_back", raw=raw)
    assert reply.status == 200, reply.json
