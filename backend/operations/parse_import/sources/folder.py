"""A folder of exported files, one for each class or collection (``Note.json``, ``_User.json``).

A file holds one JSON object a line (``mongoexport``, ``psql`` with ``row_to_json``), a JSON array,
or ``{"results": […]}`` (Parse's own export). What wrote an object shows in its keys: MongoDB's have
``_id``, PostgreSQL's ``_rperm``, the API's neither.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Final

from backend.kernel.json_types import Json
from backend.operations.parse_import.formats import mongo_documents, rest_objects, table_rows
from backend.operations.parse_import.formats.definitions import (
    OF_EVERY_CLASS,
    UNDECLARED,
    ClassDefinition,
    FieldDefinition,
    of_api,
    of_document,
    of_table_row,
)
from backend.operations.parse_import.formats.stored_objects import (
    UnreadableValue,
    member_of,
)
from backend.operations.parse_import.sources import copy_text, json_values
from backend.operations.parse_import.sources.base import (
    AppSettings,
    Batch,
    Members,
    Sized,
    SourceFailed,
    Unreadable,
    batches,
    definition_of,
    read_batch,
)
from objects.core import values
from objects.rules import TransferredObject

_SCHEMA: Final = "_SCHEMA"
_WITHOUT_OBJECTS: Final = frozenset({_SCHEMA, "_GlobalConfig", "_Hooks"})
_IDS: Final = frozenset({"_id", "objectId", "className"})


class Folder:
    """The exported files in ``path``. Positions are numbers of objects."""

    has_password_hashes = True

    def __init__(self, path: Path) -> None:
        self.name = str(path.resolve())
        self._files = {
            file.name.removesuffix(".json"): file
            for file in sorted(path.iterdir())
            if file.suffix == ".json"
        }
        if not self._files:
            raise SourceFailed(f"{path}: no files NAME.json")
        for file in self._files.values():
            copy_text.check(file)

    # -- Source -----------------------------------------------------------------------------------

    def classes(self) -> list[ClassDefinition]:
        undeclared = [
            UNDECLARED.get(name) or self._inferred(name)
            for name in self._undeclared()
            if self._is_class(name)
        ]
        return [*self._declared.values(), *undeclared]

    def foreign(self) -> list[str]:
        """Return the names of collections that aren't classes: GridFS's, or another program's."""
        return [name for name in self._undeclared() if not self._is_class(name)]

    def count(self, definition: ClassDefinition) -> int:
        return sum(1 for _ in self._rows(definition.name))

    def objects(self, definition: ClassDefinition, position: str) -> Iterator[Batch]:
        number = int(position or 0)
        for chunk in batches(islice(self._sized_rows(definition.name), number, None)):
            named = [
                (f"{definition.name}.json, object {place}", row)
                for place, row in enumerate(chunk, number + 1)
            ]
            number += len(chunk)
            yield read_batch(str(number), named, lambda row: _object(row, definition))

    def members(self, definition: ClassDefinition, key: str, position: str) -> Iterator[Members]:
        number = int(position or 0)
        rows = islice(self._sized_rows(f"_Join:{key}:{definition.name}"), number, None)
        for chunk in batches(rows):
            number += len(chunk)
            yield Members(str(number), [member_of(row) for row in chunk])

    def settings(self) -> AppSettings:
        config: dict[str, Any] = {}
        unreadable: list[Unreadable] = []
        for row in self._rows("_GlobalConfig"):
            config = {
                "params": _readable(row.get("params"), unreadable),
                "masterKeyOnly": row.get("masterKeyOnly") or {},
            }
        names = ("functionName", "className", "triggerName", "url")
        hooks = [
            {name: row[name] for name in names if row.get(name) is not None}
            for row in self._rows("_Hooks")
        ]
        return AppSettings(config, hooks, unreadable)

    def close(self) -> None:
        """Files are open only while they are read."""

    # -- Files ------------------------------------------------------------------------------------

    @cached_property
    def _declared(self) -> dict[str, ClassDefinition]:
        """The classes in ``_SCHEMA``, by name."""
        definitions = [
            definition_of(_definition, row, f"{_SCHEMA}.json, class {number}")
            for number, row in enumerate(self._rows(_SCHEMA), 1)
        ]
        return {definition.name: definition for definition in definitions}

    def _undeclared(self) -> list[str]:
        """Return the names of the files of objects that ``_SCHEMA`` doesn't have."""
        return [
            name
            for name in self._files
            if name not in self._declared and name not in _WITHOUT_OBJECTS and ":" not in name
        ]

    def _is_class(self, name: str) -> bool:
        """Return whether an undeclared file holds objects of a class.

        ``_SCHEMA`` has all classes but some of Parse itself, so other collections of MongoDB and
        tables of PostGIS that it doesn't have aren't classes. Raises ``SourceFailed`` if it wasn't
        exported.
        """
        row = next(self._rows(name), None)
        if _SCHEMA in self._files:
            return name.startswith("_") or (row is not None and "objectId" in row)
        if row is not None and "_id" in row:
            raise SourceFailed(f"{name}.json: export the collection _SCHEMA as well")
        return True

    def _inferred(self, name: str) -> ClassDefinition:
        """Return a class with the fields that its objects have; those of Parse itself need none."""
        fields: dict[str, FieldDefinition] = {}
        for row in self._rows(name):
            if "_id" in row:
                break
            for key, value in row.items():
                kind = values.kind(value)
                if kind is not None and key not in OF_EVERY_CLASS and not key.startswith("_"):
                    target = value.get("className") if kind in ("Pointer", "Relation") else None
                    fields.setdefault(key, FieldDefinition(kind, target))
        return ClassDefinition(name, fields)

    def _rows(self, name: str) -> Iterator[dict[str, Any]]:
        return (row.value for row in self._sized_rows(name))

    def _sized_rows(self, name: str) -> Iterator[Sized]:
        path = self._files.get(name)
        if path is None:
            return
        try:
            with path.open("rb") as file:
                for row in json_values.rows(file, str(path)):
                    yield from _listed(row)
        except OSError as error:
            raise SourceFailed(f"{path}: {error.strerror}") from error


def _readable(params: Any, unreadable: list[Unreadable]) -> dict[str, Json]:
    """Return the parameters of the config that can be read, and add the others to a list."""
    readable: dict[str, Json] = {}
    for name, value in params.items() if isinstance(params, dict) else ():
        try:
            readable[name] = mongo_documents.plain(value)
        except UnreadableValue as error:
            unreadable.append(Unreadable(f"config {name}", str(error)))
    return readable


def _listed(row: Sized) -> Iterator[Sized]:
    """Return the objects of an API's response, or the row itself."""
    size, value = row
    if not isinstance(value, dict):
        return
    # An object may have a field of this name.
    if isinstance(value.get("results"), list) and not value.keys() & _IDS:
        items = [item for item in value["results"] if isinstance(item, dict)]
        yield from json_values.parts_of(size, items)
    else:
        yield row


def _definition(row: Mapping[str, Any]) -> ClassDefinition:
    if "_id" in row:
        return of_document(row)
    return of_table_row(row) if "schema" in row else of_api(row)


def _object(row: Mapping[str, Any], definition: ClassDefinition) -> TransferredObject:
    if "_id" in row:
        return mongo_documents.read(row, definition)
    if "_rperm" in row:
        return table_rows.read(row, definition)
    return rest_objects.read(row)
