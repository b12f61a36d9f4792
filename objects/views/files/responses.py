"""A file as an HTTP answer: conditions and ranges. ``files.delivery`` decides its headers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.http import HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.utils.http import http_date, parse_etags, parse_http_date_safe

from objects.files import service
from objects.files.delivery import content_headers
from objects.files.records import FileRecord

# Names never come twice, so their content never changes; a day is how long a deleted file may live
# on in caches.
_PUBLIC = "public, max-age=86400, immutable"
_PRIVATE = "private, no-cache"
# What a response without the content doesn't have.
_OF_CONTENT = frozenset({"Last-Modified", "Cache-Control", "Content-Disposition"})
# More digits than Python converts say nothing.
_RANGE = re.compile(r"bytes=([0-9]{0,4000})-([0-9]{0,4000})")


def file_answer(record: FileRecord, method: str, meta: Mapping[str, Any]) -> HttpResponseBase:
    """The answer to a GET or HEAD of a file that the caller may read."""
    headers = _headers(record)
    if _is_unchanged(record, meta):
        return HttpResponse(status=304, headers=headers)
    headers["Accept-Ranges"] = "bytes"
    start, length, status = 0, record.size, 200
    byte_range = _range(record, meta)
    if byte_range is not None:
        start, length = byte_range
        if length <= 0:
            return _unsatisfiable(record, headers)
        status = 206
        headers["Content-Range"] = f"bytes {start}-{start + length - 1}/{record.size}"
    headers["Content-Length"] = str(length)
    if method == "HEAD":
        return HttpResponse(status=status, headers=headers)
    pieces = service.content(record, start, length)
    return StreamingHttpResponse(pieces, status=status, headers=headers)


def _headers(record: FileRecord) -> dict[str, str]:
    return {
        "ETag": _etag(record),
        "Last-Modified": http_date(_whole_seconds(record.created_at)),
        "Cache-Control": _PUBLIC if service.is_public(record) else _PRIVATE,
        **content_headers(record.name, record.content_type),
    }


def _etag(record: FileRecord) -> str:
    return f'"{record.sha256}"'


def _whole_seconds(moment: datetime) -> int:
    return int(moment.timestamp())


def _is_unchanged(record: FileRecord, meta: Mapping[str, Any]) -> bool:
    condition = meta.get("HTTP_IF_NONE_MATCH")
    if condition is not None:
        etags = [etag.removeprefix("W/") for etag in parse_etags(condition)]
        return "*" in etags or _etag(record) in etags
    if "no-cache" in (meta.get("HTTP_CACHE_CONTROL") or "").lower():
        # A client without a cached file may send a time too: the .NET SDK sends the present.
        return False
    since = parse_http_date_safe(meta.get("HTTP_IF_MODIFIED_SINCE") or "")
    return since is not None and _whole_seconds(record.created_at) <= since


def _range(record: FileRecord, meta: Mapping[str, Any]) -> tuple[int, int] | None:
    """The first byte and how many; nothing to send if no such bytes are there; None for all.

    Several ranges at once are answered with the whole, as the standard allows.
    """
    match = _RANGE.fullmatch(meta.get("HTTP_RANGE") or "")
    if match is None or not _is_current(record, meta.get("HTTP_IF_RANGE")):
        return None
    first, last = match.groups()
    if not first:
        if not last:
            return None
        length = min(int(last), record.size)
        return record.size - length, length
    if last and int(last) < int(first):
        return None
    end = min(int(last) + 1, record.size) if last else record.size
    return int(first), end - int(first)


def _is_current(record: FileRecord, condition: str | None) -> bool:
    if condition is None or condition == _etag(record):
        return True
    return parse_http_date_safe(condition) == _whole_seconds(record.created_at)


def _unsatisfiable(record: FileRecord, headers: dict[str, str]) -> HttpResponse:
    headers = {name: value for name, value in headers.items() if name not in _OF_CONTENT}
    return HttpResponse(status=416, headers=headers | {"Content-Range": f"bytes */{record.size}"})
