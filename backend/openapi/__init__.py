"""``{mount}/openapi.json``: the API as an OpenAPI 3.1 document, made for the caller who asks.

The app that adds routes describes them: a *source* says what it has for a caller, and
``backend.rest_urls`` contributes it beside the routes. ``document_for`` puts the parts of all
sources together. Nothing here knows classes or functions.
"""

from __future__ import annotations

from backend.openapi.document import Document, document_for
from backend.openapi.operations import Operation, answer, body, parameter, ref
from backend.openapi.sources import Names, Offer, Part, contribute

__all__ = [
    "Document",
    "Names",
    "Offer",
    "Operation",
    "Part",
    "answer",
    "body",
    "contribute",
    "document_for",
    "parameter",
    "ref",
]
