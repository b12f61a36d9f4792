"""Strict JSON in: the body and the query string of a request as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

import msgspec
from django.http import HttpRequest, UnreadablePostError

from backend.conf import service_settings
from backend.errors import CommandUnavailable, InvalidJSON, ObjectTooLarge

JsonObject = dict[str, Any]

# Parse's SDKs send text/plain from browsers, to save the preflight request, and `curl -d` says
# that it sends a form unless told otherwise. What counts is that the body is a JSON object.
_MEDIA_TYPES = frozenset(
    {"", "application/json", "text/plain", "application/x-www-form-urlencoded"}
)
_MAX_PARAMETERS = 100
_BODY = "request body"  # as errors call it

_decode = msgspec.json.Decoder().decode


def read_body(request: HttpRequest) -> JsonObject:
    """The JSON object in the body, ``{}`` for an empty body.

    Raises ``ObjectTooLarge`` before reading, ``CommandUnavailable`` (415) for another media type,
    ``InvalidJSON`` for anything that isn't a JSON object in UTF-8.
    """
    length = body_length(request, service_settings.MAX_BODY_SIZE, _BODY)
    if not length:
        return {}
    kind = media_type(request.META)
    if kind not in _MEDIA_TYPES and not kind.endswith("+json"):
        raise CommandUnavailable(
            "The request body must be JSON (Content-Type: application/json).", status=415
        )
    return decode_object(read_bytes(request, length, _BODY))


def body_length(request: HttpRequest, most: int, what: str) -> int:
    """The announced length of the body, 0 without one.

    Raises ``ObjectTooLarge`` for more than ``most`` bytes, and ``InvalidJSON``.
    """
    try:
        length = int(request.META.get("CONTENT_LENGTH") or 0)
    except ValueError:
        raise InvalidJSON("Content-Length: expected a number") from None
    if length > most:
        raise ObjectTooLarge(f"The {what} is larger than {most} bytes.")
    return max(length, 0)


def read_bytes(request: HttpRequest, length: int, what: str) -> bytes:
    """So many bytes of the body; ``InvalidJSON`` if the client breaks off."""
    try:
        return bytes(request.read(length))
    except (UnreadablePostError, OSError):
        raise InvalidJSON(f"The {what} ended early.") from None


def media_type(meta: Mapping[str, Any]) -> str:
    """The media type that a request says its body has, without parameters, in small letters."""
    given: str = meta.get("CONTENT_TYPE") or ""
    return given if given == "application/json" else given.partition(";")[0].strip().lower()


def decode_object(raw: bytes | str) -> JsonObject:
    """A JSON object from text; raises ``InvalidJSON``."""
    value = decode_json(raw, _BODY)
    if type(value) is not dict:
        raise InvalidJSON("The request body must be a JSON object.")
    return value


def decode_json(raw: bytes | str, place: str) -> Any:
    """Any JSON value from text, integers of any size kept; raises ``InvalidJSON``."""
    try:
        return _decode(raw)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise InvalidJSON(f"{place}: not valid JSON: {_reason(error)}") from None
    except RecursionError:
        raise InvalidJSON(f"{place}: nested too deeply") from None


def _reason(error: Exception) -> str:
    if isinstance(error, UnicodeError):
        return "not UTF-8"
    return str(error).removeprefix("JSON is malformed: ")


def read_query(request: HttpRequest) -> dict[str, str]:
    """The parameters of the query string, as text; of a repeated one the last."""
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
    return dict(pairs)
