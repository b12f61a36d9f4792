"""JSON uploads of any size: the file is cut out before the rest is decoded, which must be short."""

from __future__ import annotations

import base64
import json

import pytest

from tests.objects.files.uploads import file_path, send, stored_names

pytestmark = pytest.mark.django_db

CONTENT = bytes(range(256)) * 2_000
FILE = {"base64": base64.b64encode(CONTENT).decode()}
KEYS = {"_ApplicationId": "test-app", "_MasterKey": "test-master-key"}
NESTED = {"fileData": {"metadata": {"base64": "short"}}}
LONG = "x" * 100_000
UNAUTHORIZED = (403, 260)
REFUSED = (400, 130)


@pytest.mark.parametrize(
    "members",
    [
        {**FILE, **KEYS},
        {**KEYS, **FILE},
        {"_ApplicationId": "test-app", **FILE, "_MasterKey": "test-master-key"},
        {**NESTED, **KEYS, **FILE},
        {**KEYS, **FILE, **NESTED},
        {**KEYS, "fileData": {"metadata": {"text": '{"base64": "short"}'}}, **FILE},
    ],
)
@pytest.mark.parametrize("indent", [None, 4])
def test_a_large_file_may_be_anywhere_in_the_json(members: dict[str, object], indent: int) -> None:
    reply = send("POST", "/files/a.bin", json.dumps(members, indent=indent).encode())
    assert reply.status == 201, reply.body
    assert send("GET", file_path(reply.json["name"])).body == CONTENT


@pytest.mark.parametrize(
    ("members", "error"),
    [
        ({**KEYS, **FILE, "more": LONG}, REFUSED),
        ({**KEYS, **FILE, **dict.fromkeys(map(str, range(20_000)), 1)}, REFUSED),
        ({**KEYS, "fileData": {"metadata": FILE}}, REFUSED),
        ({**KEYS, "fileData": {"metadata": FILE}, **FILE}, REFUSED),
        ({**KEYS, "base64": ["QQ=="] * 20_000}, UNAUTHORIZED),
        ({**KEYS, "more": LONG}, UNAUTHORIZED),
        ({**FILE}, UNAUTHORIZED),
        ({**FILE, "_ApplicationId": "wrong"}, UNAUTHORIZED),
    ],
)
def test_a_long_json_with_anything_but_one_file_is_refused(
    members: dict[str, object], error: tuple[int, int]
) -> None:
    assert send("POST", "/files/a.bin", json.dumps(members).encode()).error == error
    assert not stored_names()


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b"\x89PNG" + b"x" * 100_000, UNAUTHORIZED),
        (b'{"base64": "' + b"A" * 100_000, UNAUTHORIZED),
        (b'{"base64": "' + b"A" * 100_000 + b'"', UNAUTHORIZED),
        (b'{"base64": "' + b"A" * 100_000 + b'\\"x", "_ApplicationId": "test-app"}', UNAUTHORIZED),
        (b'{"base64": "",' * 100_000, REFUSED),
        (b'{"a":{' + b'"base64": "QQ==",' * 100_000, REFUSED),
    ],
)
def test_a_long_body_that_is_no_json_is_refused(body: bytes, error: tuple[int, int]) -> None:
    assert send("POST", "/files/a.bin", body).error == error
    assert not stored_names()


def test_a_file_written_twice_is_refused() -> None:
    text = FILE["base64"]
    body = f'{{"base64":"{text}","base64":"{text}",{json.dumps(KEYS)[1:]}'.encode()
    assert send("POST", "/files/a.bin", body).error == REFUSED
