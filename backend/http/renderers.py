"""Answers as JSON responses."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from django.http import HttpResponse
from django.http.cookie import SimpleCookie
from django.http.response import ResponseHeaders

from backend.kernel.texts.encoding import json_encoder
from backend.kernel.texts.numbers import ZEROS, with_exponents

encode_json: Final = json_encoder(decimal_format="number")


@dataclass(slots=True)
class Answer:
    """What a view answers: a body (anything that JSON can say, ``msgspec.Raw`` for JSON that is
    text already), a status and headers."""

    body: Any
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


class JsonHeaders(ResponseHeaders):
    """The headers of a JSON response.

    Those that every response has are stored unchecked: constants, numbers, and the request's id,
    which ``context`` has checked. All others are checked as Django does it.
    """

    def __init__(self, length: int) -> None:
        self._store = {
            "content-type": ("Content-Type", "application/json"),
            "content-length": ("Content-Length", str(length)),
            "x-content-type-options": ("X-Content-Type-Options", "nosniff"),
        }

    def set_unchecked(self, name: str, value: str) -> None:
        """Set a header whose value is known to be ASCII without line breaks."""
        self._store[name.lower()] = (name, value)

    def pairs(self) -> list[tuple[str, str]]:
        """Names and values, as WSGI servers take them."""
        return list(self._store.values())


_ZEROS: Final = ZEROS.encode()


class JsonResponse(HttpResponse):
    """Django's response with the same attributes, without the checks and conversions of its
    ``__init__``: they took a tenth of the time of a short request."""

    headers: JsonHeaders

    def __init__(self, content: bytes, status: int) -> None:
        self.headers = JsonHeaders(len(content))
        self.status_code = status
        self.cookies = SimpleCookie()
        self.closed = False
        self._charset = None
        self._container = [content]
        self._handler_class = None
        self._reason_phrase = None
        self._resource_closers: list[Any] = []


def json_response(body: Any, status: int = 200) -> HttpResponse:
    """An HTTP response with this body as JSON."""
    content = body if type(body) is bytes else encode_json(body)
    if _ZEROS in content:
        content = with_exponents(content.decode()).encode()
    return JsonResponse(content, status)


def render(answer: Answer) -> HttpResponse:
    """The HTTP response for a view's answer."""
    response = json_response(answer.body, answer.status)
    for name, value in answer.headers.items():
        response.headers[name] = value
    return response
