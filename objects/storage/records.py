"""An object as it is read from the store: JSON text that is decoded on first access."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from backend.kernel.json_types import Json
from backend.kernel.memory_pool import ResultMemory
from backend.kernel.process.garbage import no_collection
from backend.kernel.texts.cache import short_cache
from backend.kernel.texts.numbers import ZEROS, with_exponents
from objects.core.access.acl import Acl
from objects.core.names import ObjectId
from objects.file_urls import with_current_addresses
from objects.sql.rows import wire_timestamp
from objects.sql.tables import ClassTable

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
_LARGE: Final = 64 * 1024
"""Characters of objects that are decoded without searches for garbage."""
_LONGEST_ACL: Final = 512
_FILE: Final = '"__type": "File"}'

# object_id, created_at, updated_at, read_acl and write_acl (JSON arrays), data (a JSON object)
StoredRow = tuple[str, str, str, "str | None", "str | None", str]


class Record:
    """One stored object, whole.

    ``json()`` gives its wire form as text without decoding what the database sent; ``object()``
    decodes it.
    """

    __slots__ = ("_row", "_table")

    def __init__(self, table: ClassTable, row: StoredRow) -> None:
        # Most rows are only sent as text, so nothing is decoded before it is needed.
        self._table = table
        self._row = row

    @property
    def object_id(self) -> ObjectId:
        return ObjectId(self._row[0])

    @property
    def updated_at(self) -> str:
        return wire_timestamp(self._row[2])

    @property
    def read_acl(self) -> str | None:
        return self._row[3]

    @property
    def write_acl(self) -> str | None:
        return self._row[4]

    @property
    def acl(self) -> Acl:
        """Who may read and write this object."""
        return Acl(
            None if self.read_acl is None else tuple(_decode(self.read_acl)),
            None if self.write_acl is None else tuple(_decode(self.write_acl)),
        )

    def json(self) -> str:
        """Return the wire form as JSON text."""
        object_id, created, updated, read_acl, write_acl, data = self._row
        table = self._table
        if table.may_hold_files and _FILE in data:
            data = with_current_addresses(data)
        if ZEROS in data:
            data = with_exponents(data)
        acl = ""
        if read_acl is not None or write_acl is not None:
            acl = _acl_member(f"[{read_acl or 'null'},{write_acl or 'null'}]")
        created_at = wire_timestamp(created)
        updated_at = created_at if updated == created else wire_timestamp(updated)
        # An object id has no character that JSON would escape.
        head = (
            f'{{"objectId":"{object_id}","createdAt":"{created_at}",'
            f'{acl}{table.relations_json}"updatedAt":"{updated_at}"'
        )
        return f"{head}}}" if data == "{}" else f"{head},{data[1:]}"

    @property
    def size(self) -> int:
        """The characters of its fields and its ACL as JSON text."""
        _, _, _, read_acl, write_acl, data = self._row
        return len(data) + len(read_acl or "") + len(write_acl or "")

    def count(self, memory: ResultMemory) -> None:
        """Count its text. Raises what ``ResultMemory.add`` raises."""
        memory.add_texts([text for text in self._row[3:] if text])

    @property
    def fields_json(self) -> str:
        """Its fields as JSON text, as they are stored."""
        return self._row[5]

    def object(self) -> dict[str, Json]:
        """Return the wire form, decoded; the caller may change it."""
        obj: dict[str, Json] = _decode(self.json())
        return obj


@short_cache(maxsize=1024, longest=_LONGEST_ACL)
def _acl_member(lists: str) -> str:
    """Return the ACL as a member of a JSON object, followed by a comma.

    The argument is a JSON array of readers and writers. Many objects have the same ACL.
    """
    read, write = _decode(lists)
    acl = Acl(None if read is None else tuple(read), None if write is None else tuple(write))
    return f'"ACL":{_encode(acl.to_wire()).decode()},'


def decoded(records: Sequence[Record], memory: ResultMemory) -> list[dict[str, Json]]:
    """Return the wire forms of records, counted before they are made."""
    memory.add_objects(record.fields_json for record in records)
    if sum(record.size for record in records) < _LARGE:
        return [record.object() for record in records]
    with no_collection():
        return [record.object() for record in records]


def wire_object(record: Record | dict[str, Json]) -> dict[str, Json]:
    """Return an object of the object service in decoded form."""
    return record.object() if isinstance(record, Record) else record
