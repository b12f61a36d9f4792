"""The rows of ``StoredFile``, read and written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Annotated, Final, NamedTuple

import msgspec
from django.db import transaction
from django.db.models import BigIntegerField, Exists, F, OuterRef, Subquery, Sum, Value
from django.db.models.functions import Coalesce, Now

from backend.kernel.json_types import Json
from objects.database.orm import orm_queries
from objects.database.row_types import select_list
from objects.database.statements import fetch, fetch_rows
from objects.files.models import FileUsage, StoredFile


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


class _FileRow(NamedTuple):
    """A row of ``objects_file``; ``created_at`` is in seconds since the epoch."""

    name: str
    size: int
    content_type: str
    sha256: str
    metadata: Annotated[str, "{row}.metadata::text"]
    tags: Annotated[str, "{row}.tags::text"]
    owner_id: str | None
    readers: Annotated[str | None, "array_to_json({row}.read_acl)::text"]
    created_at: Annotated[float, "extract(epoch FROM {row}.created_at)"]
    charged_to: str | None


UNFINISHED: Final = timedelta(hours=1)
"""How long the bytes of a file may take to be stored. A row that isn't complete after that is left
over from a process that died."""

_COLUMNS_OF_NEW: Final = (
    "name, size, content_type, sha256, metadata, tags, owner_id, read_acl, created_at, charged_to,"
    " complete"
)
_NEW: Final = (
    "%(name)s, %(size)s::bigint, %(content_type)s, %(sha256)s, %(metadata)s::jsonb,"
    " %(tags)s::jsonb, %(owner_id)s, %(readers)s::text[], %(created_at)s::timestamptz,"
    " %(account)s::text, false"
)
_ADD: Final = f"INSERT INTO objects_file ({_COLUMNS_OF_NEW}) VALUES ({_NEW})"
# One statement, so that a row and its bytes count together, and uploads at the same time are added
# up one after the other.
_ADD_CHARGED: Final = f"""
WITH room AS (
    INSERT INTO objects_file_usage AS u (account, bytes)
    SELECT %(account)s::text, %(size)s::bigint
    WHERE %(allowed)s::bigint = 0 OR %(size)s::bigint <= %(allowed)s::bigint
    ON CONFLICT (account) DO UPDATE SET bytes = u.bytes + excluded.bytes
    WHERE %(allowed)s::bigint = 0 OR u.bytes + excluded.bytes <= %(allowed)s::bigint
    RETURNING 1)
INSERT INTO objects_file ({_COLUMNS_OF_NEW}) SELECT {_NEW} FROM room RETURNING 1
"""
_FIND: Final = f"""
SELECT {select_list(_FileRow, "f")} FROM objects_file f WHERE f.name = %(name)s AND f.complete
"""
_EXISTING: Final = "SELECT name FROM objects_file WHERE name = ANY(%(names)s) AND complete"
_REMOVE: Final = """
WITH removed AS (DELETE FROM objects_file WHERE name = %(name)s RETURNING charged_to, size)
UPDATE objects_file_usage AS u SET bytes = greatest(0, u.bytes - removed.size)
FROM removed WHERE u.account = removed.charged_to
"""


def add(record: FileRecord, allowed: int = 0) -> bool:
    """Add the row of a new file, whose bytes are to be stored; ``complete`` makes it visible.

    False, and nothing is added, if the account that it is charged to would have more than
    ``allowed`` bytes then; 0 is no limit.
    """
    params = {
        "name": record.name,
        "size": record.size,
        "content_type": record.content_type,
        "sha256": record.sha256,
        "metadata": msgspec.json.encode(record.metadata).decode(),
        "tags": msgspec.json.encode(record.tags).decode(),
        "owner_id": record.owner_id,
        "readers": None if record.readers is None else sorted(record.readers),
        "created_at": record.created_at.isoformat(),
        "account": record.charged_to,
    }
    if record.charged_to is None:
        fetch(_ADD, params, prepare=True)
        return True
    return bool(fetch(_ADD_CHARGED, {**params, "allowed": allowed}, prepare=True))


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


@orm_queries()
def count_again() -> int:
    """Correct the bytes of accounts by their rows, if SQL changed these; how many were wrong."""
    charged = StoredFile.objects.filter(charged_to=OuterRef("pk")).order_by()
    bytes_of_files = charged.values("charged_to").annotate(bytes=Sum("size")).values("bytes")
    total = Coalesce(Subquery(bytes_of_files), Value(0), output_field=BigIntegerField())
    wrong = FileUsage.objects.annotate(total=total).exclude(bytes=F("total"))
    has_usage = Exists(FileUsage.objects.filter(pk=OuterRef("charged_to")))
    uncounted = StoredFile.objects.filter(~has_usage, charged_to__isnull=False, size__gt=0)
    accounts = list(wrong.values_list("pk", flat=True))
    names = uncounted.order_by().values_list("charged_to", flat=True).distinct()
    accounts += [name for name in names if name is not None]
    for account in accounts:
        with transaction.atomic():
            FileUsage.objects.bulk_create(
                [FileUsage(account=account, bytes=0)],
                update_conflicts=True,
                unique_fields=["account"],
                update_fields=["bytes"],
            )
            # No upload of the account is added between its lock and this statement's snapshot.
            FileUsage.objects.filter(pk=account).update(bytes=total)
    return len(accounts)


def unfinished(limit: int) -> list[str]:
    """The names of files whose bytes were never stored, or removed, as a whole."""
    with orm_queries():
        files = StoredFile.objects.filter(complete=False, created_at__lt=Now() - UNFINISHED)
        return list(files.order_by("created_at").values_list("pk", flat=True)[:limit])


def find(name: str) -> FileRecord | None:
    """The file of this name, or None; also None for one whose bytes aren't all there."""
    rows = fetch_rows(_FileRow, _FIND, {"name": name}, prepare=True)
    return _record(rows[0]) if rows else None


def existing(names: Sequence[str]) -> set[str]:
    """Return those of these names that files have."""
    return {row[0] for row in fetch(_EXISTING, {"names": list(names)}, prepare=True)}


def remove(name: str) -> None:
    """Remove the row of a file, which frees its room."""
    fetch(_REMOVE, {"name": name}, prepare=True)


def _record(row: _FileRow) -> FileRecord:
    return FileRecord(
        row.name,
        row.size,
        row.content_type,
        row.sha256,
        msgspec.json.decode(row.metadata),
        msgspec.json.decode(row.tags),
        row.owner_id,
        None if row.readers is None else frozenset(msgspec.json.decode(row.readers)),
        datetime.fromtimestamp(row.created_at, UTC),
        row.charged_to,
    )
