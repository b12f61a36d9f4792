"""What is really sent to PostgreSQL, as libpq itself records it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

_ROOM = '"DEALLOCATE '


@dataclass
class Traffic:
    """The messages of a stretch of time."""

    executions: int = 0
    round_trips: int = 0


@contextmanager
def traffic() -> Iterator[Traffic]:
    """Count what this thread's connection sends; the numbers are there when the block ends."""
    from django.db import connection

    connection.ensure_connection()
    pgconn = connection.connection.pgconn
    observed = Traffic()
    with tempfile.TemporaryFile() as trace:
        pgconn.trace(trace.fileno())
        try:
            yield observed
        finally:
            pgconn.untrace()
        trace.seek(0)
        # Fields of a line: time, who sends (F is us), length, kind of message, contents.
        # What makes room for a statement comes and goes with all that ran on the connection before.
        sent = [
            line.split("\t")[3]
            for line in trace.read().decode(errors="replace").splitlines()
            if line.count("\t") >= 3 and line.split("\t")[1] == "F" and _ROOM not in line
        ]
    observed.executions = sum(kind in ("Execute", "Query") for kind in sent)
    observed.round_trips = sum(kind in ("Sync", "Query") for kind in sent)
