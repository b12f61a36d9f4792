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

from backend.embedded import children
from backend.embedded.account import Account
from backend.embedded.binaries import POSTGRES_MAJOR, postgres_installs
from backend.embedded.cluster import end_server, major_of
from backend.embedded.errors import StartError
from backend.embedded.folder import USER, DataFolder

_UPGRADED: Final = "postgres.upgraded"  # complete, and on its way to the old one's place
_UPGRADING: Final = "postgres.upgrading"
_ROOM: Final = 1.2  # times the size of the cluster


def finish(folder: DataFolder) -> None:
    """Put an upgraded cluster into its place, where an upgrade was interrupted in doing so."""
    upgraded = folder.engines / _UPGRADED
    if not upgraded.is_dir():
        return
    if folder.postgres.exists() and any(folder.postgres.iterdir()):
        folder.postgres.rename(_kept(folder, major_of(folder.postgres)))
    elif folder.postgres.exists():
        folder.postgres.rmdir()
    upgraded.rename(folder.postgres)


def upgrade(folder: DataFolder, account: Account, programs: Path | None = None) -> Path:
    """Upgrade the cluster of a folder that is prepared and held. The place of the old one.

    ``programs`` is the folder of the old major's programs, if they aren't in the wheel. Raises
    ``StartError``: the old cluster is as it was then.
    """
    children.adopt_orphans()  # the servers that pg_upgrade starts leave it
    finish(folder)
    for cluster in (folder.postgres, folder.engines / _UPGRADING):
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
    kept = _kept(folder, old)
    if kept.exists():
        raise StartError(f"{kept} is in the way: it was kept by an earlier upgrade. Move it away.")
    installs = postgres_installs()
    new_install = installs.get(POSTGRES_MAJOR)
    old_install = programs.parent if programs else installs.get(old) or _of_debian(old)
    if new_install is None or old_install is None:
        missing = old if old_install is None else POSTGRES_MAJOR
        raise StartError(
            f"The programs of PostgreSQL {missing} aren't here: install them (apt install "
            f"postgresql-{missing}), and name their folder with --programs."
        )
    _check_room(folder.postgres)
    with _workshop(folder, account, old_install, new_install) as (old_bin, new_bin, work):
        run = _Runner(account, folder, work)
        _recover(run, old_bin, folder.postgres)
        fresh = folder.engines / _UPGRADING
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(mode=0o700)
        account.own(fresh)
        state = run([old_bin / "pg_controldata", "-D", folder.postgres])
        has_none = re.search(r"checksum version:\s+0$", state, re.MULTILINE)
        checksums = "--no-data-checksums" if has_none else "--data-checksums"
        run([new_bin / "initdb", "-D", fresh, f"--username={USER}", "--auth=trust", checksums])
        run(
            [
                new_bin / "pg_upgrade",
                f"--old-bindir={old_bin}",
                f"--new-bindir={new_bin}",
                f"--old-datadir={folder.postgres}",
                f"--new-datadir={fresh}",
                f"--username={USER}",
                f"--socketdir={work}",
                f"--jobs={os.cpu_count() or 1}",
            ]
        )
        fresh.rename(folder.engines / _UPGRADED)
    finish(folder)
    return kept


def _kept(folder: DataFolder, major: int | None) -> Path:
    return folder.engines / f"postgres.{major or 'old'}"


def _of_debian(major: int) -> Path | None:
    install = Path(f"/usr/lib/postgresql/{major}")
    return install if (install / "bin" / "postgres").exists() else None


def _check_room(cluster: Path) -> None:
    size = sum(file.lstat().st_size for file in cluster.rglob("*"))
    free = shutil.disk_usage(cluster).free
    if free < size * _ROOM:
        raise StartError(
            f"The upgrade copies the database and needs {size * _ROOM / 1e9:.1f} GB; "
            f"{free / 1e9:.1f} GB are free."
        )


@contextmanager
def _workshop(
    folder: DataFolder, account: Account, old: Path, new: Path
) -> Iterator[tuple[Path, Path, Path]]:
    """The programs of both majors where the account can run them, and a folder to work in."""
    with tempfile.TemporaryDirectory(prefix="svc-upgrade-", dir="/tmp") as place:
        shop = Path(place)
        shop.chmod(0o711)
        work = shop / "w"
        work.mkdir(mode=0o700)
        account.own(work)
        if account.can_read(old / "bin" / "postgres") and account.can_read(
            new / "bin" / "postgres"
        ):
            yield old / "bin", new / "bin", work
            return
        for name, install in (("old", old), ("new", new)):
            # The programs find their libraries two folders up, as in the wheel.
            shutil.copytree(install, shop / name / "wheel" / install.name)
            libraries = install.parent.with_name(f"{install.parent.name}.libs")
            if libraries.is_dir():
                shutil.copytree(libraries, shop / name / libraries.name)
        for path in shop.glob("[on]*/**/*"):
            if not path.is_symlink():
                path.chmod(0o755 if path.is_dir() or os.access(path, os.X_OK) else 0o644)
        for name in ("old", "new"):
            (shop / name).chmod(0o755)
        yield (
            shop / "old" / "wheel" / old.name / "bin",
            shop / "new" / "wheel" / new.name / "bin",
            work,
        )


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
                    command, account=self._account, log=log, folder=self._work, given=nothing
                )
            try:
                status = process.wait()
            finally:
                if process.poll() is None:
                    process.kill()
                    process.wait()
                children.end_descendants(how=signal.SIGINT)
            log.seek(begin)
            said = log.read().decode(errors="replace")
        if status != 0:
            lines = said.strip().splitlines() or ["no reason given"]
            raise StartError(
                f"{Path(command[0]).name} failed: {lines[-1].strip()} (the log is {self._log}). The"
                " old database is as it was."
            )
        return said
