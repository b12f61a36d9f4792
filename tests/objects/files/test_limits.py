"""The limit of size, which holds while an upload comes, regardless of its Content-Length."""

from __future__ import annotations

import base64
import io
import json
import os
import time

import pytest

from objects.files.models import StoredFile
from objects.files.uploads import sweep
from tests.objects.files.uploads import file_path, send, stored_names, upload

pytestmark = pytest.mark.django_db

LIMIT = 200_000


@pytest.fixture(autouse=True)
def small(settings):
    settings.SERVICE = {**settings.SERVICE, "MAX_UPLOAD_SIZE": LIMIT}


class Counting(io.RawIOBase):
    """A body without end; ``taken`` is how much of it was read."""

    taken = 0

    def read(self, size: int = -1) -> bytes:
        assert size > 0
        self.taken += size
        return b"x" * size


def form(content: bytes) -> bytes:
    head = b'--edge\r\nContent-Disposition: form-data; name="a"; filename="a"\r\n\r\n'
    return head + content + b"\r\n--edge--\r\n"


def as_json(content: bytes) -> bytes:
    keys = {"_ApplicationId": "test-app", "_MasterKey": "test-master-key"}
    return json.dumps({**keys, "base64": base64.b64encode(content).decode()}).encode()


MULTIPART = "multipart/form-data; boundary=edge"


def test_exactly_the_limit_is_taken():
    content = b"x" * LIMIT
    assert upload("a.bin", content).status == 201
    assert upload("a.bin", content, length=None).status == 201
    assert upload("a.bin", form(content), MULTIPART).status == 201
    answer = send("POST", "/files/a.bin", as_json(content))
    assert send("GET", file_path(answer.json["name"])).body == content


def test_one_byte_more_is_413_and_nothing_stays():
    content = b"x" * (LIMIT + 1)
    for answer in (
        upload("a.bin", content),
        upload("a.bin", content, length=None),
        upload("a.bin", form(content), MULTIPART),
        upload("a.bin", form(content), MULTIPART, length=None),
        send("POST", "/files/a.bin", as_json(content)),
        send("POST", "/files/a.bin", as_json(content), length=None),
    ):
        assert answer.error == (413, 129)
    assert not stored_names()
    assert not StoredFile.objects.exists()


def test_an_announced_length_over_the_limit_is_refused_before_reading():
    body = Counting()
    assert upload("a.bin", body, length=LIMIT + 1).error == (413, 129)
    assert send("POST", "/files/a.bin", body, length=10**12).error == (413, 129)
    assert body.taken == 0


def test_an_endless_body_is_read_no_further_than_the_limit():
    for headers, content_type in ((None, ""), (None, MULTIPART), ({}, "")):
        body = Counting()
        answer = send(
            "POST",
            "/files/a.bin",
            body,
            {"X-Svc-Application-Id": "test-app", "X-Svc-Master-Key": "test-master-key"}
            if headers is None
            else headers,
            content_type=content_type,
            length=None,
        )
        assert answer.error in ((413, 129), (400, 130))
        assert body.taken < 2 * LIMIT + 2 * 65536
    assert not stored_names()


def test_a_body_that_ends_before_its_announced_length_is_refused():
    assert upload("a.bin", b"x" * 10, length=11).error == (400, 130)
    assert upload("a.bin", form(b"x"), MULTIPART, length=10_000).error == (400, 130)
    assert send("POST", "/files/a.bin", as_json(b"x"), length=10_000).error == (400, 130)
    assert not stored_names()


def test_what_is_behind_the_announced_length_isnt_read():
    answer = upload("a.bin", b"0123456789", length=4)
    assert send("GET", file_path(answer.json["name"])).body == b"0123"


@pytest.mark.parametrize("length", ["-1", "x", "1e3", "٣", "+5", "0x5"])
def test_a_length_that_isnt_a_number_is_refused(length):
    assert upload("a.bin", b"x" * 10, length=length).status == 400
    assert not stored_names()


def test_a_connection_that_breaks_off_leaves_nothing():
    class Broken(io.RawIOBase):
        pieces = 2

        def read(self, size: int = -1) -> bytes:
            self.pieces -= 1
            if self.pieces < 0:
                raise OSError("connection reset")
            return b"x" * size

    assert upload("a.bin", Broken(), length=LIMIT).error == (400, 130)
    assert not stored_names()


def test_leftovers_of_killed_processes_are_swept(tmp_path):
    folder = tmp_path / "uploads"
    folder.mkdir()
    for name, age in (("upload-old", 7200), ("upload-new", 10), ("else", 7200)):
        (folder / name).touch()
        os.utime(folder / name, (time.time() - age,) * 2)
    assert sweep(3600) == 1
    assert sorted(os.listdir(folder)) == ["else", "upload-new"]
