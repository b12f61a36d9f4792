"""JSON out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec
from django.http import HttpResponse

encode_json = msgspec.json.Encoder(decimal_format="number").encode


@dataclass(slots=True)
class Answer:
    """What a view answers: a body (anything that JSON can say, ``msgspec.Raw`` for JSON that is
    text already), a status and headers."""

    body: Any
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


def json_response(body: Any, status: int = 200) -> HttpResponse:
    """An HTTP response with this body as JSON."""
    content = body if type(body) is bytes else encode_json(body)
    response = HttpResponse(content, status=status, content_type="application/json")
    response.headers["Content-Length"] = str(len(content))
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response


def render(answer: Answer) -> HttpResponse:
    """The HTTP response for a view's answer."""
    response = json_response(answer.body, answer.status)
    for name, value in answer.headers.items():
        response.headers[name] = value
    return response
