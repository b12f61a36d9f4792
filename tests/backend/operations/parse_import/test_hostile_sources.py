"""A hostile source gets no memory, no time, no other address, and no terminal."""

from __future__ import annotations

import io
import json
import socket
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from backend.operations.parse_import import files
from backend.operations.parse_import.files import Address, FileMissing
from backend.operations.parse_import.formats.definitions import ClassDefinition
from backend.operations.parse_import.sources.base import Source, SourceFailed
from backend.operations.parse_import.sources.folder import Folder
from backend.operations.parse_import.sources.rest_server import RestServer
from objects.files.uploads import Upload
from tests.backend.operations.parse_import.fake_server import FakeServer, running
from tests.rest import Api

NOTE = ClassDefinition("Note", {})
MB = 1024 * 1024
ROWS = 170
MANY = b",".join([b'{"a": [' + b",".join([b"{}"] * 3000) + b"]}"] * ROWS)
"""1.5 MB that take 37 MB of memory as objects."""
LIMIT = 25 * MB
LONG = {
    "an array": b"[" + MANY + b"]",
    "lines": MANY.replace(b"]},", b"]}\n"),
    "a response": b'{"results": [' + MANY + b"]}",
    "a response with a count": b'{"results": [' + MANY + b'], "count": 7}',
}


@contextmanager
def costing(at_most: int) -> Iterator[None]:
    """What happens inside holds no more bytes at any moment."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < at_most
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("form", LONG)
def test_a_file_of_large_objects_is_read_in_small_batches(tmp_path: Path, form: str) -> None:
    (tmp_path / "Note.json").write_bytes(LONG[form])
    counts = [len(batch.unreadable) for batch in Folder(tmp_path).objects(NOTE, "")]
    assert sum(counts) == ROWS
    assert max(counts) < 30


def test_a_response_of_many_objects_is_never_in_memory_as_a_whole(
    api: FakeServer, pauses: list[float]
) -> None:
    api.answers = [(200, LONG["a response"])]
    source = RestServer(api.url, "app", "key", pauses.append)
    with costing(LIMIT), pytest.raises(SourceFailed, match="the same objects twice"):
        list(source.objects(NOTE, ""))
    source.close()


@pytest.mark.parametrize("text", [b'"%s"' % (b"x" * 20 * MB), b"[" + b"7" * 20 * MB])
def test_a_value_has_a_largest_size(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "Note.json").write_bytes(text)
    with pytest.raises(SourceFailed, match=r"Note\.json:1: a (value|number) of"):
        list(Folder(tmp_path).objects(NOTE, ""))


def test_an_object_with_a_field_of_results_is_one_object(tmp_path: Path) -> None:
    rows = [{"results": [1, 2], "objectId": "a"}, {"results": ["x" * 80_000], "objectId": "b"}]
    (tmp_path / "Note.json").write_text("\n".join(map(json.dumps, rows)))
    batches = [*Folder(tmp_path).objects(NOTE, "")]
    assert len(batches[0].unreadable) == 2


def fetch(url: str) -> None:
    with Upload(100) as upload:
        Address(url).fetch("a.txt", upload)


@pytest.mark.parametrize("place", ["another", "the same"])
def test_no_file_comes_from_the_place_that_a_redirect_names(api: FakeServer, place: str) -> None:
    with running() as internal:
        internal.answers = [(200, b"an internal secret")]
        target = internal if place == "another" else api
        api.answers = [(302, b"", {"Location": f"{target.url}/secret"}), (200, b"a file")]
        with pytest.raises(FileMissing, match="a redirect to 127"):
            fetch(api.url)
        assert internal.paths == []
        assert len(api.paths) == 1


def test_a_name_of_the_internet_leads_to_no_internal_address(
    api: FakeServer, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.answers = [(200, b"an internal secret")]
    real = socket.getaddrinfo

    def lookup(host: Any, *args: Any, **kwargs: Any) -> Any:
        return real(
            "127.0.0.1" if host in ("files.example.org", "parse") else host, *args, **kwargs
        )

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    port = api.server.server_port
    with pytest.raises(FileMissing, match="WEBHOOK_ALLOW_PRIVATE"):
        fetch(f"http://files.example.org:{port}")
    assert api.paths == []
    fetch(f"http://parse:{port}")  # a name of the operator's own network
    settings.SERVICE = {**settings.SERVICE, "WEBHOOK_ALLOW_PRIVATE": ("127.0.0.0/8",)}
    fetch(f"http://files.example.org:{port}")
    assert len(api.paths) == 2


def test_a_file_has_a_time_limit(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_TIMEOUT", 0.2)
    settings.SERVICE = {**settings.SERVICE, "MAX_UPLOAD_SIZE": 1}
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        pytest.raises(FileMissing, match=r"took longer than 0\.2 seconds"),
    ):
        fetch(f"http://127.0.0.1:{silent.getsockname()[1]}")


MALFORMED: list[Any] = [
    7,
    None,
    [],
    {},
    {"className": 7},
    {"className": "Note", "fields": []},
    {"className": "Note", "fields": {}, "classLevelPermissions": "*"},
    {"className": "Note", "fields": {}, "indexes": 7},
]


@pytest.mark.parametrize("entry", MALFORMED)
def test_a_schema_that_is_none_ends_the_import_with_its_place(
    api: FakeServer, pauses: list[float], entry: Any
) -> None:
    api.answers = [(200, json.dumps({"results": [{"className": "Good"}, entry]}).encode())]
    source: Source = RestServer(api.url, "app", "key", pauses.append)
    with pytest.raises(SourceFailed, match=r"/parse/schemas: class 2: Expected|missing required"):
        source.classes()
    source.close()


@pytest.mark.parametrize(
    "entry",
    [
        {"_id": 7},
        {"_id": "Note", "_metadata": []},
        {"_id": "Note", "_metadata": {"fields_options": {"a": 7}}},
        {"_id": "Note", "_metadata": {"indexes": []}},
        {"className": "Note", "schema": {"fields": 7}},
        {"fields": {}},
    ],
)
def test_an_exported_schema_that_is_none_ends_the_import_with_its_place(
    tmp_path: Path, entry: dict[str, Any]
) -> None:
    (tmp_path / "_SCHEMA.json").write_text(json.dumps(entry))
    with pytest.raises(SourceFailed, match=r"^_SCHEMA\.json, class 1: "):
        Folder(tmp_path).classes()


@pytest.mark.parametrize("name", ["a\x1b]0;owned\x07", "a\x9b2J", "a\rb", "a\x08\x08"])
def test_names_carry_nothing_out_on_a_terminal(
    master: Api, export: Callable[..., Path], tmp_path: Path, name: str
) -> None:
    path = export(**{name: [{"objectId": "a"}]})
    schemas = (path / "_SCHEMA.json").read_text()
    (path / "_SCHEMA.json").write_text(schemas + json.dumps({"_id": name}))
    output = io.StringIO()
    with pytest.raises(CommandError) as raised:
        call_command(
            "import_parse",
            str(path),
            state=tmp_path / "state.json",
            stdout=output,
            stderr=output,
            no_color=True,
        )
    shown = output.getvalue() + str(raised.value)
    assert f"a{chr(0xFFFD)}" in shown
    assert all(c.isprintable() or c == "\n" for c in shown)
