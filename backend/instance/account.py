"""Which system account the engines run as.

PostgreSQL refuses to run as root. When the service is started by root, the engines run as an
unprivileged account: the owner of the data that is already there, else ``ENGINE_USER``, else
``nobody``. Other accounts run the engines as themselves.
"""

from __future__ import annotations

import os
import pwd
import stat
from dataclasses import dataclass
from pathlib import Path

from backend.instance.errors import StartError

DEFAULT_USER = "nobody"


@dataclass(frozen=True, slots=True)
class Account:
    """A system account, by number. ``is_self`` when no change of identity is needed."""

    uid: int
    gid: int

    @property
    def is_self(self) -> bool:
        return self.uid == os.geteuid()

    def can_reach(self, path: Path) -> bool:
        """Whether ``path``, if it exists, and every folder above it let the account pass."""
        if self.is_self:
            return True
        path = path.resolve()
        return all(self._may(folder, 0o1) for folder in (path, *path.parents) if folder.exists())

    def can_read(self, path: Path) -> bool:
        """Whether the account may read the file or list and enter the folder."""
        permission = 0o5 if path.is_dir() else 0o4
        return self.can_reach(path.parent) and self._may(path, permission)

    def _may(self, path: Path, permission: int) -> bool:
        try:
            status = path.stat()
        except OSError:
            return False
        mode = stat.S_IMODE(status.st_mode)
        if status.st_uid == self.uid:
            mode >>= 6
        elif status.st_gid == self.gid:
            mode >>= 3
        return mode & permission == permission

    def own(self, path: Path) -> None:
        """Give the file or folder to the account."""
        if not self.is_self:
            os.chown(path, self.uid, self.gid)


def engine_account(data: Path, user: str = "") -> Account:
    """The account for engines whose data is (or will be) at ``data``."""
    if os.geteuid() != 0:
        return Account(os.geteuid(), os.getegid())
    if data.exists():
        status = data.stat()
        if status.st_uid != 0:
            return Account(status.st_uid, status.st_gid)
    try:
        entry = pwd.getpwnam(user or DEFAULT_USER)
    except KeyError:
        raise StartError(
            f"PostgreSQL doesn't run as root and there is no account {user or DEFAULT_USER!r} on "
            "this machine: set ENGINE_USER to an unprivileged account."
        ) from None
    if entry.pw_uid == 0:
        raise StartError("ENGINE_USER is root, but PostgreSQL doesn't run as root.")
    return Account(entry.pw_uid, entry.pw_gid)
