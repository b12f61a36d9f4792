"""Brings the embedded database of an older PostgreSQL to the major of this one, by ``pg_upgrade``.

The old cluster is copied and stays untouched. Killed at any moment, this can be run again: the new
cluster takes its name, and then the old one's place, only when it is complete.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from backend.instance.account import Account
from backend.instance.errors import StartError
from backend.instance.folder import USER, DataFolder
from backend.kernel.process import children
from backend.operations.embedded.binaries import (
    POSTGRES_MAJOR,
    copy_programs,
    postgres_installs,
    postgres_major,
)
from backend.operations.embedded.cluster import end_server, major_of

# The new cluster: postgres.upgrading -> postgres.upgraded -> postgres.
# The old one:     postgres -> postgres.16, by its major, before the new one's last step.
_INCOMPLETE: Final = "postgres.upgrading"
_COMPLETE: Final = "postgres.upgraded"
_NEEDED: Final = ("postgres", "pg_controldata")
_ROOM: Final = 1.2  # times the size of the cluster


def finish(folder: DataFolder) -> None:
    """Put an upgraded cluster into its place, where an upgrade was interrupted in doing so."""
    upgraded = folder.engines / _COMPLETE
    if not upgraded.is_dir():
        return
    if folder.postgres.exists() and any(folder.postgres.iterdir()):
        folder.postgres.rename(_backup(folder, major_of(folder.postgres)))
    elif folder.postgres.exists():
        folder.postgres.rmdir()
    upgraded.rename(folder.postgres)


def upgrade(folder: DataFolder, account: Account, programs: Path | None = None) -> Path:
    """Upgrade the cluster of a folder that is prepared and held. Return where the old one is now.

    ``programs`` is the folder of the old major's programs, if they aren't in the wheel. Raises
    ``StartError``: the old cluster is as it was then.
    """
    children.adopt_orphans()  # the servers that pg_upgrade starts leave it
    finish(folder)
    for cluster in (folder.postgres, folder.engines / _INCOMPLETE):
        end_server(cluster)  # of an upgrade that was killed
    old = major_of(folder.postgres)
    if old is None:
        raise StartError(f"There is no PostgreSQL cluster in {folder.postgres}.")
    if old == POSTGRES_MAJOR:
        raise StartError(f"The database in {folder.postgres} is one of PostgreSQL {old} already.")
    if old > POSTGRES_MAJOR:
        raise StartError(
            f"The database in {folder.postgres} was made by PostgreSQL {old}, which is newer than "
            f"this one ({POSTGRES_MAJOR}): use the newer release of the service."
        )
    backup = _backup(folder, old)
    if backup.exists():
        raise StartError(f"{backup} is in the way: an earlier upgrade made it. Move it away.")
    new_programs = _installed(POSTGRES_MAJOR)
    old_programs = _named(programs, old) if programs else _installed(old)
    if new_programs is None or old_programs is None:
        missing = old if old_programs is None else POSTGRES_MAJOR
        raise StartError(
            f"The programs of PostgreSQL {missing} aren't here: install them (apt install "
            f"postgresql-{missing}), and name their folder with --programs."
        )
    _check_room(folder.postgres)
    with _accessible_programs(account, old_programs, new_programs) as (old_bin, new_bin, work):
        run = _Runner(account, folder, work)
        _recover(run, old_bin, folder.postgres)
        new_cluster = folder.engines / _INCOMPLETE
        shutil.rmtree(new_cluster, ignore_errors=True)
        new_cluster.mkdir(mode=0o700)
        account.own(new_cluster)
        state = run([old_bin / "pg_controldata", "-D", folder.postgres])
        has_none = re.search(r"checksum version:\s+0$", state, re.MULTILINE)
        checksums = "--no-data-checksums" if has_none else "--data-checksums"
        options = [f"--username={USER}", "--auth=trust", checksums]
        run([new_bin / "initdb", "-D", new_cluster, *options])
        run(
            [
                new_bin / "pg_upgrade",
                f"--old-bindir={old_bin}",
                f"--new-bindir={new_bin}",
                f"--old-datadir={folder.postgres}",
                f"--new-datadir={new_cluster}",
                f"--username={USER}",
                f"--socketdir={work}",
                f"--jobs={os.cpu_count() or 1}",
            ]
        )
        new_cluster.rename(folder.engines / _COMPLETE)
    finish(folder)
    return backup


def _backup(folder: DataFolder, major: int | None) -> Path:
    return folder.engines / f"postgres.{major or 'old'}"


def _installed(major: int) -> Path | None:
    """The folder of a major's programs: the wheel's, or Debian's."""
    install = postgres_installs().get(major) or Path(f"/usr/lib/postgresql/{major}")
    return install / "bin" if (install / "bin" / "postgres").exists() else None


def _named(programs: Path, major: int) -> Path:
    """The folder that ``--programs`` names, if it has the programs of this major. Raises
    ``StartError``."""
    programs = Path(os.path.realpath(programs))
    is_complete = all(os.access(programs / name, os.X_OK) for name in _NEEDED)
    if not is_complete or postgres_major(programs / "postgres") != major:
        raise StartError(f"--programs: there is no PostgreSQL {major} in {programs}.")
    return programs


def _check_room(cluster: Path) -> None:
    size = sum(file.lstat().st_size for file in cluster.rglob("*"))
    free = shutil.disk_usage(cluster).free
    if free < size * _ROOM:
        raise StartError(
            f"The upgrade copies the database and needs {size * _ROOM / 1e9:.1f} GB; "
            f"{free / 1e9:.1f} GB are free."
        )


@contextmanager
def _accessible_programs(
    account: Account, old: Path, new: Path
) -> Iterator[tuple[Path, Path, Path]]:
    """The folders of both majors' programs, copied where the account can't run them in place, and a
    folder to work in."""
    with tempfile.TemporaryDirectory(prefix=f"svc-upgrade-{os.getpid()}-", dir="/tmp") as place:
        folder = Path(place)
        folder.chmod(0o711)
        work = folder / "w"
        work.mkdir(mode=0o700)
        account.own(work)
        if not account.can_read(old / "postgres"):
            old = _copy(old, folder / "old")
        if not account.can_read(new / "postgres"):
            new = _copy(new, folder / "new")
        yield old, new, work


def _copy(programs: Path, into: Path) -> Path:
    try:
        return copy_programs(programs, into)
    except OSError as error:
        reason = error.strerror or error
        raise StartError(f"{programs} can't be copied to {into}: {reason}.") from error


def _recover(run: _Runner, programs: Path, cluster: Path) -> None:
    """Have the old server end properly, if it was killed: ``pg_upgrade`` wants that."""
    state = run([programs / "pg_controldata", "-D", cluster])
    if not re.search(r"cluster state:\s+shut down$", state, re.MULTILINE):
        run([programs / "postgres", "--single", "-D", cluster, "template1"])


class _Runner:
    """Runs commands as the account. Their output goes to the log, and is the result."""

    def __init__(self, account: Account, folder: DataFolder, work: Path) -> None:
        self._account = account
        self._log = folder.log / "upgrade.log"
        self._work = work

    def __call__(self, command: Sequence[str | Path]) -> str:
        with self._log.open("ab+") as log, tempfile.TemporaryFile() as nothing:
            begin = log.seek(0, os.SEEK_END)
            with children.undisturbed():
                process = children.start(
                    command, account=self._account, log=log, folder=self._work, stdin=nothing
                )
            try:
                status = process.wait()
            finally:
                if process.poll() is None:
                    process.kill()
                    process.wait()
                children.end_descendants(how=signal.SIGINT)
            log.seek(begin)
            output = log.read().decode(errors="replace")
        if status != 0:
            lines = output.strip().splitlines() or ["no reason given"]
            raise StartError(
                f"{Path(command[0]).name} failed: {lines[-1].strip()} (the log is {self._log}). The"
                " old database is as it was."
            )
        return output
