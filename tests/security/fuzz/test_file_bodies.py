"""Bodies of uploads: forms and JSON with base64, however they are cut."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from typing import Any

import pytest

from objects.files.names import check_name
from objects.files.types import settled_type
from objects.views.files.uploads import json_upload, receive_form
from tests.security.fuzz.mutation import Mutator
from tests.security.fuzz.requests import request
from tests.security.fuzz.targets import EXAMPLES, accepts, fuzz

CONTENT = bytes(range(256)) * 3


def form(*parts: tuple[str, bytes], boundary: str = "limit") -> bytes:
    lines = [
        f"--{boundary}\r\nContent-Disposition: form-data; {head}\r\n\r\n".encode() + data + b"\r\n"
        for head, data in parts
    ]
    return b"".join(lines) + f"--{boundary}--\r\n".encode()


FORMS = [
    form(('name="file"; filename="a.txt"\r\nContent-Type: text/plain', b"hello")),
    form(('name="file"; filename="a.bin"', CONTENT), ('name="fileData"', b'{"tags": {"a": "b"}}')),
    form(('name="_ContentType"', b"image/png"), ("name=\"file\"; filename*=UTF-8''%e2%82%ac", b"")),
    form(
        (
            'name="file"; filename="a"\r\nContent-Transfer-Encoding: base64',
            base64.b64encode(CONTENT),
        )
    ),
    form(('name="a"', b"b")),
]
TYPES = [
    "multipart/form-data; boundary=limit",
    'multipart/form-data; boundary="limit"; charset=utf-8',
    "multipart/form-data;boundary=limit;boundary=other",
]
JSON_BODIES = [
    json.dumps(
        {"base64": base64.b64encode(CONTENT).decode(), "_ApplicationId": "test-app"}
    ).encode(),
    b'{"base64": "aGVsbG8=", "_ContentType": "text/plain", "fileData": {"metadata": {"a": 1}}}',
    b'{"base64": "aGVs\\n bG8\\u003d", "_ApplicationId": "\\u00e9"}',
    b'{"_ApplicationId": "test-app"}',
]
HEADS = [b"<html>", b"\x89PNG\r\n\x1a\n", b"%PDF-1.4", b"\xff\xfe"]
NAMES = ["a.txt", "picture.png", "a b~c@d.tar.gz", "_x", "0.HTML . "]


class Taken:
    """What has come of an upload, in memory."""

    def __init__(self) -> None:
        self.content = b""

    def write(self, data: bytes) -> None:
        self.content += data

    def write_all(self, pieces: Iterable[bytes]) -> None:
        self.content += b"".join(pieces)


def receive(value: tuple[str, bytes]) -> None:
    """Take a form."""
    content_type, body = value
    taken: Any = Taken()
    receive_form(request("POST", "/api/files/a.txt", {"CONTENT_TYPE": content_type}, body), taken)
    assert len(taken.content) <= len(body)


def receive_json(body: bytes) -> None:
    """Take a JSON body. The file is what a strict reader of JSON and base64 makes of it."""
    taken: Any = Taken()
    with json_upload(request("POST", "/api/files/a", {}, body)) as upload:
        upload.receive(taken)
    text = json.loads(body).get("base64", "")
    joined = "".join(text.split())
    assert taken.content == base64.b64decode(joined + "=" * (-len(joined) % 4))


def settle(value: tuple[str, str, bytes]) -> None:
    """Decide what a file is."""
    name, content_type, head = value
    assert settled_type(check_name(name), content_type, head).isprintable()


def test_the_examples_are_valid():
    accepts(receive, [(TYPES[0], body) for body in FORMS])
    accepts(receive_json, JSON_BODIES)


@EXAMPLES
def test_any_form_is_taken_or_refused(examples):
    def make(mutator: Mutator) -> tuple[str, bytes]:
        kind = mutator.pick(TYPES)
        body = mutator.data(mutator.sample())
        return (kind if mutator.below(4) else mutator.text(kind)), body

    fuzz(receive, make, FORMS, examples)


@EXAMPLES
def test_any_json_upload_is_taken_or_refused(examples):
    fuzz(receive_json, lambda mutator: mutator.data(mutator.sample()), JSON_BODIES, examples)


@EXAMPLES
def test_any_name_and_type_are_settled_or_refused(examples):
    types = ["text/plain; charset=utf-8", "image/svg+xml", "application/octet-stream", "a/b", ""]

    def make(mutator: Mutator) -> tuple[str, str, bytes]:
        head = mutator.data(
            mutator.pick([b"<html>", b"\x89PNG\r\n\x1a\n", b"%PDF-1.4", b"\xff\xfe"])
        )
        return mutator.text(mutator.pick(NAMES)), mutator.text(mutator.pick(types)), head

    fuzz(settle, make, NAMES, examples)


@pytest.mark.parametrize("cut", [1, 2, 3, 4, 5, 7, 64])
def test_escapes_in_base64_mean_the_same_wherever_they_are_cut(cut, monkeypatch):
    from objects.views.files import uploads

    text = base64.b64encode(CONTENT).decode()
    escaped = "".join(f"\\u{ord(item):04x}" if n % 3 else item for n, item in enumerate(text))
    monkeypatch.setattr(uploads, "CHUNK", cut)
    receive_json(f'{{"base64": "{escaped}"}}'.encode())
