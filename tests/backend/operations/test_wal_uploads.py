"""Uploaded files get into the archive, each once."""

from __future__ import annotations

import copy
import errno
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from django.core.files import File
from django.core.files.base import ContentFile
from django.core.files.storage import FileSystemStorage
from pyrage import x25519

from backend.instance.folder import DataFolder
from backend.instance.wal_archive import StateFile
from backend.operations.backup.places.folder import Folder
from backend.operations.backup.places.place import Place
from backend.operations.backup.problems import BackupError, PlaceError
from backend.operations.wal_archive.uploads import Uploads, digest_of, file_name
from objects.files import storage
from objects.files.models import StoredFile
from objects.files.names import new_stored_name
from objects.files.uploads import CHUNK

pytestmark = pytest.mark.django_db
NOW = datetime.now(UTC)
KEY = str(x25519.Identity.generate())


class Counted(Place):
    """A place that remembers what was written."""

    def __init__(self, path: Path, key: str = "") -> None:
        super().__init__(Folder(path), key)
        self.written: list[str] = []

    def write(self, name, pieces):
        super().write(name, pieces)
        self.written.append(name)


@pytest.fixture
def place(tmp_path: Path) -> Counted:
    (tmp_path / "place").mkdir()
    return Counted(tmp_path / "place")


@pytest.fixture
def state_file(tmp_path: Path) -> StateFile:
    (tmp_path / "data").mkdir()
    state_file = StateFile(DataFolder(tmp_path / "data"))
    state_file.change(instance="one")
    return state_file


def upload(content: bytes | None = b"bytes", age: timedelta = timedelta(0)) -> str:
    """A file with its row; without its bytes for None."""
    name = new_stored_name("été a.txt", "folder")
    StoredFile.objects.create(
        name=name, size=5, content_type="text/plain", sha256="", created_at=NOW - age
    )
    if content is not None:
        storage.save(name, ContentFile(content))
    return name


def test_each_file_is_stored_once(place, state_file):
    names = [upload(age=timedelta(days=days)) for days in (400, 2, 0)]
    uploads = Uploads(place, state_file)
    uploads.store_new()
    assert sorted(place.written) == sorted(file_name("one", name) for name in names)
    content = BytesIO()
    place.read(file_name("one", names[0]), content)
    assert content.getvalue() == b"bytes"
    place.written.clear()
    newest = upload()
    uploads.store_new()
    assert place.written == [file_name("one", newest)]
    # Another process compares all files with the place.
    place.written.clear()
    other = Uploads(place, state_file)
    for _ in range(2):
        other.store_new()
    assert place.written == []
    assert state_file.now.files.done is not None


def test_bytes_may_come_after_their_row(place, state_file):
    name = upload(content=None, age=timedelta(minutes=30))
    uploads = Uploads(place, state_file)
    uploads.store_new()
    assert place.written == []
    storage.save(name, ContentFile(b"late"))
    uploads.store_new()
    assert place.written == [file_name("one", name)]


def test_a_file_that_cannot_be_read_keeps_no_other_back(place, state_file):
    bad, good = upload(content=None, age=timedelta(1)), upload()
    (Path(storage._storage().path(storage.storage_key(bad)))).mkdir(parents=True)
    uploads = Uploads(place, state_file)
    for _ in range(2):
        with pytest.raises(BackupError, match="can't be read"):
            uploads.store_new()
    assert place.written == [file_name("one", good)]


class BreakingOff(File):
    """A file of which the disk returns the first piece."""

    def read(self, size: int = -1) -> Any:
        if self.file.tell():
            raise OSError(errno.EIO, "Input/output error")
        return self.file.read(size)


class Failing(FileSystemStorage):
    key = ""

    def open(self, name: str, mode: str = "rb") -> Any:
        file = super().open(name, mode)
        return BreakingOff(file.file, file.name) if name == self.key else file


@pytest.mark.parametrize("key", ["", KEY], ids=["plain", "encrypted"])
def test_a_file_that_breaks_off_keeps_no_other_back(place, state_file, settings, tmp_path, key):
    bad, good = upload(b"x" * (CHUNK + 1), age=timedelta(1)), upload()
    Failing.key = storage.storage_key(bad)
    chosen = copy.deepcopy(settings.STORAGES)
    chosen["files"]["BACKEND"] = f"{__name__}.Failing"
    settings.STORAGES = chosen
    place = Counted(tmp_path / "place", key)
    uploads = Uploads(place, state_file)
    for _ in range(2):
        with pytest.raises(BackupError, match=f"^{bad} can't be read: .*Input/output error"):
            uploads.store_new()
    assert place.written == [file_name("one", good)]
    assert [entry.name for entry in place.entries()] == place.written


def test_a_place_that_is_away_gets_every_file_later(place, state_file, tmp_path):
    uploads = Uploads(place, state_file)
    uploads.store_new()
    (tmp_path / "place").rename(tmp_path / "away")
    names = [upload() for _ in range(3)]
    with pytest.raises(PlaceError):
        uploads.store_new()
    (tmp_path / "away").rename(tmp_path / "place")
    uploads.store_new()
    assert sorted(place.written) == sorted(file_name("one", name) for name in names)


def test_files_without_a_row_are_absent(place, state_file):
    name, other = upload(), upload()
    uploads = Uploads(place, state_file)
    uploads.store_new()
    StoredFile.objects.filter(name=name).delete()
    assert uploads.absent() == [digest_of(name)]
    assert digest_of(other) not in uploads.absent()
