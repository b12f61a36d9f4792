"""What a page was sent: a form, or JSON by a script of the deployment's own page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from django.http import HttpRequest

from backend.http.bodies import parsers
from backend.kernel.errors import CommandUnavailable, InvalidJSON

_MOST_BYTES = 64 * 1024
_MOST_FIELDS = 20


@dataclass(frozen=True)
class Sent:
    """The fields of a request. ``wants_json`` says in which form the answer is expected."""

    fields: dict[str, Any]
    wants_json: bool

    def text(self, name: str) -> str:
        """A field's text; empty if it isn't there or isn't text."""
        value = self.fields.get(name)
        return value if isinstance(value, str) else ""


def wants_json(request: HttpRequest) -> bool:
    """Whether a script asks, rather than a browser on behalf of a person."""
    meta = request.META
    if meta.get("HTTP_X_REQUESTED_WITH", "").lower() == "xmlhttprequest":
        return True
    accepted = meta.get("HTTP_ACCEPT", "")
    asks_for_json = "application/json" in accepted and "text/html" not in accepted
    return asks_for_json or parsers.media_type(request.META) == "application/json"


def read(request: HttpRequest) -> Sent:
    """The fields of a request. Raises ``ObjectTooLarge``, ``InvalidJSON``, or
    ``CommandUnavailable`` for another media type."""
    as_json = wants_json(request)
    if request.method != "POST":
        return Sent(dict(parsers.read_query(request)), as_json)
    raw = parsers.read_bytes(request, _MOST_BYTES)
    media_type = parsers.media_type(request.META)
    if media_type == "application/json":
        return Sent(parsers.decode_object(raw) if raw else {}, as_json)
    if media_type not in ("", "application/x-www-form-urlencoded"):
        raise CommandUnavailable("A form or JSON was expected.", status=415)
    return Sent(_form(raw), as_json)


def _form(raw: bytes) -> dict[str, Any]:
    try:
        return dict(
            parse_qsl(
                raw.decode(), keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS
            )
        )
    except ValueError:
        raise InvalidJSON("The form isn't UTF-8, or has too many fields.") from None
