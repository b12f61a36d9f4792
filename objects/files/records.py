"""The rows of ``StoredFile``, read and written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec
from django.db import transaction
from django.db.models.functions import Now

from backend.kernel.json_types import Json
from objects.database.orm import orm_queries
from objects.database.statements import Row, fetch
from objects.files.models import FileUsage, StoredFile

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


UNFINISHED: Final = timedelta(hours=1)
"""How long the bytes of a file may take to be stored. A row that isn't complete after that is left
over from a process that died."""

_COLUMNS_OF_NEW: Final = (
    "name, size, content_type, sha256, metadata, tags, owner_id, read_acl, created_at, charged_to,"
    " complete"
)
_NEW: Final = "%s, %s, %s, %s, %s::jsonb, %s::jsonb, %s, %s::text[], %s::timestamptz, %s, false"
# One statement, so that a row and its bytes count together, and uploads at the same time are added
# up one after the other.
_ADD_CHARGED: Final = f"""
WITH room AS (
    INSERT INTO objects_file_usage AS u (account, bytes)
    SELECT %s::text, %s::bigint WHERE %s::bigint = 0 OR %s::bigint <= %s::bigint
    ON CONFLICT (account) DO UPDATE SET bytes = u.bytes + excluded.bytes
    WHERE %s::bigint = 0 OR u.bytes + excluded.bytes <= %s::bigint
    RETURNING 1)
INSERT INTO objects_file ({_COLUMNS_OF_NEW}) SELECT {_NEW} FROM room RETURNING 1
"""
_REMOVE: Final = """
WITH removed AS (DELETE FROM objects_file WHERE name = %s RETURNING charged_to, size)
UPDATE objects_file_usage AS u SET bytes = greatest(0, u.bytes - removed.size)
FROM removed WHERE u.account = removed.charged_to
"""


def add(record: FileRecord, allowed: int = 0) -> bool:
    """Add the row of a new file, whose bytes are to be stored; ``complete`` makes it visible.

    False, and nothing is added, if the account that it is charged to would have more than
    ``allowed`` bytes then; 0 is no limit.
    """
    row = (
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
    )
    if record.charged_to is None:
        fetch(f"INSERT INTO objects_file ({_COLUMNS_OF_NEW}) VALUES ({_NEW})", row, prepare=True)
        return True
    room = (record.charged_to, record.size, allowed, record.size, allowed, allowed, allowed)
    return bool(fetch(_ADD_CHARGED, (*room, *row), prepare=True))


def complete(name: str) -> bool:
    """Record that all bytes of a file are stored; False if its row is gone."""
    return _set_complete(name, True)


def begin_removal(name: str) -> None:
    """Record that the bytes of a file are being removed: it isn't found from now on."""
    _set_complete(name, False)


def _set_complete(name: str, value: bool) -> bool:
    with orm_queries():
        return StoredFile.objects.filter(pk=name).update(complete=value) == 1


def stored_bytes(account: str) -> int:
    """The bytes of the files that are charged to an account."""
    with orm_queries():
        usage = FileUsage.objects.filter(pk=account)
        return usage.values_list("bytes", flat=True).first() or 0


def count_again() -> int:
    """Correct the bytes of accounts by their rows, if SQL changed these; how many were wrong."""
    wrong = fetch(
        "SELECT COALESCE(f.charged_to, u.account) FROM (SELECT charged_to, sum(size) AS bytes"
        " FROM objects_file WHERE charged_to IS NOT NULL GROUP BY charged_to) AS f"
        " FULL JOIN objects_file_usage AS u ON u.account = f.charged_to"
        " WHERE COALESCE(f.bytes, 0) <> COALESCE(u.bytes, 0)",
        (),
        prepare=False,
    )
    for (account,) in wrong:
        with transaction.atomic():
            fetch(
                "INSERT INTO objects_file_usage (account, bytes) VALUES (%s, 0)"
                " ON CONFLICT (account) DO UPDATE SET bytes = objects_file_usage.bytes",
                (account,),
                prepare=False,
            )
            # No upload of the account is added between its lock and this statement's snapshot.
            fetch(
                "UPDATE objects_file_usage SET bytes = (SELECT COALESCE(sum(size), 0)"
                " FROM objects_file WHERE charged_to = %s) WHERE account = %s",
                (account, account),
                prepare=False,
            )
    return len(wrong)


def unfinished(limit: int) -> list[str]:
    """The names of files whose bytes were never stored, or removed, as a whole."""
    with orm_queries():
        files = StoredFile.objects.filter(complete=False, created_at__lt=Now() - UNFINISHED)
        return list(files.order_by("created_at").values_list("pk", flat=True)[:limit])


def find(name: str) -> FileRecord | None:
    """The file of this name, or None; also None for one whose bytes aren't all there."""
    rows = fetch(
        f"SELECT {_COLUMNS} FROM objects_file WHERE name = %s AND complete", (name,), prepare=True
    )
    return _record(rows[0]) if rows else None


def remove(name: str) -> None:
    """Remove the row of a file, which frees its room."""
    fetch(_REMOVE, (name,), prepare=True)


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
