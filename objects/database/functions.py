"""Functions of the database, from files of SQL: installed by version, outside of migrations.

A migration runs once and keeps what it runs; functions are replaced as a whole whenever their file
has changed. So an instance that was updated has the same functions as a new one. The version of
a file is stored as the comment of each of its functions.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from django.db import connection, transaction

from objects.database.statements import fetch_values

_NAME: Final = re.compile(r"^CREATE OR REPLACE FUNCTION (\w+)\(", re.MULTILINE)
_VERSIONS: Final = """
SELECT COALESCE(obj_description(to_regproc(n.name)::oid, 'pg_proc'), '')
FROM unnest(%(names)s::text[]) AS n (name)
"""


@dataclass(frozen=True)
class DatabaseFunctions:
    """The functions that a file creates by ``CREATE OR REPLACE FUNCTION name(…)``.

    Names are in lower case and occur once in a database; the file has nothing else than functions.
    """

    path: Path

    @cached_property
    def sql(self) -> str:
        return self.path.read_text()

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(_NAME.findall(self.sql))

    @cached_property
    def version(self) -> str:
        """The comment of each function that this file has installed."""
        return f"version {hashlib.sha256(self.sql.encode()).hexdigest()[:16]}"

    def outdated(self) -> list[str]:
        """Return the names of the functions that are missing or of another version."""
        versions = fetch_values(str, _VERSIONS, {"names": list(self.names)}, prepare=False)
        return [
            name
            for name, version in zip(self.names, versions, strict=True)
            if version != self.version
        ]

    def install(self) -> bool:
        """Create or replace the functions if any is outdated; return whether one was.

        Triggers go on calling the functions that they name. Call it once at a time: PostgreSQL
        refuses to replace a function twice at the same moment.
        """
        if not self.outdated():
            return False
        comments = (f"COMMENT ON FUNCTION {name} IS '{self.version}';" for name in self.names)
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("\n".join([self.sql, *comments]))
        return True
