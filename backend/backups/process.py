"""Processes that make, verify and read backups, for workers and for the admin."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Generator
from typing import Final

from backend.kernel.process.children import before_exec, ended_by
from backend.kernel.texts.redaction import mask_text
from backend.logs.setup import get_logger
from backend.settings.areas.processes import BASE_DIR

LONGEST: Final = 12 * 3600.0
"""Seconds; then the process is killed."""

_PIECE: Final = 256 * 1024  # bytes
_LONGEST_ERROR: Final = 100_000  # bytes
_reading: Final = threading.Semaphore(1)

log = get_logger("backup")


def back_up(sent_at: float) -> bool:
    """Run ``manage.py backup --scheduled`` to its end, and kill it after twelve hours. Return
    whether it succeeded.

    It is a process of its own, so that neither its memory nor a place that doesn't answer is the
    worker's, and it ends with the worker. It records and logs how the run ended, unless it is
    killed: then ``history.mark_killed`` is to record it.
    """
    return _run("--scheduled", str(sent_at))


def verify(name: str) -> bool:
    """Run ``manage.py backup --verify``, as ``back_up`` does. Return whether the archive is whole.
    The process notes the result with the run of the archive."""
    return _run("--verify", name)


def _run(*arguments: str) -> bool:
    process = subprocess.Popen(
        [sys.executable, "manage.py", "backup", *arguments],
        cwd=BASE_DIR,
        env={**os.environ, "PROCESS": "manage"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=before_exec(signal.SIGTERM),
    )
    try:
        status = process.wait(LONGEST)
    except subprocess.TimeoutExpired:
        log.error("a backup was killed: it took too long", seconds=LONGEST)
        return False
    finally:
        if process.poll() is None:
            # pg_dump and psql are of its session.
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if status < 0:
        log.error("a backup was killed", end=ended_by(status))
    return status == 0


class ArchiveUnreadable(Exception):
    """An archive that can't be read from its place; the message has the reason."""


def read_archive(name: str) -> Generator[bytes]:
    """Return the bytes of an archive, decrypted, which a process of its own reads from its place.

    One archive is read at a time in this process. Raises ``ArchiveUnreadable`` if it can't be read;
    after the first bytes the iterator raises it, and what was read mustn't be used.
    """
    if not _reading.acquire(blocking=False):
        raise ArchiveUnreadable("Another archive is being downloaded: try again when it has ended.")
    pieces = _pieces(name)
    try:
        first = next(pieces, b"")
    except BaseException:
        pieces.close()
        raise
    return _after(first, pieces)


def _after(first: bytes, pieces: Generator[bytes]) -> Generator[bytes]:
    yield first
    yield from pieces


def _pieces(name: str) -> Generator[bytes]:
    with tempfile.TemporaryFile() as errors:
        try:
            process = subprocess.Popen(
                [sys.executable, "manage.py", "backup", "--read", name],
                cwd=BASE_DIR,
                env={**os.environ, "PROCESS": "manage"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )
        except OSError as error:
            _reading.release()
            raise ArchiveUnreadable(f"The archive can't be read: {error.strerror}.") from error
        assert process.stdout is not None
        try:
            while piece := process.stdout.read(_PIECE):
                yield piece
            if process.wait() != 0:
                errors.seek(0)
                lines = errors.read(_LONGEST_ERROR).decode(errors="replace").strip().splitlines()
                reason = mask_text(lines[-1]) if lines else "its process was killed."
                raise ArchiveUnreadable(f"The archive can't be read: {reason}")
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
            process.stdout.close()
            _reading.release()
