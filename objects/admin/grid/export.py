"""Streaming export of all objects that a table shows."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, Final

import msgspec
from django.http import HttpResponseBase, StreamingHttpResponse

from backend.kernel.errors import InvalidQuery
from backend.kernel.json_types import Json
from objects import service
from objects.admin.browser import pagination
from objects.admin.grid.layouts import column_names
from objects.admin.grid.questions import read_question
from objects.admin.staff_access import Place, class_page
from objects.core.names import FieldName
from objects.core.query.tree import FindOptions, OrderKey, Query, near_of

_PAGE: Final = 500
# What a spreadsheet would take for a formula, or for what begins one.
_FORMULAS: Final = ("=", "+", "-", "@", "\t", "\r")

Page = list[dict[str, Json]]


@class_page("export.<str:kind>", "export")
def export(place: Place, kind: str) -> HttpResponseBase:
    """NDJSON (which ``import_objects`` reads back) or CSV, in the table's order.

    Everything is read with the rights that the table is read with. If something goes wrong on the
    way the transfer breaks off, so that half a file isn't taken for a whole one.
    """
    if kind not in ("ndjson", "csv"):
        raise InvalidQuery("There is no such format.", status=404)
    pages = _pages(place)
    # The first page is read now: what is wrong with the question has to be said before the answer.
    first = next(pages, [])
    every = chain([first], pages)
    if kind == "csv":
        names = [name for name in column_names(place.table.schema) if not _is_relation(place, name)]
        body, content_type = _csv(every, names), "text/csv; charset=utf-8"
    else:
        body, content_type = _ndjson(every), "application/x-ndjson"
    response = StreamingHttpResponse(body, content_type=content_type)
    response["Content-Disposition"] = f'attachment; filename="{place.class_name}.{kind}"'
    response["X-Accel-Buffering"] = "no"
    return response


def _is_relation(place: Place, name: FieldName) -> bool:
    field = place.table.schema.field_type(name)
    return field is not None and field.kind == "Relation"


def _pages(place: Place) -> Iterator[Page]:
    question = read_question(place.request)
    order = "" if near_of(question.tree) is not None else question.order
    sorting = pagination.read_sorting(order, place.table.schema)

    def find(where: Query, keys: tuple[OrderKey, ...], limit: int) -> Page:
        options = FindOptions(where=where, limit=limit, order=keys)
        return service.find(place.reader, place.class_name, options).objects()

    after: pagination.Edge | None = None
    while True:
        read = pagination.read_page(find, question.tree, sorting, _PAGE, after=after)
        yield read.rows
        if read.after is None:
            return
        after = read.after


def _ndjson(pages: Iterator[Page]) -> Iterator[bytes]:
    for page in pages:
        yield b"".join(msgspec.json.encode(obj) + b"\n" for obj in page)


class _Line:
    """A file for ``csv.writer`` that returns the written text."""

    def write(self, text: str) -> str:
        return text


def _csv(pages: Iterator[Page], names: Sequence[str]) -> Iterator[bytes]:
    rows: Any = csv.writer(_Line(), lineterminator="\r\n")
    yield rows.writerow(names).encode()
    for page in pages:
        lines = (rows.writerow([csv_cell(obj.get(name)) for name in names]) for obj in page)
        yield "".join(lines).encode()


def csv_cell(value: Json) -> str:
    """Text as it is, a Date by its time, a Pointer by its id, all else as JSON.

    Text that a spreadsheet would run as a formula gets an apostrophe in front of it. A number may
    begin with a minus: it is no text.
    """
    if value is None:
        return ""
    if isinstance(value, dict) and value.get("__type") == "Date":
        value = str(value.get("iso"))
    elif isinstance(value, dict) and value.get("__type") == "Pointer":
        value = str(value.get("objectId"))
    if isinstance(value, str):
        return f"'{value}" if value.startswith(_FORMULAS) else value
    return msgspec.json.encode(value).decode()
