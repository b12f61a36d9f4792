"""Files of a Parse Server are fetched from the place that the operator names, with patience."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import format_datetime
from uuid import uuid4

import pytest

from backend.operations.parse_import import files
from backend.operations.parse_import.files import LONGEST_PAUSE, Address, FileMissing
from objects.files import records
from objects.files.uploads import Upload, incoming_folder
from tests.backend.operations.parse_import.fake_server import FakeServer
from tests.polling import until
from tests.rest import Api

CONTENT = (200, b"content")


@pytest.fixture(params=["", "a/b/"], ids=["no directory", "a directory"])
def name(request: pytest.FixtureRequest) -> str:
    """A file of its own for each test: the storage outlives them."""
    return f"{request.param}{uuid4().hex}_a.txt"


def store(name: str, api: FakeServer, pauses: list[float]) -> list[tuple[str, str]]:
    """Store the file; return what is reported."""
    reported: list[tuple[str, str]] = []

    def report(place: str, reason: str) -> None:
        reported.append((place, reason))

    files.store([name], Address(api.url), report, pauses.append)
    return reported


def test_files_are_fetched_from_the_given_address_alone(api: FakeServer) -> None:
    api.answers = [(200, b"content")]
    name = "0123456789abcdef0123456789abcdef_a b.txt"
    with Upload(100) as upload:
        Address(api.url).fetch(name, upload)
        assert upload.size == 7
    assert api.paths == [f"/parse/{name.replace(' ', '%20')}"]


def test_a_file_that_isnt_there_says_so(api: FakeServer) -> None:
    api.answers = [(404, b"")]
    with Upload(100) as upload, pytest.raises(FileMissing, match="status 404"):
        Address(api.url).fetch("a", upload)


@pytest.mark.parametrize("status", [0, 408, 429, 500, 503])
def test_a_file_whose_place_is_unavailable_is_fetched_again_after_growing_pauses(
    master: Api, api: FakeServer, pauses: list[float], name: str, status: int
) -> None:
    unavailable = (status, b"")
    api.answers = [unavailable, unavailable, unavailable, CONTENT]
    assert store(name, api, pauses) == []
    assert records.find(name) is not None
    assert pauses == sorted(set(pauses))
    assert len(pauses) == 3


def test_a_place_that_stays_unavailable_is_given_up_and_reported(
    master: Api, api: FakeServer, pauses: list[float], name: str
) -> None:
    api.answers = [(503, b"")]
    assert store(name, api, pauses) == [(f"file {name}", "status 503")]
    assert len(api.paths) == len(pauses) + 1 == 5
    # Tests in other processes use the folder too, for moments.
    until(lambda: list(incoming_folder().iterdir()) == [], 20)


def test_a_file_whose_connection_ends_early_is_fetched_again(
    master: Api, api: FakeServer, pauses: list[float], name: str
) -> None:
    api.answers = [(200, b"con", {"Content-Length": "7"}), CONTENT]
    assert store(name, api, pauses) == []
    record = records.find(name)
    assert record is not None
    assert record.size == 7


@pytest.mark.parametrize("status", [400, 403, 404, 410])
def test_a_file_that_isnt_there_is_requested_once(
    master: Api, api: FakeServer, pauses: list[float], name: str, status: int
) -> None:
    api.answers = [(status, b"")]
    assert store(name, api, pauses) == [(f"file {name}", f"status {status}")]
    assert (len(api.paths), pauses) == (1, [])


@pytest.mark.parametrize(
    ("retry_after", "least", "most"),
    [
        ("7", 7, 7),
        ("0", 0.1, 1),
        ("86400", LONGEST_PAUSE, LONGEST_PAUSE),
        (format_datetime(datetime(2100, 1, 1, tzinfo=UTC), usegmt=True), LONGEST_PAUSE, 60),
        (format_datetime(datetime(2020, 1, 1, tzinfo=UTC), usegmt=True), 0.1, 1),
        ("-5", 0.1, 1),
        ("soon", 0.1, 1),
        ("9" * 400, 0.1, 1),
    ],
)
def test_a_place_says_how_long_to_wait_within_a_limit(
    master: Api,
    api: FakeServer,
    pauses: list[float],
    name: str,
    retry_after: str,
    least: float,
    most: float,
) -> None:
    api.answers = [(429, b"", {"Retry-After": retry_after}), CONTENT]
    assert store(name, api, pauses) == []
    (pause,) = pauses
    assert least <= pause <= most


def test_names_of_files_are_found_at_any_depth() -> None:
    file = {"__type": "File", "name": "a", "url": "http://elsewhere.example.org/a"}
    assert list(files.names_in([file, [{"x": file}, {"__type": "File"}], "b", None])) == ["a", "a"]
