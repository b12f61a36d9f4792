"""Files that imported objects refer to: fetched from where the operator says, stored here.

The URLs in File values are ignored: clients could write any address there.
"""

from __future__ import annotations

import ssl
import urllib.request
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from pathlib import Path
from typing import Final, Protocol
from urllib.error import HTTPError
from urllib.parse import quote

from backend.kernel.errors import FileTooLarge, ServiceError
from backend.kernel.json_types import Json
from backend.operations.parse_import.problems import Report
from backend.settings.conf import service_settings
from objects.file_urls import is_stored_name
from objects.files import records, service
from objects.files.uploads import CHUNK, Upload

_AT_ONCE: Final = 4
_TIMEOUT: Final = 60.0  # seconds for one read
_ATTEMPTS: Final = 3


class FileMissing(Exception):
    """The file can't be had. The text says why."""


class FileSource(Protocol):
    def fetch(self, name: str, upload: Upload) -> str | None:
        """Write the file's content into an upload and return its type, if it is known.

        Raises ``FileMissing`` or ``FileTooLarge``.
        """


class Address:
    """Files below a URL: ``https://api.example.org/parse/files/APP_ID``, or a bucket's."""

    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/")
        self._context = ssl.create_default_context()

    def fetch(self, name: str, upload: Upload) -> str | None:
        request = urllib.request.Request(f"{self._url}/{quote(name)}")
        try:
            with urllib.request.urlopen(
                request, timeout=_TIMEOUT, context=self._context
            ) as response:
                while piece := response.read(CHUNK):
                    upload.write(piece)
                content_type: str | None = response.headers.get("Content-Type")
                return content_type
        except HTTPError as error:
            raise FileMissing(f"status {error.code}") from None
        except (OSError, HTTPException) as error:
            raise FileMissing(f"{type(error).__name__}: {error}") from None


class Directory:
    """Files in a folder, as Parse Server's file system adapter stores them."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def fetch(self, name: str, upload: Upload) -> str | None:
        try:
            with (self._path / name).open("rb") as file:
                while piece := file.read(CHUNK):
                    upload.write(piece)
        except OSError as error:
            raise FileMissing(str(error.strerror)) from None
        return None


def names_in(values: Iterable[Json]) -> Iterator[str]:
    """Return the names of all File values, at any depth."""
    for value in values:
        if isinstance(value, list):
            yield from names_in(value)
        elif isinstance(value, dict):
            name = value.get("name")
            if value.get("__type") == "File" and isinstance(name, str):
                yield name
            else:
                yield from names_in(value.values())


def store(names: Iterable[str], source: FileSource, report: Report) -> int:
    """Fetch and store the files that aren't stored yet; return how many were stored."""
    needed = []
    for name in dict.fromkeys(names):
        if not is_stored_name(name):
            report(f"file {name}", "a name that no file can have here")
        elif records.find(name) is None:
            needed.append(name)
    stored = 0
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for start in range(0, len(needed), _AT_ONCE):
            some = needed[start : start + _AT_ONCE]
            for name, (upload, outcome) in zip(
                some, pool.map(lambda each: _fetched(each, source), some), strict=True
            ):
                if upload is None:
                    report(f"file {name}", outcome or "")
                    continue
                with upload:
                    try:
                        stored += service.transfer(name, upload, outcome)
                    except ServiceError as error:
                        report(f"file {name}", str(error))
    return stored


def _fetched(name: str, source: FileSource) -> tuple[Upload | None, str | None]:
    """Return an upload and its type, or None and why there is none."""
    reason = ""
    for _ in range(_ATTEMPTS):
        upload = Upload(service_settings.MAX_UPLOAD_SIZE)
        try:
            return upload, source.fetch(name, upload)
        except FileTooLarge as error:
            upload.__exit__(None, None, None)
            return None, str(error)
        except FileMissing as error:
            upload.__exit__(None, None, None)
            reason = str(error)
            if reason.startswith("status 4"):
                break
    return None, reason
