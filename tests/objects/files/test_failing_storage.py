"""Storage that fails, in each way: no 500, no lost file, and nothing that looks like a success."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from objects.files.models import StoredFile
from tests.objects.files.fake_s3 import FakeS3, Handler, fake_s3
from tests.objects.files.test_file_settings import read
from tests.objects.files.uploads import Sent, file_path, send, stored
from tests.rest import MASTER, Api

pytestmark = pytest.mark.django_db

CONTENT = b"0123456789"


def answers(status: int, code: str) -> Callable[[Handler], None]:
    return lambda handler: handler.error(status, code)


def closes(handler: Handler) -> None:
    handler.close_connection = True


def closes_after_head(handler: Handler) -> None:
    handler.send_response(206)
    handler.send_header("Content-Range", "bytes 0-9/10")
    handler.send_header("Content-Length", "10")
    handler.end_headers()
    handler.close_connection = True


FAULTS = {
    "500": answers(500, "InternalError"),
    "503": answers(503, "SlowDown"),
    "403": answers(403, "AccessDenied"),
    "a missing bucket": answers(404, "NoSuchBucket"),
    "no XML": lambda handler: handler.answer(404, b"<html>not found</html>"),
    "a closed connection": closes,
}
FAULTS_OF_READING = {**FAULTS, "a response that ends early": closes_after_head}


@pytest.fixture(scope="module")
def server() -> Iterator[FakeS3]:
    with fake_s3() as s3:
        yield s3


@pytest.fixture(scope="module")
def s3_storage(server: FakeS3) -> Any:
    """The storage as the settings make it."""
    done = read(
        "file_settings.storage(Path('/nowhere'))",
        FILE_STORAGE="s3",
        FILE_S3_BUCKET="files",
        FILE_S3_ENDPOINT=server.url,
        FILE_S3_REGION="eu-west-1",
        FILE_S3_ACCESS_KEY="key",
        FILE_S3_SECRET_KEY="secret",
    )
    return json.loads(done.stdout)


@pytest.fixture
def s3(server: FakeS3, s3_storage: Any, settings: Any, tmp_path: Any) -> Iterator[FakeS3]:
    settings.DATA_DIR = tmp_path
    settings.STORAGES = {**settings.STORAGES, "files": s3_storage}
    yield server
    server.fault = None
    server.objects.clear()


def get(name: str, byte_range: str = "") -> Sent:
    headers = {"Range": byte_range} if byte_range else {}
    return send("GET", file_path(name), headers=headers)


@pytest.mark.parametrize("fault", FAULTS_OF_READING.values(), ids=FAULTS_OF_READING)
def test_a_download_is_unavailable(s3: FakeS3, fault: Callable[[Handler], None]) -> None:
    name = stored("a.txt", CONTENT)
    s3.fault = fault
    reply = get(name)
    assert reply.error == (503, 1)
    assert reply.headers["retry-after"] == "1"
    s3.fault = None
    assert get(name).body == CONTENT


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_deletion_fails_and_the_file_is_still_there(
    s3: FakeS3, fault: Callable[[Handler], None]
) -> None:
    name = stored("a.txt", CONTENT)
    s3.fault = fault
    assert Api(MASTER).delete(f"/files/{name}").error == (400, 153)
    s3.fault = None
    assert get(name).body == CONTENT
    assert Api(MASTER).delete(f"/files/{name}").status == 200
    assert (s3.objects, StoredFile.objects.count()) == ({}, 0)


def test_the_file_of_an_object_that_is_gone_can_be_deleted(s3: FakeS3) -> None:
    name = stored("a.txt", CONTENT)
    s3.fault = partial(Handler.error, status=404, code="NoSuchKey")
    assert get(name).status == 404
    assert Api(MASTER).delete(f"/files/{name}").status == 200
    assert not StoredFile.objects.exists()


@pytest.mark.parametrize("content", [b"", b"01234", CONTENT + b"more"], ids=len)
def test_content_of_another_length_is_never_sent(s3: FakeS3, content: bytes) -> None:
    name = stored("a.txt", CONTENT)
    s3.objects = dict.fromkeys(s3.objects, content)
    for byte_range in ("", "bytes=0-2", "bytes=7-9"):
        assert get(name, byte_range).error == (503, 1)


def test_content_of_another_length_is_never_sent_from_a_folder(tmp_path: Any) -> None:
    name = stored("a.txt", CONTENT)
    (file,) = tmp_path.rglob("*a.txt")
    file.write_bytes(CONTENT[:5])
    assert get(name).status == 503


def test_part_of_an_object_is_only_sent_as_such(s3: FakeS3) -> None:
    """Some servers ignore ranges."""
    name = stored("a.txt", CONTENT)
    s3.fault = partial(Handler.answer, status=200, body=CONTENT)
    assert get(name, "bytes=5-9").error == (503, 1)
    assert get(name).body == CONTENT
