"""The instance's data folder: what is where in it, and who holds it.

::

    DATA_DIR/
      keys.env        the keys made on the first run, readable by their owner only
      live-keys.env   the keys that the service runs with; keys.env may have newer ones
      unseen-keys     there until those keys have been printed
      lock            held while an instance runs
      wal-archive.json  the state of archived WAL, if there is any
      instance.json   the running (or last) instance: process, addresses
      postgres/ redis/ log/ run/ files/

Started by root from a folder that the engines' account can't enter, the engines' part of it
(postgres, redis, run, runtime) is in a folder below ``/var/lib`` that ``DATA_DIR/engines`` names.
Sockets are in ``run``, or, where that path is too long for a socket, in a private folder below
``/tmp``.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from backend.instance.account import Account, engine_account
from backend.instance.errors import StartError

DATABASE = "backend"
USER = "backend"
ELSEWHERE = Path("/var/lib/svc-backend")
_LONGEST_SOCKET = 107  # bytes, sun_path less its terminator
_STOPPING = 20.0  # seconds that a killed instance may take to clean up behind itself


class DataFolder:
    """Paths of one instance. Making one touches nothing; ``prepare`` creates what is missing."""

    def __init__(self, path: Path) -> None:
        self.path = Path(os.path.abspath(path))
        self.keys = self.path / "keys.env"
        self.live_keys = self.path / "live-keys.env"
        self.unseen_keys = self.path / "unseen-keys"
        self.lock = self.path / "lock"
        self.instance = self.path / "instance.json"
        self.log = self.path / "log"
        self._elsewhere = self.path / "engines"

    # -- where the engines live ---------------------------------------------------------------

    @property
    def engines(self) -> Path:
        """The folder that holds the engines' own folders."""
        try:
            return Path(self._elsewhere.read_text().strip())
        except OSError:
            return self.path

    @property
    def postgres(self) -> Path:
        return self.engines / "postgres"

    @property
    def redis(self) -> Path:
        return self.engines / "redis"

    @property
    def runtime(self) -> Path:
        return self.engines / "runtime"

    @property
    def run(self) -> Path:
        """The folder of the sockets."""
        inside = self.engines / "run"
        longest = inside / "postgres" / ".s.PGSQL.5432.lock"
        if len(os.fsencode(longest)) <= _LONGEST_SOCKET:
            return inside
        label = hashlib.sha256(os.fsencode(self.path)).hexdigest()[:12]
        return Path("/tmp") / f"svc-backend-{os.geteuid()}-{label}"

    @property
    def postgres_socket(self) -> Path:
        return self.run / "postgres"

    @property
    def redis_socket(self) -> Path:
        return self.run / "redis" / "redis.sock"

    @property
    def app_sockets(self) -> Path:
        """For the sockets between the proxy and the web and realtime processes."""
        return self.run / "app"

    @property
    def reports(self) -> Path:
        """For what was restarted (``backend.kernel.process.restart_report``)."""
        return self.app_sockets / "reports"

    @property
    def database_url(self) -> str:
        """libpq's form of an address on a socket."""
        return f"postgresql:///{DATABASE}?user={USER}&host={quote(str(self.postgres_socket))}"

    @property
    def redis_url(self) -> str:
        return f"unix://{quote(str(self.redis_socket))}"

    # -- making it ------------------------------------------------------------------------------

    def prepare(self, user: str = "") -> Account:
        """Create the folder's parts; return the account that the engines run as."""
        try:
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
            status = self.path.stat()
            if os.geteuid() not in (0, status.st_uid):
                raise StartError(
                    f"The data folder {self.path} belongs to another account: start the service "
                    "as that account, or set DATA_DIR to a folder of your own."
                )
            account = engine_account(self.postgres, user)
            self._choose_engines(account)
            self._make(account)
        except OSError as error:
            raise StartError(unusable(self.path, error)) from error
        return account

    def _choose_engines(self, account: Account) -> None:
        if account.is_self or self._elsewhere.exists():
            return
        if account.can_reach(self.path.parent):
            self.path.chmod(0o711)
            return
        place = ELSEWHERE / secrets.token_hex(6)
        place.mkdir(parents=True)
        ELSEWHERE.chmod(0o711)
        place.chmod(0o711)
        if not account.can_reach(place):
            raise StartError(
                f"The account that runs PostgreSQL can reach neither {self.path} nor {place}: set "
                "DATA_DIR to a folder that other accounts may enter."
            )
        self._elsewhere.write_text(f"{place}\n")

    def _make(self, account: Account) -> None:
        self.log.mkdir(exist_ok=True, mode=0o700)
        run = self.run
        run.mkdir(exist_ok=True, mode=0o700)
        # It may be in a folder where all accounts may make theirs, and links to other folders.
        status = run.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
            raise StartError(f"The folder for sockets {run} belongs to another account: remove it.")
        run.chmod(0o700 if account.is_self else 0o711)
        self.app_sockets.mkdir(exist_ok=True, mode=0o700)
        self.reports.mkdir(exist_ok=True, mode=0o700)
        for folder in (self.redis, self.postgres_socket, self.redis_socket.parent):
            folder.mkdir(exist_ok=True, mode=0o700)
            account.own(folder)
        if not account.is_self:
            self.runtime.mkdir(exist_ok=True)
            self.runtime.chmod(0o755)
            for folder in (self.redis, self.postgres):
                _give(folder, account)

    def forget(self) -> None:
        """Remove what only a running instance needs. The data stays."""
        self.instance.unlink(missing_ok=True)
        shutil.rmtree(self.run, ignore_errors=True)

    def remove(self) -> None:
        """Remove all of it, the engines' data included."""
        engines = self.engines
        shutil.rmtree(self.run, ignore_errors=True)
        if engines != self.path:
            shutil.rmtree(engines, ignore_errors=True)
        shutil.rmtree(self.path, ignore_errors=True)

    # -- who runs -------------------------------------------------------------------------------

    @contextlib.contextmanager
    def hold(self) -> Iterator[int]:
        """Hold the folder's lock. Children may inherit it by its number, and hold it with us."""
        try:
            number = os.open(self.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StartError(unusable(self.path, error)) from error
        try:
            patience = time.monotonic() + _STOPPING
            while not _locked(number):
                running = self.running()
                if running is not None:
                    raise StartError(
                        f"An instance is already running with the data folder {self.path} "
                        f"(process {running['pid']}, {running['address']})."
                    )
                if time.monotonic() > patience:
                    raise StartError(f"Another start holds the data folder {self.path}.")
                time.sleep(0.1)
            yield number
        finally:
            os.close(number)

    def running(self) -> dict[str, Any] | None:
        """The running instance's record, or None. Another account than the instance's, which can't
        see the lock, goes by the number of the process."""
        try:
            record = json.loads(self.instance.read_text())
            is_there = _exists(record["pid"]) and self._is_held()
        except (OSError, ValueError, KeyError, TypeError, OverflowError):
            return None
        return record if is_there else None

    def _is_held(self) -> bool:
        try:
            number = os.open(self.lock, os.O_RDONLY | os.O_CLOEXEC)
        except PermissionError:
            return True
        try:
            # Shared, so that two that look at the same time don't see each other.
            return not _locked(number, fcntl.LOCK_SH)
        finally:
            os.close(number)

    def record(self, **facts: Any) -> None:
        """Write down the running instance, for ``running``."""
        fresh = self.instance.with_suffix(".new")
        with private_file(fresh) as file:
            json.dump(facts, file, indent=1)
        fresh.replace(self.instance)


@contextlib.contextmanager
def temporary_folder(prefix: str = "svc-backend-") -> Iterator[DataFolder]:
    """A data folder for one test run; removed with all that is in it."""
    folder = DataFolder(Path(tempfile.mkdtemp(prefix=prefix)))
    try:
        yield folder
    finally:
        folder.remove()


@contextlib.contextmanager
def private_file(path: Path) -> Iterator[Any]:
    """A new text file that only its owner can read, on the disk when the block ends."""
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(number, "w") as file:
        os.fchmod(number, 0o600)
        yield file
        file.flush()
        os.fsync(number)


def sync_folder(path: Path) -> None:
    """Have the names in a folder on the disk, such as that of a file that was renamed."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _exists(pid: int) -> bool:
    with contextlib.suppress(PermissionError):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
    return True


def _locked(number: int, how: int = fcntl.LOCK_EX) -> bool:
    try:
        fcntl.flock(number, how | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _give(folder: Path, account: Account) -> None:
    """Hand a folder and its contents to the account, as after a copy made by root."""
    if not folder.exists() or folder.stat().st_uid == account.uid:
        return
    for path in (folder, *folder.rglob("*")):
        os.chown(path, account.uid, account.gid, follow_symlinks=False)


def unusable(path: Path, error: OSError) -> str:
    """Why nothing can be kept at the path, as one sentence."""
    reasons = {
        errno.ENOSPC: "there is no space left on its disk",
        errno.EDQUOT: "the disk quota is used up",
        errno.EROFS: "its file system is read-only",
        errno.EACCES: "this account may not write there",
        errno.EPERM: "this account may not change it",
        errno.ENOTDIR: "a part of its path is a file",
        errno.EEXIST: "it is a file, not a folder",
    }
    reason = reasons.get(error.errno or 0, error.strerror or "unknown reason")
    return f"The data folder {path} can't be used: {reason}. DATA_DIR may name another one."
