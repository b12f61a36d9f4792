"""An engine that takes long to start is waited for, while it says that it is starting."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from backend.instance.account import Account
from backend.instance.errors import StartError
from backend.instance.folder import DataFolder
from backend.operations.embedded.binaries import POSTGRES_MAJOR, Binaries
from backend.operations.embedded.postgres import PostgreSQL

LIMIT = 0.5  # seconds
SERVER = """\
#!{python}
import os, signal, sys, time
signal.signal(signal.SIGINT, lambda number, frame: sys.exit(0))
place = sys.argv[sys.argv.index("-D") + 1]
def say(state):
    lines = [str(os.getpid()), *[""] * 6, state, ""]
    with open(place + "/postmaster.pid.new", "w") as file:
        file.write("\\n".join(lines))
    os.rename(place + "/postmaster.pid.new", place + "/postmaster.pid")
say({state!r})
while not os.path.exists(place + "/recovered"):
    time.sleep(0.01)
say("ready")
signal.pause()
"""


def server(folder: DataFolder, state: str) -> PostgreSQL:
    """A server that says this about itself until there is a file ``recovered`` in its folder."""
    folder.prepare()
    folder.postgres.mkdir(exist_ok=True)
    folder.postgres.chmod(0o700)
    os.chown(folder.postgres, os.geteuid(), os.getegid())
    (folder.postgres / "PG_VERSION").write_text(f"{POSTGRES_MAJOR}\n")
    program = folder.path / "postgres-program"
    program.write_text(SERVER.format(python=sys.executable, state=state))
    program.chmod(0o755)
    binaries = Binaries(program, program, Path("/nowhere"))
    return PostgreSQL(folder, Account(os.geteuid(), os.getegid()), binaries, patience=LIMIT)


def test_a_server_that_is_recovering_is_waited_for_beyond_the_limit(folder: DataFolder) -> None:
    postgres = server(folder, "starting")
    begin = time.monotonic()

    def recover_late() -> None:
        if time.monotonic() > begin + 2 * LIMIT:
            (folder.postgres / "recovered").touch()

    postgres.on_idle = recover_late
    postgres.start()
    assert time.monotonic() > begin + 2 * LIMIT
    assert postgres.is_alive
    postgres.stop()


def test_a_server_that_says_nothing_is_ended_after_the_limit(folder: DataFolder) -> None:
    postgres = server(folder, "")
    with pytest.raises(StartError, match="said nothing for"):
        postgres.start()
    assert not postgres.is_alive
