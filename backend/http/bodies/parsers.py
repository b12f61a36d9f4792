"""Strict JSON in: the body and the query string of a request as plain values."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

import msgspec
from django.http import HttpRequest, UnreadablePostError

from backend.http.bodies import limits
from backend.kernel.errors import CommandUnavailable, InvalidJSON
from backend.kernel.process.garbage import no_collection
from backend.server.refusals import too_large

JsonObject = dict[str, Any]

# Parse's SDKs send text/plain from browsers, to save the preflight request, and `curl -d` sends
# the media type of a form by default. Their bodies are JSON objects all the same.
_FORM = "application/x-www-form-urlencoded"
_MEDIA_TYPES = frozenset({"", "application/json", "text/plain", _FORM})
_MAX_PARAMETERS = 100
_LISTS = frozenset({"keys", "excludeKeys", "include", "order"})
_MAX_FORM_SIZE = 100 * 1024  # bytes, as with Parse Server
_BODY = "request body"  # as errors call it
_LONGEST_LENGTH = 18  # digits of a Content-Length
_LARGE = 64 * 1024
_END = 50  # characters
_HALF = re.compile(r"(?<!\\)(?:\\\\)*\\u[dD][89abAB][0-9a-fA-F]{2}.{0,5}\Z", re.DOTALL)

_decode = msgspec.json.Decoder().decode


def read_body(request: HttpRequest) -> JsonObject:
    """The JSON object in the body, ``{}`` for an empty body. The fields of a form are strings.

    A form is an object whose values are texts, unless it is JSON under the media type of a form.

    Raises ``ObjectTooLarge``, ``CommandUnavailable`` (415) for another media type or a content
    coding, ``InvalidJSON`` for anything that isn't a JSON object in UTF-8. Nothing is decoded
    before the size is known to be allowed to the caller.
    """
    meta = request.META
    if not has_body(meta):
        return {}
    kind = media_type(meta)
    raw = read_bytes(request, limits.json_limit(meta))
    if not raw:
        return {}
    if kind not in _MEDIA_TYPES and not kind.endswith("+json"):
        raise CommandUnavailable(
            "The request body must be JSON (Content-Type: application/json).", status=415
        )
    check_coding(meta)
    limits.check_may_decode(meta, raw)
    if kind == _FORM and not raw.lstrip().startswith((b"{", b"[", b'"')) and b"=" in raw:
        return _form_fields(raw)
    return decode_object(raw)


def _form_fields(raw: bytes) -> JsonObject:
    """The fields of a form; of a repeated one all values. Raises ``InvalidJSON``."""
    if len(raw) > _MAX_FORM_SIZE:
        raise too_large(_MAX_FORM_SIZE)
    try:
        pairs = parse_qsl(
            raw.decode(),
            keep_blank_values=True,
            strict_parsing=True,
            errors="strict",
            max_num_fields=_MAX_PARAMETERS,
        )
    except ValueError:
        raise InvalidJSON(f"The {_BODY} is neither a JSON object nor a form.") from None
    fields: JsonObject = {}
    for name, value in pairs:
        if name not in fields:
            fields[name] = value
        elif isinstance(fields[name], list):
            fields[name].append(value)
        else:
            fields[name] = [fields[name], value]
    return fields


def has_body(meta: Mapping[str, Any]) -> bool:
    """Whether a body was announced, by its length or as chunks."""
    length = meta.get("CONTENT_LENGTH")
    if length:
        return bool(length != "0")
    return meta.get("HTTP_TRANSFER_ENCODING") is not None


def check_coding(meta: Mapping[str, Any]) -> None:
    """Raise ``CommandUnavailable`` (415) for a compressed body."""
    coding = meta.get("HTTP_CONTENT_ENCODING")
    if coding is not None and coding.strip().lower() not in ("", "identity"):
        raise CommandUnavailable(
            "The request body must not be compressed (Content-Encoding).", status=415
        )


def read_bytes(request: HttpRequest, limit: int) -> bytes:
    """The whole body, with an announced length or without.

    Raises ``ObjectTooLarge`` for more than ``limit`` bytes, ``InvalidJSON`` if the client breaks
    off or announces nonsense.
    """
    meta = request.META
    if not has_body(meta):
        return b""
    try:
        length = announced_length(meta)
    except ValueError:
        raise InvalidJSON("Content-Length: expected a number") from None
    if length is not None and length > limit:
        raise too_large(limit)
    try:
        if length is not None:
            raw = bytes(request.read(length))
        else:
            # Django gives requests without a length an empty body; the server's knows its end.
            raw = bytes(meta["wsgi.input"].read(limit + 1))
    except (UnreadablePostError, OSError):
        raise InvalidJSON(f"The {_BODY} ended early.") from None
    if len(raw) > limit:
        raise too_large(limit)
    if length is not None and len(raw) < length:
        raise InvalidJSON(f"The {_BODY} ended early.")
    return raw


def announced_length(meta: Mapping[str, Any]) -> int | None:
    """The length of the body by its Content-Length, None without one.

    Raises ``ValueError`` for anything but digits. A number too long to be a length counts as the
    largest one.
    """
    text = str(meta.get("CONTENT_LENGTH") or "")
    if not text:
        return None
    if not (text.isascii() and text.isdecimal()):
        raise ValueError
    # Python refuses to convert thousands of digits.
    return int(text) if len(text) <= _LONGEST_LENGTH else sys.maxsize


def media_type(meta: Mapping[str, Any]) -> str:
    """Return the media type of a request's body, in lower case, without parameters."""
    header: str = meta.get("CONTENT_TYPE") or ""
    return header if header == "application/json" else header.partition(";")[0].strip().lower()


def decode_object(raw: bytes | str) -> JsonObject:
    """A JSON object from text; raises ``InvalidJSON``."""
    value = decode_json(raw, _BODY)
    if type(value) is not dict:
        raise InvalidJSON("The request body must be a JSON object.")
    return value


def decode_json(raw: bytes | str, place: str) -> Any:
    """Decode any JSON value, with integers of any size; raises ``InvalidJSON``."""
    try:
        if len(raw) < _LARGE:
            return _decode(raw)
        with no_collection():
            return _decode(raw)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise InvalidJSON(f"{place}: not valid JSON: {_reason(error, raw)}") from None
    except RecursionError:
        raise InvalidJSON(f"{place}: nested too deeply") from None


def _reason(error: Exception, raw: bytes | str) -> str:
    if isinstance(error, UnicodeError):
        return "not UTF-8"
    text = str(error).removeprefix("JSON is malformed: ")
    # The decoder takes a text that ends soon after the first half for a truncated one.
    end = raw[-_END:] if isinstance(raw, str) else raw[-_END:].decode("latin-1")
    if "surrogate" in text or ("truncated" in text and _HALF.search(end)):
        place = text[text.rfind(" (byte ") :] if text.endswith(")") else ""
        return f"half of a surrogate pair, \\ud800 to \\udfff, without the other half{place}"
    return text


def read_query(request: HttpRequest) -> dict[str, str]:
    """The parameters of the query string, as text.

    Of a repeated one the last; those that are lists of names are joined, as clients send arrays.
    """
    text = request.META.get("QUERY_STRING", "")
    return query_parameters(text) if text else {}


def decoded_parameters(params: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters as JSON values: text that is JSON is decoded, other text stays what it is."""
    return {name: _decoded(value) for name, value in params.items()}


def _decoded(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return _decode(value)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return value


def _numbered(pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the parameters with names such as ``keys[]`` numbered: ``keys[0]``, ``keys[1]``."""
    counts: dict[str, int] = {}
    numbered = []
    for name, value in pairs:
        if name.endswith("[]"):
            number = counts.setdefault(name, 0)
            counts[name] += 1
            name = f"{name[:-1]}{number}]"
        numbered.append((name, value))
    return numbered


def query_parameters(text: str) -> dict[str, str]:
    """As ``read_query``, from the text after the question mark."""
    try:
        pairs = parse_qsl(
            text,
            keep_blank_values=True,
            encoding="utf-8",
            errors="strict",
            max_num_fields=_MAX_PARAMETERS,
        )
    except UnicodeDecodeError:
        raise InvalidJSON("The query string is not UTF-8.") from None
    except ValueError:
        raise InvalidJSON("The query string has too many parameters.") from None
    if "[]" in text or "%5B%5D" in text or "%5b%5d" in text:
        pairs = _numbered(pairs)
    params = dict(pairs)
    if len(params) < len(pairs):
        for name in _LISTS & params.keys():
            params[name] = ",".join(value for key, value in pairs if key == name)
    return params
