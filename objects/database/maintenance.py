"""Maintenance mode: the system is read-only for all but its operators.

While it is on, every write is refused with ``UnderMaintenance``, by clients and with the master
key, over every transport. No process caches the switch. Each statement that writes reads it in its
own snapshot (``guard``), and operations of several statements read it when they begin (``check``,
``writing``, ``storing``), so it takes effect in all processes at once.

``on`` returns when it is in force. A transaction that has read the switch while it was off keeps a
lock on the view ``objects_read_only`` until it ends; ``on`` sets the switch, commits, and waits
for those that hold such a lock (``storing`` has one of its own). Later transactions see the
switch: PostgreSQL takes the snapshot of a statement after its locks. So when ``on`` returns, every
write is there as a whole or refused.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import wraps
from typing import Annotated, Final, Literal, NamedTuple, ParamSpec, TypeVar

import psycopg
from django.db import transaction

from backend.kernel.connections.advisory_locks import OUTSIDE_STORAGE
from backend.kernel.errors import ServiceError, UnderMaintenance
from backend.logs.setup import get_logger
from objects.database import locks
from objects.database.row_types import select_list
from objects.database.statements import fetch, fetch_rows, fetch_value, fetch_values

DEFAULT_MESSAGE: Final = UnderMaintenance().message
LONGEST_MESSAGE: Final = 500  # characters

_ROW: Final = 1
_POLL: Final = 0.02  # seconds

log = get_logger("maintenance")

_P = ParamSpec("_P")
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class State:
    """Active maintenance mode: message to writers, start, and whether the chain app waits."""

    message: str
    since: datetime
    chain_paused: bool


@dataclass(frozen=True, slots=True)
class Writer:
    """A transaction that began to write before maintenance mode was on."""

    pid: int
    process: str
    seconds: float


class WritersLeft(Exception):
    """Maintenance mode is on, but writes that began before are not over yet."""

    def __init__(self, writers: tuple[Writer, ...]) -> None:
        named = ", ".join(
            f"pid {writer.pid} ({writer.process or 'unknown'}, for {writer.seconds:.0f} s)"
            for writer in writers
        )
        super().__init__(f"Writes that began before are still running: {named}.")
        self.writers = writers


class _Switch(NamedTuple):
    """The row of ``objects_maintenance``; ``since`` is in seconds since the epoch."""

    message: str
    since: Annotated[float, "extract(epoch FROM {row}.since)"]
    chain_paused: bool


class _RunningWriter(NamedTuple):
    """A ``Writer``, and what identifies its transaction. Prepared transactions have no process."""

    transaction: str
    pid: int | None
    process: str
    seconds: float


_SWITCH_ON: Final = f"""
INSERT INTO objects_maintenance AS m (id, message, since, chain_paused)
VALUES ({_ROW}, COALESCE(%(message)s::text, %(default_message)s::text), statement_timestamp(),
        COALESCE(%(chain_paused)s::boolean, false))
ON CONFLICT (id) DO UPDATE SET
    message = COALESCE(%(message)s::text, m.message),
    chain_paused = COALESCE(%(chain_paused)s::boolean, m.chain_paused)
RETURNING chain_paused
"""
_STATE: Final = f"SELECT {select_list(_Switch, 'm')} FROM objects_maintenance m"


# -- Switching ------------------------------------------------------------------------------------


def on(
    message: str | None = None, *, pause_chain: bool | None = None, limit: float = 60
) -> State | None:
    """Switch maintenance mode on, and return when no earlier write is running any more.

    None leaves the message and the chain as they are, or as usual if it wasn't on; an empty
    message is the usual one. It may be called while it is on, to change these or to wait again.
    Never inside a transaction. Raises ``ValueError`` for a message that can't be shown, and
    ``WritersLeft`` when writes that began before take longer than ``limit`` seconds: it stays on
    then. Returns None if it has been switched off in the meantime.
    """
    new_message = None if message is None else _checked(message)
    with transaction.atomic(durable=True):
        is_chain_waiting = fetch_value(
            bool,
            _SWITCH_ON,
            {
                "message": new_message,
                "default_message": DEFAULT_MESSAGE,
                "chain_paused": pause_chain,
            },
            prepare=False,
        )
    log.warning("maintenance mode switched on", chain_paused=is_chain_waiting)
    _wait_for_writers(limit)
    return state()


def off() -> bool:
    """Take writes again; whether it was on."""
    with transaction.atomic(durable=True):
        was_on = bool(fetch("DELETE FROM objects_maintenance RETURNING id", {}, prepare=False))
    if was_on:
        log.warning("maintenance mode switched off")
    return was_on


def state() -> State | None:
    """What holds at the moment; None while maintenance mode is off."""
    rows = fetch_rows(_Switch, _STATE, {}, prepare=True)
    if not rows:
        return None
    switch = rows[0]
    return State(switch.message, datetime.fromtimestamp(switch.since, UTC), switch.chain_paused)


def is_chain_paused() -> bool:
    """Return whether the chain app has to wait as well."""
    current = state()
    return current is not None and current.chain_paused


def _checked(message: str) -> str:
    text = message.strip()
    if len(text) > LONGEST_MESSAGE or not text.isprintable():
        raise ValueError(f"the message is one line of at most {LONGEST_MESSAGE} characters")
    return text or DEFAULT_MESSAGE


_STORING: Final = (*OUTSIDE_STORAGE.parameters, 2)  # as pg_locks shows it
_WRITERS: Final = f"""
SELECT CASE l.locktype WHEN 'relation' THEN l.virtualtransaction ELSE 'pid ' || l.pid END,
       l.pid, COALESCE(a.application_name, ''),
       COALESCE(extract(epoch FROM clock_timestamp() - COALESCE(a.xact_start, a.state_change)), 0)
FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid
WHERE (l.locktype = 'relation' AND l.relation = 'objects_read_only'::regclass
       OR l.locktype = 'advisory' AND (l.classid, l.objid, l.objsubid) = {_STORING})
AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
AND l.granted AND l.pid IS DISTINCT FROM pg_backend_pid()
"""


def _wait_for_writers(limit: float) -> None:
    """Wait until those who have read the switch by now are done."""
    end = time.monotonic() + limit
    waited_for: set[str] | None = None
    while True:
        rows = fetch_rows(_RunningWriter, _WRITERS, {}, prepare=False)
        if waited_for is not None:
            rows = [row for row in rows if row.transaction in waited_for]
        if not rows:
            return
        waited_for = {row.transaction for row in rows}
        if time.monotonic() >= end:
            writers = (Writer(row.pid or 0, row.process, row.seconds) for row in rows)
            raise WritersLeft(tuple(writers))
        time.sleep(_POLL)


# -- Asking ---------------------------------------------------------------------------------------

_Exemption = Literal["chain", "own"]
_exemption: ContextVar[_Exemption | None] = ContextVar("maintenance_exemption", default=None)

_VIEW: Final[dict[_Exemption | None, str]] = {
    None: "objects_read_only",
    "chain": "objects_read_only WHERE chain_paused",
}


def guard() -> str:
    """Return the condition, without parameters, under which a statement may write.

    Call ``check`` after a statement without rows, to learn whether this condition was the reason.
    """
    exemption = _exemption.get()
    return "true" if exemption == "own" else f"NOT EXISTS (SELECT FROM {_VIEW[exemption]})"


def check() -> None:
    """Raise ``UnderMaintenance`` if writes are refused.

    Inside a transaction it is binding: the rest of it is waited for by ``on``. Outside it only
    saves work that would be refused later.
    """
    exemption = _exemption.get()
    if exemption == "own":
        return
    messages = fetch_values(str, f"SELECT message FROM {_VIEW[exemption]}", {}, prepare=True)
    if messages:
        raise UnderMaintenance(messages[0])


@contextmanager
def writing() -> Iterator[None]:
    """A transaction that may write, from its beginning to its end; ``UnderMaintenance`` if not."""
    with transaction.atomic():
        check()
        yield


@contextmanager
def storing() -> Iterator[None]:
    """As ``writing``, but no transaction: for what is written to other places as well."""
    # Shared by all, and nothing takes it exclusively: it never waits.
    with locks.held(OUTSIDE_STORAGE, shared=True):
        check()
        yield


def reported_first(write: Callable[_P, _T]) -> Callable[_P, _T]:
    """Make a write that fails raise ``UnderMaintenance`` in preference to any other error.

    Writes that succeed need no check: their own statements are guarded.
    """

    @wraps(write)
    def written(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        try:
            return write(*args, **kwargs)
        except UnderMaintenance:
            raise
        except ServiceError:
            _prefer()
            raise

    return written


def _prefer() -> None:
    try:
        check()
    except psycopg.Error:
        # A transaction that has failed already; maintenance mode would have refused it before.
        return


# -- Exceptions -----------------------------------------------------------------------------------


@contextmanager
def recording() -> Iterator[None]:
    """Write down what happens on chain: only refused while the chain is paused as well.

    For the chain app's own writers, around nothing that others have written (triggers, functions).
    """
    with _exempted("chain"):
        yield


@contextmanager
def own_records() -> Iterator[None]:
    """Write in spite of maintenance mode: the service's bookkeeping, operators who ask for it."""
    with _exempted("own"):
        yield


@contextmanager
def _exempted(exemption: _Exemption) -> Iterator[None]:
    token = _exemption.set(exemption)
    try:
        yield
    finally:
        _exemption.reset(token)
