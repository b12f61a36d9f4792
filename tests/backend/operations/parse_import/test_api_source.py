"""A Parse Server's API that fails or lies is read with patience, and its keys stay secret."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeAlias

import pytest

from backend.operations.parse_import import files
from backend.operations.parse_import.files import Address, FileMissing
from backend.operations.parse_import.formats.definitions import ClassDefinition
from backend.operations.parse_import.sources.base import SourceFailed
from backend.operations.parse_import.sources.rest_server import RestServer
from objects.files.uploads import Upload

KEY = "a-master-key-that-no-message-shows"
NOTE = ClassDefinition("Note", {})
Answer: TypeAlias = "tuple[int, bytes]"


class Fake:
    """An API that gives these answers, one after the other, and then the last one again."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.paths: list[str] = []
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                fake.paths.append(self.path)
                status, body = fake.answers.pop(0) if len(fake.answers) > 1 else fake.answers[0]
                if status == 0:
                    self.close_connection = True
                    return
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/parse"


@pytest.fixture
def api() -> Iterator[Fake]:
    fake = Fake()
    thread = threading.Thread(target=fake.server.serve_forever, daemon=True)
    thread.start()
    yield fake
    fake.server.shutdown()
    fake.server.server_close()
    thread.join()


@pytest.fixture
def pauses() -> list[float]:
    return []


@pytest.fixture
def source(api: Fake, pauses: list[float]) -> Iterator[RestServer]:
    server = RestServer(api.url, "app", KEY, pauses.append)
    yield server
    server.close()


def found(*object_ids: str) -> Answer:
    times = {"createdAt": "2020-01-01T00:00:00.000Z", "updatedAt": "2020-01-01T00:00:00.000Z"}
    rows = [{"objectId": object_id, **times} for object_id in object_ids]
    return 200, json.dumps({"results": rows}).encode()


def ids(source: RestServer) -> list[str]:
    return [obj.object_id for batch in source.objects(NOTE, "") for obj in batch.objects]


def test_a_request_that_fails_is_repeated(
    api: Fake, source: RestServer, pauses: list[float]
) -> None:
    api.answers = [(503, b""), (0, b""), (429, b"{}"), found("a", "b")]
    assert ids(source) == ["a", "b"]
    assert pauses == [0.5, 2.0, 5.0]


def test_an_api_that_goes_on_failing_ends_the_import_with_its_place(
    api: Fake, source: RestServer, pauses: list[float]
) -> None:
    api.answers = [(500, KEY.encode())]
    with pytest.raises(SourceFailed, match=r"/parse/classes/Note: status 500$"):
        ids(source)
    assert len(pauses) == 5


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ((200, b"<html>"), "no JSON"),
        ((200, b"[]"), "expected an object"),
        ((200, b"{}"), "no list of objects"),
        ((403, b'{"error": "unauthorized"}'), "status 403, unauthorized"),
        ((200, b'{"results": 7}'), "no list of objects"),
    ],
)
def test_an_answer_that_isnt_an_apis_ends_the_import(
    api: Fake, source: RestServer, answer: Answer, message: str
) -> None:
    api.answers = [answer]
    with pytest.raises(SourceFailed, match=message) as failure:
        ids(source)
    assert KEY not in str(failure.value)


def test_rows_that_are_no_objects_are_left_out(api: Fake, source: RestServer) -> None:
    api.answers = [(200, b'{"results": [{"objectId": "a"}, {"objectId": 7}]}')]
    (batch,) = source.objects(NOTE, "")
    assert batch.objects == []
    assert [each.name for each in batch.unreadable] == ["a", "7"]


@pytest.mark.parametrize(
    "url", ["ftp://example.org", "https://user:password@example.org", "https://", "x"]
)
def test_only_addresses_of_apis_are_taken(url: str) -> None:
    with pytest.raises(SourceFailed, match="expected a URL"):
        RestServer(url, "app", KEY)


def test_files_are_fetched_from_the_given_address_alone(api: Fake) -> None:
    api.answers = [(200, b"content")]
    name = "0123456789abcdef0123456789abcdef_a b.txt"
    with Upload(100) as upload:
        Address(api.url).fetch(name, upload)
        assert upload.size == 7
    assert api.paths == [f"/parse/{name.replace(' ', '%20')}"]


def test_a_file_that_isnt_there_says_so(api: Fake) -> None:
    api.answers = [(404, b"")]
    with Upload(100) as upload, pytest.raises(FileMissing, match="status 404"):
        Address(api.url).fetch("a", upload)


def test_names_of_files_are_found_at_any_depth() -> None:
    file = {"__type": "File", "name": "a", "url": "http://elsewhere.example.org/a"}
    assert list(files.names_in([file, [{"x": file}, {"__type": "File"}], "b", None])) == ["a", "a"]
