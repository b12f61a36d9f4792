"""Objects as lines of a file, which ``row_files`` and ``row_objects`` read back."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from typing import IO

import msgspec

from backend.kernel.json_types import Json
from objects.exchange.row_files import Format


def write_objects(
    file: IO[str], file_format: Format, pages: Iterable[Sequence[dict[str, Json]]], names: list[str]
) -> int:
    """Write all pages; ``names`` are the columns of a CSV file. Returns how many objects."""
    if file_format == "csv":
        return _csv(file, pages, names)
    return _json(file, pages, as_array=file_format == "json")


def _json(file: IO[str], pages: Iterable[Sequence[dict[str, Json]]], *, as_array: bool) -> int:
    written = 0
    if as_array:
        file.write("[")
    for page in pages:
        for obj in page:
            if as_array:
                file.write(",\n" if written else "\n")
            file.write(msgspec.json.encode(obj).decode())
            if not as_array:
                file.write("\n")
            written += 1
    if as_array:
        file.write("\n]\n")
    return written


def _csv(file: IO[str], pages: Iterable[Sequence[dict[str, Json]]], names: list[str]) -> int:
    written = 0
    rows = csv.writer(file, lineterminator="\n")
    rows.writerow(names)
    for page in pages:
        rows.writerows([_cell(obj.get(name)) for name in names] for obj in page)
        written += len(page)
    return written


def _cell(value: Json) -> str:
    """Text as it is, a Date by its time, a Pointer by its id, all else as JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        if value.get("__type") == "Date":
            return str(value["iso"])
        if value.get("__type") == "Pointer":
            return str(value["objectId"])
    return msgspec.json.encode(value).decode()
