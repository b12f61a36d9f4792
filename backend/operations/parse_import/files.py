"""Files that imported objects refer to: fetched from where the operator says, stored here.

The URLs in File values are ignored: clients could write any address there.
"""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import quote, urlsplit

from backend.kernel.errors import FileTooLarge, ServiceError
from backend.kernel.json_types import Json
from backend.kernel.outgoing import Client, Stream, Unreachable, retry_after
from backend.kernel.outgoing.addresses import Address as NetworkAddress
from backend.kernel.outgoing.addresses import NotAllowed, look_up, resolved
from backend.kernel.outgoing.connection import Origin
from backend.kernel.texts.shown import shown
from backend.operations.parse_import.problems import Report, sentence
from backend.settings.conf import service_settings
from objects.file_urls import is_stored_name
from objects.files import records, service
from objects.files.types import ExtensionRefused
from objects.files.uploads import CHUNK, Upload
from objects.service.bulk import NOT_ABOUT_THE_OBJECT

_AT_ONCE: Final = 4
_TIMEOUT: Final = 60.0  # seconds for a file, and in addition the time that its bytes may take
_SLOWEST: Final = 256 * 1024  # bytes a second, of the largest file that is stored
_PAUSES: Final = (0.5, 2.0, 5.0, 15.0)
"""Seconds before a file is fetched again whose place is unavailable."""
LONGEST_PAUSE: Final = 60.0
"""Seconds that a place can ask for by ``Retry-After``, at most."""
_TEMPORARY: Final = frozenset({408, 425, 429})
"""Statuses below 500 after which the same request may be answered later."""


class FileMissing(Exception):
    """The file can't be had. The text says why."""


class PlaceUnavailable(FileMissing):
    """The file may be had later, after ``retry_after`` seconds if its place has said so."""

    def __init__(self, reason: str, retry_after: float | None = None) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True)
class Fetched:
    """A file's content, and its type if that is known. Close the upload."""

    upload: Upload
    content_type: str | None


class FileSource(Protocol):
    def fetch(self, name: str, upload: Upload) -> str | None:
        """Write the file's content into an upload and return its type, if it is known.

        Raises ``FileMissing``, ``PlaceUnavailable`` if it may succeed later, or ``FileTooLarge``.
        """


class Address:
    """Files below a URL: ``https://api.example.org/parse/files/APP_ID``, or a bucket's.

    Files are public here, so none comes from another place: redirects aren't followed, and a name
    of the internet leads to public addresses only, or to networks that ``WEBHOOK_ALLOW_PRIVATE``
    lists.
    """

    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/")
        self._client = Client(resolve=_resolve)

    def fetch(self, name: str, upload: Upload) -> str | None:
        seconds = _TIMEOUT + service_settings.MAX_UPLOAD_SIZE / _SLOWEST
        try:
            with self._client.stream(
                "GET", f"{self._url}/{quote(name)}", seconds=seconds
            ) as response:
                _check_status(response)
                for piece in response.pieces():
                    upload.write(piece)
                return response.headers.get("content-type")
        except NotAllowed as error:
            raise FileMissing(str(error)) from None
        except Unreachable as error:
            raise PlaceUnavailable(str(error)) from None


def _resolve(origin: Origin, seconds: float) -> Sequence[NetworkAddress]:
    if _is_internal(origin.host):
        return look_up(origin.host, origin.port, seconds)
    return resolved(origin.host, origin.port, seconds)


def _is_internal(host: str) -> bool:
    """Whether a host is an address, or a name that only the operator's network has."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return "." not in host
    return True


def _check_status(response: Stream) -> None:
    """Raise ``FileMissing``, or ``PlaceUnavailable``, unless it is 200."""
    status = response.status
    if status in _TEMPORARY or status >= 500:
        raise PlaceUnavailable(f"status {status}", retry_after(response.headers.get("retry-after")))
    if 300 <= status < 400:
        place = urlsplit(response.headers.get("location", "")).netloc
        raise FileMissing(
            f"status {status}, a redirect to {shown(place) or 'another path'}. Redirects aren't"
            " followed: name the place where the files are with --files-url"
        )
    if status != 200:
        raise FileMissing(f"status {status}")


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


def store(
    names: Iterable[str],
    source: FileSource,
    report: Report,
    sleep: Callable[[float], None] = time.sleep,
) -> int:
    """Fetch and store the files that aren't stored yet; return how many are still not stored.

    A name that no file can have is reported, and not counted.

    Raises the errors in ``NOT_ABOUT_THE_OBJECT``.
    """

    def fetch(name: str) -> Fetched | FileMissing | FileTooLarge:
        try:
            return _fetched(name, source, sleep)
        except (FileMissing, FileTooLarge) as error:
            return error

    needed = _missing(names, report)
    stored = 0
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for start in range(0, len(needed), _AT_ONCE):
            chunk = needed[start : start + _AT_ONCE]
            outcomes = dict(zip(chunk, pool.map(fetch, chunk), strict=True))
            with ExitStack() as uploads:
                for outcome in outcomes.values():
                    if isinstance(outcome, Fetched):
                        uploads.enter_context(outcome.upload)
                for name, outcome in outcomes.items():
                    if isinstance(outcome, Fetched):
                        stored += _stored(name, outcome, report)
                    else:
                        report(f"file {name}", str(outcome))
    return len(needed) - stored


def count_missing(names: Iterable[str]) -> int:
    """Return how many of these files aren't stored."""
    return len(_missing(names, report=lambda place, reason: None))


def _missing(names: Iterable[str], report: Report) -> list[str]:
    valid = []
    for name in dict.fromkeys(names):
        if is_stored_name(name):
            valid.append(name)
        else:
            report(f"file {name}", "a name that no file can have here")
    existing = records.existing(valid) if valid else set()
    return [name for name in valid if name not in existing]


def _stored(name: str, fetched: Fetched, report: Report) -> bool:
    try:
        return service.transfer(name, fetched.upload, fetched.content_type)
    except NOT_ABOUT_THE_OBJECT:
        raise
    except ExtensionRefused as error:
        reason = f"{sentence(error)} FILE_EXTENSIONS_ALLOWED and FILE_EXTENSIONS_DENIED decide."
        report(f"file {name}", reason)
        return False
    except ServiceError as error:
        report(f"file {name}", str(error))
        return False


def _fetched(name: str, source: FileSource, sleep: Callable[[float], None]) -> Fetched:
    """Fetch a file, again after growing pauses while its place is unavailable.

    Raises ``FileMissing`` or ``FileTooLarge``.
    """
    pauses = iter(_PAUSES)
    while True:
        upload = Upload(service_settings.MAX_UPLOAD_SIZE)
        try:
            return Fetched(upload, source.fetch(name, upload))
        except PlaceUnavailable as error:
            upload.close()
            pause = next(pauses, None)
            if pause is None:
                raise
            sleep(min(max(pause, error.retry_after or 0.0), LONGEST_PAUSE))
        except BaseException:
            upload.close()
            raise
