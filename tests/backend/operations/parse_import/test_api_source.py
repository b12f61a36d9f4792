"""A Parse Server's API that fails or lies is read with patience, and its keys stay secret."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from backend.operations.parse_import.formats.definitions import ClassDefinition
from backend.operations.parse_import.sources.base import SourceFailed
from backend.operations.parse_import.sources.rest_server import RestServer
from tests.backend.operations.parse_import.fake_server import Answer, FakeServer

KEY = "a-master-key-that-no-message-shows"
NOTE = ClassDefinition("Note", {})


@pytest.fixture
def source(api: FakeServer, pauses: list[float]) -> Iterator[RestServer]:
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
    api: FakeServer, source: RestServer, pauses: list[float]
) -> None:
    api.answers = [(503, b""), (0, b""), (429, b"{}"), found("a", "b"), found()]
    assert ids(source) == ["a", "b"]
    assert pauses == [0.5, 2.0, 5.0]


def test_an_api_that_goes_on_failing_ends_the_import_with_its_place(
    api: FakeServer, source: RestServer, pauses: list[float]
) -> None:
    api.answers = [(500, KEY.encode())]
    with pytest.raises(SourceFailed, match=r"/parse/classes/Note: status 500$"):
        ids(source)
    assert len(pauses) == 5


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ((200, b"<html>"), "Note:1: not JSON"),
        ((200, b"[]"), "no list of objects"),
        ((200, b"{}"), "no list of objects"),
        ((403, b'{"error": "unauthorized"}'), "status 403, unauthorized"),
        ((200, b'{"results": 7}'), "no list of objects"),
        ((200, b'{"results": [7]}'), "no list of objects"),
        ((200, b"[" * 5000), "nested too deeply"),
    ],
)
def test_an_answer_that_isnt_an_apis_ends_the_import(
    api: FakeServer, source: RestServer, answer: Answer, message: str
) -> None:
    api.answers = [answer]
    with pytest.raises(SourceFailed, match=message) as failure:
        ids(source)
    assert KEY not in str(failure.value)


def test_rows_that_are_no_objects_are_left_out(api: FakeServer, source: RestServer) -> None:
    api.answers = [(200, b'{"results": [{"objectId": "a"}, {"objectId": 7}]}'), found()]
    (batch,) = source.objects(NOTE, "")
    assert batch.objects == []
    assert [each.name for each in batch.unreadable] == ["a", "7"]


@pytest.mark.parametrize(
    ("answers", "names"),
    [
        ([(200, b"{}"), (200, b"{}")], ["Note", "_Audience", "_JobSchedule"]),
        ([(400, b'{"code": 103}'), (400, b'{"code": 103}')], ["Note"]),
    ],
    ids=["current", "old"],
)
def test_classes_that_the_schemas_leave_out_are_read_if_the_server_has_them(
    api: FakeServer, source: RestServer, answers: list[Answer], names: list[str]
) -> None:
    api.answers = [(200, b'{"results": [{"className": "Note"}]}'), *answers]
    assert [definition.name for definition in source.classes()] == names


def test_pages_that_the_server_cuts_are_all_read(api: FakeServer, source: RestServer) -> None:
    api.answers = [found("a", "b"), found("c"), found("d", "e"), found()]
    assert ids(source) == ["a", "b", "c", "d", "e"]


def test_members_are_read_to_the_end_of_short_pages(api: FakeServer, source: RestServer) -> None:
    pages = [[("a", "1")], [("a", "2"), ("b", "1")], []]
    api.answers = [
        (
            200,
            json.dumps({"results": [{"owningId": a, "relatedId": b} for a, b in page]}).encode(),
        )
        for page in pages
    ]
    read = [member for page in source.members(NOTE, "readers", "") for member in page.members]
    assert read == [("a", "1"), ("a", "2"), ("b", "1")]


def test_a_server_that_repeats_a_page_ends_the_import(api: FakeServer, source: RestServer) -> None:
    api.answers = [found("a", "b")]
    with pytest.raises(SourceFailed, match="the same objects twice"):
        ids(source)


def test_objects_are_counted_and_not_estimated(api: FakeServer, source: RestServer) -> None:
    api.answers = [(200, b'{"results": [], "count": 7}')]
    assert source.count(NOTE) == 7
    assert "where=" in api.paths[0]
    api.answers = [(200, b'{"results": []}')]
    with pytest.raises(SourceFailed, match="Note: no number of objects"):
        source.count(NOTE)


@pytest.mark.parametrize(
    "url", ["ftp://example.org", "https://user:password@example.org", "https://", "x"]
)
def test_only_addresses_of_apis_are_taken(url: str) -> None:
    with pytest.raises(SourceFailed, match="expected a URL"):
        RestServer(url, "app", KEY)
