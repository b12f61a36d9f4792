"""The API as an OpenAPI 3.1 document (``{mount}/openapi.json``), made for its caller.

Views describe themselves (``describes``), and ``backend.rest_urls`` gives their routes to
``describe_routes``. A *source* generates what depends on the caller: the routes of classes and of
functions. Nothing here knows either.
"""

from __future__ import annotations

from backend.openapi.descriptions import Route, describes
from backend.openapi.document import Document, document_for
from backend.openapi.operations import (
    JSON_TEXT,
    LOCATION,
    Body,
    Operation,
    Response,
    answer,
    optional,
    parameter,
    query,
)
from backend.openapi.schemas import AnyOf, DateTime, EmptyObject, Uri, ref, schema_of
from backend.openapi.sources import Names, Offer, Part, Paths, Source, describe_routes

__all__ = [
    "JSON_TEXT",
    "LOCATION",
    "AnyOf",
    "Body",
    "DateTime",
    "Document",
    "EmptyObject",
    "Names",
    "Offer",
    "Operation",
    "Part",
    "Paths",
    "Response",
    "Route",
    "Source",
    "Uri",
    "answer",
    "describe_routes",
    "describes",
    "document_for",
    "optional",
    "parameter",
    "query",
    "ref",
    "schema_of",
]
