"""Files that nothing refers to: finding them, removing them.

The last part of a file's name begins with 128 random bits, so a mention of them anywhere is a
reference: in a File value at any depth, in a text, in a link, in a column of a model, in a default
value of a class. PostgreSQL looks through each class once for all files together.

Only files of some age are considered: an app uploads first and saves the object afterwards. Before
files are removed, what was written since the search is searched as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Annotated, Final, NamedTuple

from psycopg.errors import UndefinedTable

from backend.kernel.errors import FileDeleteFailed
from backend.logs.setup import get_logger
from objects.database import maintenance
from objects.database.row_types import select_list
from objects.database.statements import fetch, fetch_rows, fetch_values
from objects.definitions import registry
from objects.files import records, service, uploads

GRACE: Final = timedelta(hours=24)
"""How old a file is by default before it may count as forgotten."""

SHORTEST_GRACE: Final = timedelta(hours=1)

_PAGE = 500
# Longer than a transaction may take: what it wrote bears the time of its beginning.
_MARGIN = timedelta(minutes=15)
_CANDIDATES = "objects_file_candidate"
_MARK = "'([0-9a-f]{32})_'"

log = get_logger("files")


@dataclass(frozen=True, slots=True)
class Unused:
    """A file that nothing refers to."""

    name: str
    size: int


class _Candidate(NamedTuple):
    """A row of the table of candidates; the time is PostgreSQL's text, to the last digit."""

    name: str
    size: int
    created_at: Annotated[str, "{row}.created_at::text"]


_NEXT: Final = f"""
SELECT {select_list(_Candidate, "c")} FROM {_CANDIDATES} c
WHERE (c.created_at, c.name) > (%(created_at)s::timestamptz, %(name)s)
ORDER BY c.created_at, c.name LIMIT {_PAGE}
"""


@dataclass(frozen=True, slots=True)
class Cleaned:
    """What a clean-up has removed, and how many files it couldn't."""

    files: int
    bytes: int
    failed: int


@contextmanager
def unused_files(older_than: timedelta = GRACE) -> Iterator[Iterator[Unused]]:
    """Search, and give the files found while the block runs, oldest first.

    They are kept in a table of the connection, so that any number of them can be found.
    """
    if older_than < SHORTEST_GRACE:
        raise ValueError("files younger than an hour may be about to be referred to")
    fetch("SET statement_timeout TO 0", {}, prepare=False)
    try:
        _collect(datetime.now(UTC) - older_than)
        _strike_mentioned(since=None)
        yield _found()
    finally:
        fetch(f"DROP TABLE IF EXISTS {_CANDIDATES}", {}, prepare=False)
        fetch("SET statement_timeout TO DEFAULT", {}, prepare=False)


def remove_unused(older_than: timedelta = GRACE, *, at_once: int = 500) -> Cleaned:
    """Remove the files that nothing refers to, and what broken uploads have left.

    After so many files the search is brought up to date. Raises ``UnderMaintenance``, also in the
    middle.
    """
    maintenance.check()
    begun = datetime.now(UTC)
    files = size = failed = 0
    with unused_files(older_than) as unused:
        while batch := [*islice(unused, at_once)]:
            _strike_mentioned(since=begun - _MARGIN)
            candidates = _still_candidates([file.name for file in batch])
            for file in batch:
                if file.name not in candidates:
                    continue
                try:
                    service.remove(file.name)
                except FileDeleteFailed:
                    failed += 1
                else:
                    files, size = files + 1, size + file.size
    uploads.sweep(older_than.total_seconds())
    with maintenance.writing():
        records.count_again()
    log.info("files cleaned up", files=files, bytes=size, failed=failed)
    return Cleaned(files, size, failed)


def _collect(before: datetime) -> None:
    fetch(f"DROP TABLE IF EXISTS {_CANDIDATES}", {}, prepare=False)
    fetch(
        f"CREATE TEMP TABLE {_CANDIDATES}"
        ' (mark text COLLATE "C", name text COLLATE "C" PRIMARY KEY, size bigint,'
        " created_at timestamptz)",
        {},
        prepare=False,
    )
    fetch(
        f"INSERT INTO {_CANDIDATES}"
        " SELECT left(substring(name FROM '[^/]*$'), 32), name, size, created_at"
        " FROM objects_file WHERE created_at < %(before)s::timestamptz",
        {"before": before.isoformat()},
        prepare=False,
    )
    # Imported files may share the digits.
    fetch(f"CREATE INDEX ON {_CANDIDATES} (mark)", {}, prepare=False)
    fetch(f"ANALYZE {_CANDIDATES}", {}, prepare=False)


def _strike_mentioned(since: datetime | None) -> None:
    """Take the files that something mentions off the list; of what was written since then."""
    for relation, text in _places():
        if not fetch(f"SELECT 1 FROM {_CANDIDATES} LIMIT 1", {}, prepare=False):
            return
        newer = "" if since is None else " WHERE o.updated_at >= %(since)s::timestamptz"
        # A class that is dropped meanwhile refers to nothing any more.
        with suppress(UndefinedTable):
            fetch(
                f"DELETE FROM {_CANDIDATES} WHERE mark IN (SELECT found[1] FROM {relation} AS o"
                f" CROSS JOIN LATERAL regexp_matches({text}, {_MARK}, 'g') AS found{newer})",
                {} if since is None else {"since": since.isoformat()},
                prepare=False,
            )


def _places() -> Iterator[tuple[str, str]]:
    """Every table that may mention a file, and its row as text."""
    yield "objects_class", "o.definition::text"
    yield "objects_config", "o.params::text"
    for table in registry.all_classes():
        yield table.relation, "o.data::text" if table.is_partition else "to_jsonb(o)::text"


def _found() -> Iterator[Unused]:
    last = _Candidate("", 0, "-infinity")
    while True:
        after = {"created_at": last.created_at, "name": last.name}
        rows = fetch_rows(_Candidate, _NEXT, after, prepare=False)
        if not rows:
            return
        for row in rows:
            yield Unused(row.name, row.size)
        last = rows[-1]


def _still_candidates(names: list[str]) -> set[str]:
    statement = f"SELECT name FROM {_CANDIDATES} WHERE name = ANY(%(names)s)"
    return set(fetch_values(str, statement, {"names": names}, prepare=False))
