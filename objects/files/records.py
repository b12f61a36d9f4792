"""The rows of ``StoredFile``, read and written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

import msgspec

from objects.core.values import Json
from objects.database import Row, fetch

_COLUMNS = (
    "name, size, content_type, sha256, metadata::text, tags::text, owner_id,"
    " array_to_json(read_acl)::text, extract(epoch FROM created_at)::text"
)


@dataclass(frozen=True, slots=True)
class FileRecord:
    """What is known about one file. ``readers`` None means everybody may read it."""

    name: str
    size: int
    content_type: str
    sha256: str
    metadata: Mapping[str, Json] = field(default_factory=dict)
    tags: Mapping[str, Json] = field(default_factory=dict)
    owner_id: str | None = None
    readers: frozenset[str] | None = None
    created_at: datetime = field(default_factory=lambda: datetime.now(UTC))


def add(record: FileRecord) -> None:
    """Write down a new file."""
    fetch(
        "INSERT INTO objects_file (name, size, content_type, sha256, metadata, tags, owner_id,"
        " read_acl, created_at)"
        " VALUES (%s, %s, %s, %s, %s::jsonb, %s::jsonb, %s, %s, %s::timestamptz)",
        (
            record.name,
            record.size,
            record.content_type,
            record.sha256,
            msgspec.json.encode(record.metadata).decode(),
            msgspec.json.encode(record.tags).decode(),
            record.owner_id,
            None if record.readers is None else sorted(record.readers),
            record.created_at.isoformat(),
        ),
        prepare=True,
    )


def find(name: str) -> FileRecord | None:
    """The file of this name, or None."""
    rows = fetch(f"SELECT {_COLUMNS} FROM objects_file WHERE name = %s", (name,), prepare=True)
    return _record(rows[0]) if rows else None


def remove(name: str) -> None:
    """Forget a file."""
    fetch("DELETE FROM objects_file WHERE name = %s", (name,), prepare=True)


def _record(row: Row) -> FileRecord:
    name, size, content_type, sha256, metadata, tags, owner_id, readers, created = row
    return FileRecord(
        name,
        int(size),
        content_type,
        sha256,
        msgspec.json.decode(metadata),
        msgspec.json.decode(tags),
        owner_id,
        None if readers is None else frozenset(msgspec.json.decode(readers)),
        datetime.fromtimestamp(float(created), UTC),
    )
