"""An object as it comes from the store: JSON text until somebody has to look inside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from backend.garbage import no_collection
from backend.result_memory import ResultMemory
from objects.core.access import Acl
from objects.core.names import ObjectId
from objects.core.values import Json
from objects.files.urls import with_current_addresses
from objects.rows import wire_timestamp
from objects.tables import ClassTable

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
_LARGE: Final = 64 * 1024
"""Characters of objects that are decoded without searches for garbage."""

# object_id, created_at, updated_at, read_acl and write_acl (JSON arrays), data (a JSON object)
StoredRow = tuple[str, str, str, "str | None", "str | None", str]


class Record:
    """One stored object, whole.

    ``json()`` gives its wire form as text without decoding what the database sent; ``object()``
    decodes it. Timestamps are wire text already.
    """

    __slots__ = (
        "_data",
        "_table",
        "created_at",
        "object_id",
        "read_acl",
        "updated_at",
        "write_acl",
    )

    def __init__(self, table: ClassTable, row: StoredRow) -> None:
        self._table = table
        (
            object_id,
            created_at,
            updated_at,
            self.read_acl,
            self.write_acl,
            self._data,
        ) = row
        self.object_id = ObjectId(object_id)
        self.created_at = wire_timestamp(created_at)
        self.updated_at = wire_timestamp(updated_at)
        if table.may_hold_files and '"__type": "File"}' in self._data:
            self._data = with_current_addresses(self._data)

    @property
    def acl(self) -> Acl:
        """Who may read and write this object."""
        return Acl(
            None if self.read_acl is None else tuple(_decode(self.read_acl)),
            None if self.write_acl is None else tuple(_decode(self.write_acl)),
        )

    def json(self) -> str:
        """The wire form as JSON text."""
        acl = ""
        if self.read_acl is not None or self.write_acl is not None:
            acl = f'"ACL":{_encode(self.acl.to_wire()).decode()},'
        # An object id has no character that JSON would escape.
        head = (
            f'{{"objectId":"{self.object_id}","createdAt":"{self.created_at}",'
            f'{acl}{self._table.relations_json}"updatedAt":"{self.updated_at}"'
        )
        return f"{head}}}" if self._data == "{}" else f"{head},{self._data[1:]}"

    @property
    def size(self) -> int:
        """The characters of its fields and its ACL as JSON text."""
        return len(self._data) + len(self.read_acl or "") + len(self.write_acl or "")

    def count(self, memory: ResultMemory) -> None:
        """Count its text. Raises what ``ResultMemory.add`` raises."""
        memory.add_texts([self._data, self.read_acl or "", self.write_acl or ""])

    def count_objects(self, memory: ResultMemory) -> None:
        """Count what ``object`` is about to make. Raises what ``ResultMemory.add`` raises."""
        memory.add_objects(self._data)

    def object(self) -> dict[str, Json]:
        """The wire form, decoded; the caller may change it."""
        obj: dict[str, Json] = {
            "objectId": self.object_id,
            "createdAt": self.created_at,
            "updatedAt": self.updated_at,
        }
        if self.read_acl is not None or self.write_acl is not None:
            obj["ACL"] = self.acl.to_wire()
        obj.update(self._table.relation_values)
        fields: dict[str, Any] = _decode(self._data)
        obj.update(fields)
        return obj


def decoded(records: Sequence[Record], memory: ResultMemory) -> list[dict[str, Json]]:
    """The wire forms of records, counted before they are made."""
    for record in records:
        record.count_objects(memory)
    if sum(record.size for record in records) < _LARGE:
        return [record.object() for record in records]
    with no_collection():
        return [record.object() for record in records]


def wire_object(found: Record | dict[str, Json]) -> dict[str, Json]:
    """What the door gives for one object, decoded whatever it is."""
    return found.object() if isinstance(found, Record) else found
