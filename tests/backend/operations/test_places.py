"""Places of backups: a folder and a bucket, sound and failing, encrypted and not."""

from __future__ import annotations

import errno
import logging
import os
import random
import resource
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer
from pyrage import decrypt, x25519

from backend.operations.backup.places import bucket as buckets
from backend.operations.backup.places.place import Place, place_of
from backend.operations.backup.problems import BackupError, PlaceError, UnreadableObject
from tests.objects.files.fake_s3 import FakeS3, Handler, fake_s3

ROOT = Path(__file__).resolve().parents[3]
KEY = str(x25519.Identity.generate())
OTHER_KEY = str(x25519.Identity.generate())
SECRET = "the-secret-of-the-bucket"
ACCESS = {"aws_access_key_id": "key", "aws_secret_access_key": "secret", "region_name": "eu-west-1"}
CONTENT = random.Random(7).randbytes(200_000)
LARGE = CONTENT * 100  # 20 MB: parts of two sizes, the last one smaller


class Bytes(bytearray):
    def write(self, piece: bytes) -> int:
        self += piece
        return len(piece)


def bucket_settings(url: str, key: str = KEY) -> dict[str, str]:
    return {
        "BACKUP_TO": "s3://backups/of/app",
        "BACKUP_KEY": key,
        "BACKUP_S3_ENDPOINT": url,
        "BACKUP_S3_REGION": "eu-west-1",
        "BACKUP_S3_ACCESS_KEY": "key",
        "BACKUP_S3_SECRET_KEY": SECRET,
    }


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def bucket(s3: str) -> Iterator[Any]:
    created = boto3.resource("s3", endpoint_url=s3, **ACCESS).create_bucket(
        Bucket="backups", CreateBucketConfiguration={"LocationConstraint": "eu-west-1"}
    )
    yield created
    created.objects.all().delete()
    created.delete()


@pytest.fixture(params=["folder", "encrypted folder", "encrypted bucket"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "encrypted bucket":
        request.getfixturevalue("bucket")
        return place_of(bucket_settings(request.getfixturevalue("s3")))
    key = KEY if "encrypted" in request.param else ""
    return place_of({"BACKUP_TO": str(tmp_path), "BACKUP_KEY": key})


def read(place: Place, name: str) -> bytes:
    content = Bytes()
    place.read(name, content)
    return bytes(content)


@pytest.mark.parametrize("content", [b"", CONTENT, LARGE], ids=["empty", "small", "in parts"])
def test_what_is_written_is_listed_read_and_removed(place: Place, content: bytes) -> None:
    place.write("a/one.tar", iter([content[:70_000], content[70_000:]]))
    place.write("a/two.tar", [b"2"])
    place.write("b/one.tar", [b"3"])
    assert [entry.name for entry in place.entries()] == ["a/one.tar", "a/two.tar", "b/one.tar"]
    assert [entry.name for entry in place.entries("a/o")] == ["a/one.tar"]
    assert read(place, "a/one.tar") == content
    place.write("a/one.tar", [b"other"])
    assert read(place, "a/one.tar") == b"other"
    place.remove("a/one.tar")
    place.remove("a/one.tar")
    assert [entry.name for entry in place.entries("a")] == ["a/two.tar"]
    with pytest.raises(UnreadableObject, match=r"has no a/one\.tar"):
        read(place, "a/one.tar")


def test_a_writer_that_fails_changes_nothing(place: Place) -> None:
    place.write("one.tar", [b"before"])

    def pieces(error: Exception) -> Iterator[bytes]:
        yield LARGE
        raise error

    # Errors of what is read aren't those of the place.
    for error in (
        BackupError("the database has gone"),
        OSError(errno.EIO, "Input/output error", "/data/file"),
        KeyError("key"),
        ValueError("value"),
    ):
        for name in ("one.tar", "two.tar"):
            with pytest.raises(type(error)) as raised:
                place.write(name, pieces(error))
            assert raised.value is error
    assert read(place, "one.tar") == b"before"
    assert [entry.name for entry in place.entries()] == ["one.tar"]
    assert place.remove_unfinished("") == 0


@pytest.mark.parametrize(
    "name",
    ["../x", "a/../x", "/etc/x", "a//b", ".x", "a/.x", "", "a b", "ä", "x\n", "x/", "n" * 201],
)
def test_a_name_that_leaves_the_place_is_refused(place: Place, name: str) -> None:
    calls: list[Callable[[], object]] = [
        lambda: place.write(name, [b"x"]),
        lambda: place.read(name, Bytes()),
        lambda: place.remove(name),
    ]
    for call in calls:
        with pytest.raises(PlaceError, match="can't be the name"):
            call()


def test_only_the_owner_may_read_a_folder_s_backups(tmp_path: Path) -> None:
    place_of({"BACKUP_TO": str(tmp_path)}).write("a/one.tar", [b"x"])
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "a/one.tar").stat().st_mode) == 0o600


def test_a_folder_that_is_not_mounted_is_not_made(tmp_path: Path) -> None:
    place = place_of({"BACKUP_TO": str(tmp_path / "mount")})
    for call in (lambda: place.entries(), lambda: place.write("x", [b"x"])):
        with pytest.raises(PlaceError, match=f"^{tmp_path}/mount: there is no such"):
            call()
    assert not (tmp_path / "mount").exists()


def test_a_file_that_cannot_grow_is_an_error_and_not_a_backup(tmp_path: Path) -> None:
    """As on a full disk, by a limit on the size of files."""
    place = place_of({"BACKUP_TO": str(tmp_path), "BACKUP_KEY": KEY})
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, limits[1]))
    try:
        with pytest.raises(PlaceError, match=f"{tmp_path} can't be written: File too large"):
            place.write("full.tar", [LARGE])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list(tmp_path.iterdir()) == []


def test_a_writer_that_was_killed_leaves_nothing_that_counts(place: Place, tmp_path: Path) -> None:
    """In a folder a hidden file, in a bucket parts; both are removed later."""
    assert place.remove_unfinished("a/") == 0
    sink = place._storage.writing("a/one.tar" + place._suffix)
    sink.__enter__().write(LARGE)  # and the process is gone
    assert place.entries() == []
    assert place.remove_unfinished("b/") == 0
    assert place.remove_unfinished("a/", lambda name: name == "a/two.tar") == 0
    assert place.remove_unfinished("a/", lambda name: name == "a/one.tar") == 1
    assert place.remove_unfinished("a/") == 0


def damaged(content: bytes) -> dict[str, bytes]:
    middle = len(content) // 2
    return {
        "cut off": content[:middle],
        "without its last byte": content[:-1],
        "with a byte flipped": content[:middle]
        + bytes([content[middle] ^ 1])
        + content[middle + 1 :],
        "with a byte more": content + b"x",
        "empty": b"",
        "plain": CONTENT,
        "with an endless header": b"age-encryption.org/v1\n-> X25519 " + b"a" * 3_000_000,
    }


def test_a_changed_object_is_not_taken_for_the_backup(tmp_path: Path) -> None:
    place = place_of({"BACKUP_TO": str(tmp_path), "BACKUP_KEY": KEY})
    place.write("one.tar", [CONTENT])
    file = tmp_path / "one.tar.age"
    for how, content in damaged(file.read_bytes()).items():
        file.write_bytes(content)
        with pytest.raises(UnreadableObject, match=r"one\.tar in .* can't be read: it is") as error:
            read(place, "one.tar")
        assert KEY not in str(error.value), how


def test_another_key_is_named_and_not_shown(tmp_path: Path) -> None:
    place_of({"BACKUP_TO": str(tmp_path), "BACKUP_KEY": KEY}).write("one.tar", [CONTENT])
    other = place_of({"BACKUP_TO": str(tmp_path), "BACKUP_KEY": OTHER_KEY})
    with pytest.raises(UnreadableObject, match="another key than that of BACKUP_KEY") as error:
        read(other, "one.tar")
    assert KEY not in str(error.value)
    assert OTHER_KEY not in str(error.value)


def test_plain_and_encrypted_backups_of_a_folder_do_not_mix(tmp_path: Path) -> None:
    sealed = place_of({"BACKUP_TO": str(tmp_path), "BACKUP_KEY": KEY})
    plain = place_of({"BACKUP_TO": str(tmp_path)})
    sealed.write("one.tar", [b"sealed"])
    plain.write("two.tar", [b"plain"])
    assert [entry.name for entry in sealed.entries()] == ["one.tar"]
    assert [entry.name for entry in plain.entries()] == ["two.tar"]


def test_what_is_stored_is_an_age_file(tmp_path: Path) -> None:
    place_of({"BACKUP_TO": str(tmp_path), "BACKUP_KEY": KEY}).write("one.tar", [CONTENT])
    stored = (tmp_path / "one.tar.age").read_bytes()
    assert stored.startswith(b"age-encryption.org/v1\n-> X25519 ")
    assert decrypt(stored, [x25519.Identity.from_str(KEY)]) == CONTENT


def answers(status: int, code: str) -> Callable[[Handler], None]:
    return lambda handler: handler.error(status, code)


def closes(handler: Handler) -> None:
    handler.close_connection = True


def ends_early(handler: Handler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b"age-encryption.org/v1\n")
    handler.close_connection = True


def stalls(handler: Handler) -> None:
    handler.connection.recv(1)  # until the client has gone
    handler.close_connection = True


FAULTS: dict[str, tuple[Callable[[Handler], None], str]] = {
    "500": (answers(500, "InternalError"), r"failed \(InternalError, status 500\)"),
    "503": (answers(503, "SlowDown"), r"failed \(SlowDown, status 503\)"),
    "403": (answers(403, "AccessDenied"), r"access is refused \(AccessDenied\)"),
    "an unknown key": (answers(403, SECRET), "access is refused"),
    "no bucket": (answers(404, "NoSuchBucket"), "there is no such bucket"),
    "no S3": (lambda handler: handler.answer(200, b"<html>" * 9), "can't be"),
    "closes": (closes, "can't be reached"),
    "ends early": (ends_early, "can't be"),
    "stalls": (stalls, "can't be reached, or doesn't answer in time"),
}


@pytest.fixture(scope="module")
def failing() -> Iterator[FakeS3]:
    with fake_s3() as server:
        yield server


@pytest.mark.parametrize("fault", FAULTS)
def test_a_bucket_that_fails_is_named_without_credentials(
    failing: FakeS3, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = buckets._CLIENT_CONFIG.merge(
        buckets.Config(
            read_timeout=0.2 if fault == "stalls" else 20, retries={"total_max_attempts": 1}
        )
    )
    monkeypatch.setattr(buckets, "_CLIENT_CONFIG", quick)
    failing.fault, problem = FAULTS[fault]
    place = place_of(bucket_settings(failing.url))
    with pytest.raises(PlaceError, match=problem) as error:
        read(place, "one.tar")
    # Bytes of the right length that aren't a backup are damage; all else is the bucket's.
    assert isinstance(error.value, UnreadableObject) == (fault == "no S3")
    assert "s3://backups/of/app" in str(error.value)
    assert KEY not in str(error.value)
    if fault in ("403", "500", "no bucket", "closes", "stalls"):
        with pytest.raises(PlaceError):
            place.write("one.tar", [CONTENT])
    with pytest.raises(PlaceError):
        place.entries()


def test_no_more_than_a_limit_is_read_into_memory(place: Place) -> None:
    place.write("one.tar", [CONTENT])
    assert place.read_bytes("one.tar", len(CONTENT)) == CONTENT
    with pytest.raises(UnreadableObject, match=r"one\.tar in .* has more than 199999 bytes"):
        place.read_bytes("one.tar", len(CONTENT) - 1)


def test_a_folder_whose_object_cannot_be_read_is_named_with_it(tmp_path: Path) -> None:
    """A file system that fails isn't a missing object."""
    place = place_of({"BACKUP_TO": str(tmp_path)})
    (tmp_path / "one.tar").mkdir()
    with pytest.raises(PlaceError, match=f"one.tar in {tmp_path} can't be read: Is a") as error:
        read(place, "one.tar")
    assert not isinstance(error.value, UnreadableObject)


def test_a_place_needs_no_django(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from backend.operations.backup.places.place import place_of\n"
        f"place_of({{'BACKUP_TO': {str(tmp_path)!r}}}).write('x', [b'x'])\n"
        "assert not {'django', 'boto3', 'celery'} & sys.modules.keys()\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, env={**os.environ})
    assert (tmp_path / "x").read_bytes() == b"x"
