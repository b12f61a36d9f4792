"""All processes of an instance, under ``script/server``.

``backend.operations.launcher.start`` starts this process and the engines, and answers its messages:

    this process  → launcher       the settings that it needs, once they are known to be right
    this process  → launcher       nothing, once the application is loaded
    launcher      → this process   the listening sockets, once the engines run, and whether it
                                   prints to a terminal, has new keys to print, and waits for the
                                   first heartbeats
    this process  → launcher       what it prints, once the database is up to date
    this process  → launcher       if it waits for that: nothing once every process has sent its
                                   first heartbeat, or the reason why one doesn't start

The application is loaded while the engines start. Each message of this process may be a refusal
instead (``link.REFUSAL``), with the reason; it exits then.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from contextlib import suppress
from typing import Any

from backend.kernel.process.children import die_with_parent, name_this
from backend.logs import setup
from backend.operations.keys.instance import note_live_keys
from backend.operations.processes.banner import greeting
from backend.operations.processes.link import SMALL, TROUBLE, Closed, Link
from backend.operations.processes.preload import preload
from backend.operations.processes.supervisor import Role, Supervisor
from backend.settings.areas.processes import Processes


def begin(link: Link) -> Supervisor:
    """Load the application, make its roles and bring the database up to date. Return what runs the
    roles, when there is nothing left that could keep the processes from being forked."""
    from django.conf import settings

    link.send(
        {
            "binds": _binds(settings),
            "host": settings.LISTEN_HOST,
            "port": settings.PORT,
            "site": Processes.SITE_ADDRESS.read(),
            "address": settings.PUBLIC_URL,
            "profile": settings.PROFILE,
            "postgres": settings.EMBEDDED_POSTGRES,
            "redis": settings.EMBEDDED_REDIS,
        }
    )
    preload()
    link.send(None)
    setup.name_process("application")
    name_this("svc-application")
    answer, sockets = link.receive()
    roles = _make_roles(sockets)
    login = _prepare(link)
    link.send(
        greeting(
            settings,
            login,
            settings.DATA_FOLDER,
            new_keys=answer["new_keys"],
            is_terminal=answer["is_terminal"],
        )
    )

    def announce(trouble: str) -> None:
        if not trouble:
            note_live_keys()
        with suppress(Closed):
            link.send({TROUBLE: trouble} if trouble else None)
        link.close()

    if not answer["is_awaited"]:
        note_live_keys()
        link.close()
    return Supervisor(
        roles, settings.DATA_FOLDER.reports, announce=announce if answer["is_awaited"] else None
    )


def run(supervisor: Supervisor, link: Link) -> None:
    """Run the processes of all roles until SIGTERM. Returns in each of them when it has ended."""
    work = supervisor.run()
    if work is not None:
        link.close()
        work()


def _make_roles(sockets: list[socket.socket]) -> list[Role]:
    from django.conf import settings

    from backend.operations.processes.roles import ROLES, SMALL_ROLES, archive_role
    from backend.operations.wal_archive import process as wal_archive
    from backend.server import listeners

    listeners.inherit(dict(zip(_binds(settings), sockets, strict=True)))
    made = SMALL_ROLES if settings.PROFILE == SMALL else ROLES
    roles = [make() for make in made.values()]
    return [*roles, archive_role()] if wal_archive.is_on() else roles


def _binds(settings: Any) -> list[str]:
    return [*settings.WEB_BIND, settings.REALTIME_BIND, f"unix:{settings.REALTIME_HANDOFF}"]


def _prepare(link: Link) -> Any:
    """What ``manage.py prepare --json`` says, from a fork of this process. Ends this one if that
    fails, which has said why."""
    parent = os.getpid()
    reading, writing = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        # Neither works on, nor keeps the launcher waiting, when this process has been killed.
        link.close()
        die_with_parent(signal.SIGTERM, parent)
        os.close(reading)
        _prepare_in_fork(writing)
    os.close(writing)
    with os.fdopen(reading, "rb") as output:
        login_json = output.read()
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        sys.exit(f"Preparing the database was ended by {signal.Signals(-code).name}.")
    if code:
        sys.exit(code)
    return json.loads(login_json)


def _prepare_in_fork(output: int) -> None:
    status: Any = 1
    try:
        import manage
        from backend.operations.processes.roles import become

        become("manage")
        os.dup2(output, 1)
        # The former stream remembers whether its file could seek; a pipe can't.
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
        sys.argv = ["manage.py", "prepare", "--json"]
        manage.main()
        status = 0
    except SystemExit as end:
        status = end.code or 0
        if isinstance(status, str):
            print(status, file=sys.stderr)
            status = 1
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(status)
