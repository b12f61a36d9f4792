"""The rows of ``StoredFile``, read and written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

import msgspec

from objects.core.values import Json
from objects.database import Row, fetch

_COLUMNS = (
    "name, size, content_type, sha256, metadata::text, tags::text, owner_id,"
    " array_to_json(read_acl)::text, extract(epoch FROM created_at)::text, charged_to"
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
    charged_to: str | None = None


UNFINISHED: Final = "1 hour"
"""How long the bytes of a file may take to be stored. A row that isn't complete after that is left
over from a process that died."""

_COUNTS: Final = f"(complete OR created_at > statement_timestamp() - interval '{UNFINISHED}')"


def add(record: FileRecord) -> None:
    """Add the row of a new file, whose bytes are to be stored; ``complete`` makes it visible."""
    fetch(
        "INSERT INTO objects_file (name, size, content_type, sha256, metadata, tags, owner_id,"
        " read_acl, created_at, charged_to, complete)"
        " VALUES (%s, %s, %s, %s, %s::jsonb, %s::jsonb, %s, %s, %s::timestamptz, %s, false)",
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
            record.charged_to,
        ),
        prepare=True,
    )


def complete(name: str) -> bool:
    """Record that all bytes of a file are stored; False if its row is gone."""
    return _set_complete(name, True)


def begin_removal(name: str) -> None:
    """Record that the bytes of a file are being removed: it isn't found, and uses no quota."""
    _set_complete(name, False)


def _set_complete(name: str, value: bool) -> bool:
    rows = fetch(
        "UPDATE objects_file SET complete = %s WHERE name = %s RETURNING 1",
        (value, name),
        prepare=True,
    )
    return bool(rows)


def stored_bytes(account: str) -> int:
    """The bytes of the files that are charged to an account."""
    rows = fetch(
        "SELECT COALESCE(sum(size), 0)::text FROM objects_file"
        f" WHERE charged_to = %s AND {_COUNTS}",
        (account,),
        prepare=True,
    )
    return int(rows[0][0])


def unfinished(limit: int) -> list[str]:
    """The names of files whose bytes were never stored, or removed, as a whole."""
    rows = fetch(
        f"SELECT name FROM objects_file WHERE NOT complete AND NOT {_COUNTS}"
        " ORDER BY created_at LIMIT %s",
        (limit,),
        prepare=False,
    )
    return [row[0] for row in rows]


def find(name: str) -> FileRecord | None:
    """The file of this name, or None; also None for one whose bytes aren't all there."""
    rows = fetch(
        f"SELECT {_COLUMNS} FROM objects_file WHERE name = %s AND complete", (name,), prepare=True
    )
    return _record(rows[0]) if rows else None


def remove(name: str) -> None:
    """Forget a file."""
    fetch("DELETE FROM objects_file WHERE name = %s", (name,), prepare=True)


def _record(row: Row) -> FileRecord:
    name, size, content_type, sha256, metadata, tags, owner_id, readers, created, charged_to = row
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
        charged_to,
    )
