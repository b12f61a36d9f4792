"""The three ways in which an upload comes: raw, as a form (multipart), and as JSON with base64.

All of them are read piece by piece from the server, with the limit of size applied to what really
comes: a ``Content-Length`` may lie or be missing. Nothing here is held in memory but one piece.
"""

from __future__ import annotations

import base64
import binascii
import mmap
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any, Final, cast

import msgspec
from django.core.exceptions import SuspiciousOperation
from django.core.files.uploadhandler import FileUploadHandler
from django.http import HttpRequest
from django.http.multipartparser import MultiPartParser, MultiPartParserError

from backend.http.bodies import parsers
from backend.http.bodies.limits import AROUND_FILE, json_upload_limit
from backend.http.bodies.substrings import occurrences
from backend.kernel.errors import FileSaveFailed, InvalidApplicationId, InvalidJSON
from backend.settings.conf import service_settings
from objects.files.uploads import CHUNK, Upload, incoming_folder, too_large

_MOST_TEXT: Final = 2_621_440
"""Bytes of the texts beside the file in a form, all together."""
_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_FILE_NAME = re.compile(rb'"base64"[\t\n\r ]{0,64}:[\t\n\r ]{0,64}"')
_BLANKS = re.compile(rb"[\t\n\r ]+")


class Body:
    """The body of a request; ``read`` raises when it is too large or breaks off."""

    def __init__(self, request: HttpRequest, limit: int) -> None:
        meta = request.META
        parsers.check_coding(meta)
        self._read = meta["wsgi.input"].read
        self._limit = limit
        self._come = 0
        self._length = self._announced(meta)
        if self._length is not None and self._length > limit:
            raise too_large(service_settings.MAX_UPLOAD_SIZE)

    @staticmethod
    def _announced(meta: dict[str, Any]) -> int | None:
        """How much will come; None if only the end will tell."""
        try:
            length = parsers.announced_length(meta)
        except ValueError:
            raise FileSaveFailed(
                "Invalid file upload. Content-Length: expected a number."
            ) from None
        return 0 if length is None and not meta.get("wsgi.input_terminated") else length

    def read(self, size: int = CHUNK) -> bytes:
        """The next piece; empty at the end."""
        if self._length is not None:
            size = min(size, self._length - self._come)
            if not size:
                return b""
        try:
            piece: bytes = self._read(size)
        except OSError:
            piece = b""
        self._come += len(piece)
        if self._come > self._limit:
            raise too_large(service_settings.MAX_UPLOAD_SIZE)
        if not piece and self._length is not None:
            raise FileSaveFailed("Invalid file upload. The request body ended early.")
        return piece

    def __iter__(self) -> Iterator[bytes]:
        while piece := self.read(CHUNK):
            yield piece


def receive_raw(request: HttpRequest, upload: Upload) -> None:
    """Take the whole body as the file."""
    upload.write_all(Body(request, service_settings.MAX_UPLOAD_SIZE))


# -- Forms ----------------------------------------------------------------------------------------


def receive_form(request: HttpRequest, upload: Upload) -> tuple[str, Any]:
    """Take the one file of a ``multipart/form-data`` body; return its type and ``fileData``."""
    body = Body(request, service_settings.MAX_UPLOAD_SIZE + AROUND_FILE)
    part = _Part(upload)
    # The parser wants a length, and reads to the end regardless of it.
    meta = {**request.META, "CONTENT_LENGTH": "1"}
    try:
        fields, _ = MultiPartParser(meta, cast(IO[bytes], body), [part], "utf-8").parse()
    except (MultiPartParserError, SuspiciousOperation, ValueError) as error:
        raise FileSaveFailed("Invalid file upload. The form can't be read.") from error
    texts = (value for _, values in fields.lists() for value in values)
    if sum(len(str(text).encode()) for text in texts) > _MOST_TEXT:
        raise FileSaveFailed("Invalid file upload. The form has too much beside its file.")
    field = fields.get("fileData")
    notes = parsers.decode_json(field, "fileData") if field else None
    return fields.get("_ContentType") or part.declared_type, notes


class _Part(FileUploadHandler):
    """Hands the content of the form's file on as it comes."""

    chunk_size = CHUNK

    def __init__(self, upload: Upload) -> None:
        super().__init__()
        self._upload = upload
        self._files = 0
        self.declared_type = ""

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        super().new_file(*args, **kwargs)
        self._files += 1
        if self._files > 1:
            raise FileSaveFailed("Invalid file upload. A form holds one file.")
        self.declared_type = self.content_type or ""

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        self._upload.write(raw_data)

    def file_complete(self, file_size: int) -> None:
        return None


# -- JSON -----------------------------------------------------------------------------------------


class JsonUpload:
    """A JSON body. ``fields`` are its members but the file, which may be taken by ``receive``."""

    def __init__(self, members: dict[str, msgspec.Raw], text: memoryview | None) -> None:
        """``text`` is the JSON string of the file, None without one."""
        self._base64 = text
        self.fields: dict[str, Any] = {
            name: parsers.decode_json(bytes(raw), name) for name, raw in members.items()
        }

    def receive(self, upload: Upload) -> None:
        """Take the file."""
        if self._base64 is not None:
            upload.write_all(_decoded(self._base64))


@contextmanager
def json_upload(request: HttpRequest) -> Iterator[JsonUpload]:
    """Read a JSON body, whose credentials aren't known before its end, to a file of its own.

    Without any the answer is that of a request without credentials, even if something else is
    wrong.
    """
    # A third more than the file for base64, and as much again for characters written as escapes.
    body = Body(request, json_upload_limit())
    with tempfile.TemporaryFile(dir=incoming_folder()) as file:
        for piece in body:
            file.write(piece)
        file.flush()
        if not file.tell():
            raise InvalidApplicationId
        view = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        yield JsonUpload(*_split(view))


def _split(body: mmap.mmap) -> tuple[dict[str, msgspec.Raw], memoryview | None]:
    """Return the members of a JSON object without its file, and the JSON string of the file.

    Decoding holds the GIL, for seconds if a body of 30 MB has a million members. Therefore only
    what is left without the file is decoded, if that is short. Raises ``InvalidApplicationId`` for
    anything that isn't a JSON object, ``FileSaveFailed`` if it has too much beside its file.
    """
    if len(body) <= AROUND_FILE:
        members = _decoded_members(body[:])
        small = members.pop("base64", None)
        return members, None if small is None else memoryview(small)
    start = end = 0
    for start, end in _file_texts(body):
        if len(body) - (end - start) > AROUND_FILE:
            continue
        members = _decoded_members(body[: start + 1] + body[end - 1 :])
        if bytes(members.pop("base64", b"")) == b'""':
            return members, memoryview(body)[start:end]
    if not end:  # a file of another kind, without credentials
        raise InvalidApplicationId
    raise FileSaveFailed("Invalid file upload. The JSON has too much beside its file.")


def _file_texts(body: mmap.mmap) -> Iterator[tuple[int, int]]:
    """Yield where JSON strings called ``base64`` begin and end, quotation marks included.

    A quotation mark ends a string even if it is escaped: base64 has none.
    """
    position, room = 0, AROUND_FILE
    while match := _FILE_NAME.search(body, position, position + room):
        start = match.end() - 1
        end = next(occurrences(body, b'"', start + 1), None)
        if end is None:
            return
        room -= start - position
        position = end + 1
        yield start, position


def _decoded_members(text: bytes) -> dict[str, msgspec.Raw]:
    try:
        return _members(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise InvalidApplicationId from None


def _decoded(view: memoryview) -> Iterator[bytes]:
    """The bytes that a JSON string in base64 stands for, in pieces."""
    if len(view) < 2 or view[0] != 0x22:
        raise InvalidJSON("base64: expected a string")
    carried, ended = b"", False
    for start in range(1, len(view) - 1, CHUNK):
        carried += bytes(view[start : min(start + CHUNK, len(view) - 1)])
        # An escape may be cut in two: what may be the beginning of one waits.
        cut = carried.rfind(b"\\", -5)
        carried, waiting = (carried, b"") if cut < 0 else (carried[:cut], carried[cut:])
        plain = _unescaped(carried)
        if ended and plain:
            raise _not_base64()
        length = len(plain) // 4 * 4
        ended = ended or b"=" in plain[:length]
        yield _bytes(plain[:length])
        carried = plain[length:] + waiting
    carried = _unescaped(carried)
    if ended and carried:
        raise _not_base64()
    yield _bytes(carried + b"=" * (-len(carried) % 4))


def _unescaped(text: bytes) -> bytes:
    if b"\\" in text:
        try:
            text = msgspec.json.decode(b'"%b"' % text, type=str).encode()
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise _not_base64() from None
    return _BLANKS.sub(b"", text)


def _bytes(text: bytes) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise _not_base64() from None


def _not_base64() -> FileSaveFailed:
    return FileSaveFailed("Invalid file upload. base64: expected base64.")
