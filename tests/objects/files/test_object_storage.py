"""Files in storage that speaks S3: a real server of that protocol, on this machine."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer

from objects.files import service
from objects.files.delivery import content_headers
from objects.files.models import StoredFile
from tests.objects.files.test_file_settings import read
from tests.objects.files.uploads import file_path, send, stored, stored_names, upload
from tests.rest import MASTER

pytestmark = pytest.mark.django_db

ACCESS = {"aws_access_key_id": "key", "aws_secret_access_key": "secret", "region_name": "eu-west-1"}
BIG = bytes(n % 253 for n in range(1024)) * 1024 * 9


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def bucket(endpoint: str) -> Iterator[Any]:
    """An empty bucket."""
    s3 = boto3.resource("s3", endpoint_url=endpoint, **ACCESS)
    made = s3.create_bucket(
        Bucket="files", CreateBucketConfiguration={"LocationConstraint": "eu-west-1"}
    )
    yield made
    made.objects.all().delete()
    made.delete()


@pytest.fixture(autouse=True)
def empty_storage(settings: Any, tmp_path: Path, endpoint: str, bucket: Any) -> None:
    """The settings as the environment would make them."""
    settings.DATA_DIR = tmp_path
    done = read(
        "file_settings.storage(Path('/nowhere'))",
        FILE_STORAGE="s3",
        FILE_S3_BUCKET="files",
        FILE_S3_ENDPOINT=endpoint,
        FILE_S3_REGION="eu-west-1",
        FILE_S3_ACCESS_KEY="key",
        FILE_S3_SECRET_KEY="secret",
        FILE_S3_PREFIX="uploads",
    )
    settings.STORAGES = {**settings.STORAGES, "files": json.loads(done.stdout)}


def keys(bucket: Any) -> list[str]:
    return [item.key for item in bucket.objects.all()]


@pytest.mark.parametrize("content", [b"small", BIG], ids=["small", "in parts"])
def test_a_file_goes_in_and_comes_out(bucket, content):
    name = stored("a.txt", content)
    assert keys(bucket) == [f"uploads/{name[:2]}/{name}"]
    assert bucket.Object(keys(bucket)[0]).content_type == "text/plain; charset=utf-8"
    got = send("GET", file_path(name))
    assert (got.status, got.body) == (200, content)
    assert stored_names() == set()


def test_an_object_of_the_bucket_is_inert_without_the_service(bucket):
    stored("a.js", b"alert(1)", "text/javascript")
    stored("a.png", b"not markup")
    results = {item.key[-4:]: item.Object() for item in bucket.objects.all()}
    assert results["a.js"].content_type == "application/octet-stream"
    assert results["a.js"].content_disposition == 'attachment; filename="a.js"'
    assert results[".png"].content_type == "image/png"
    assert results[".png"].content_disposition == 'inline; filename="a.png"'


@pytest.mark.parametrize("name", ["a.js", "a.html", "a.png", "a.gz"])
def test_files_from_the_bucket_have_the_headers_of_all_files(name, settings):
    settings.SERVICE = {**settings.SERVICE, "FILE_EXTENSIONS_ALLOWED": ("*",)}
    kept_as = stored(name, b"alert(1)", "text/javascript")
    got = send("GET", file_path(kept_as), headers={"Range": "bytes=0-4"})
    assert got.body == b"alert"
    expected = content_headers(kept_as, StoredFile.objects.get(name=kept_as).content_type)
    for header, value in expected.items():
        assert got.headers[header.lower()] == value
    assert got.headers["content-type"] != "text/javascript"


def test_only_the_range_that_is_requested_is_fetched(bucket):
    name = stored("a.bin", BIG)
    for range_header, part in (("0-0", BIG[:1]), ("5000000-5000009", BIG[5_000_000:5_000_010])):
        got = send("GET", file_path(name), headers={"Range": f"bytes={range_header}"})
        assert (got.status, got.body) == (206, part)
    got = send("GET", file_path(name), headers={"Range": "bytes=-3"})
    assert got.body == BIG[-3:]
    assert send("HEAD", file_path(name)).headers["content-length"] == str(len(BIG))


def test_removing_takes_the_object_away(bucket):
    name = stored("a.txt", b"text")
    assert send("DELETE", f"/files/{name}", headers=MASTER).status == 200
    assert keys(bucket) == []
    assert send("GET", file_path(name)).error == (404, 101)


def test_an_object_that_is_gone_is_404(bucket):
    name = stored("a.txt", b"text")
    bucket.objects.all().delete()
    assert send("GET", file_path(name)).error == (404, 101)


def test_names_with_blanks_and_signs_work(bucket):
    name = stored("a b@c~d.txt", b"text")
    assert send("GET", file_path(name)).body == b"text"


def test_a_bucket_that_isnt_there_is_an_error_without_its_name(bucket, settings):
    options = {**settings.STORAGES["files"]["OPTIONS"], "bucket_name": "elsewhere"}
    sound = settings.STORAGES
    chosen = {**sound["files"], "OPTIONS": options}
    settings.STORAGES = {**sound, "files": chosen}
    answer = upload("a.txt", b"text")
    assert answer.error == (400, 130)
    assert b"elsewhere" not in answer.body
    # As after every failure of storage, the row stays until the file is certainly gone.
    file = StoredFile.objects.get()
    assert send("GET", file_path(file.pk)).status == 404
    settings.STORAGES = sound
    StoredFile.objects.update(created_at=file.created_at - timedelta(days=1))
    assert service.remove_unfinished() == 1
    assert not StoredFile.objects.exists()
    assert stored_names() == set()
