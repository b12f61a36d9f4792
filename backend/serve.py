"""``python -m backend.serve ROLE``: the processes of one role, as the settings have it.

Roles: web, realtime, worker, jobs, chain, backfill, beat. Without an argument ``PROCESS`` says
which. ``WEB_BIND`` and ``REALTIME_BIND`` say where the servers listen: ``unix:/path/to.sock`` or
``host:port``, the first one also several of them. Handshakes of WebSockets that reach a web process
go on to the realtime process by ``REALTIME_HANDOFF``. ``all`` is what ``script/server`` starts.
"""

from __future__ import annotations

import faulthandler
import os
import sys

ROLES = ("web", "realtime", "worker", "jobs", "chain", "backfill", "beat")


def limit_memory() -> None:
    """Limit the memory of this process, so that code which asks for too much fails alone."""
    import resource

    from django.conf import settings

    if settings.MEMORY_LIMIT:
        size = settings.MEMORY_LIMIT * 1024 * 1024
        resource.setrlimit(resource.RLIMIT_DATA, (size, resource.RLIM_INFINITY))


def check_settings() -> None:
    """End the process with a sentence if a setting is wrong or names a server that can't be used.

    A role that starts while its Redis is away ends as well: what restarts it also retries.
    """
    from django.conf import settings

    from backend.kernel.connections.reachability import check_servers
    from backend.logs.setup import configure_from

    configure_from(settings.LOGGING)
    check_servers(settings)


def report_settings() -> None:
    """Log a warning for each variable that looks like a setting and isn't one."""
    from backend.logs.setup import get_logger
    from backend.settings import environment

    log = get_logger("settings")
    for problem, advice in environment.problems():
        log.warning(problem, advice=advice)


def main() -> None:
    role = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("PROCESS", "")
    if role not in (*ROLES, "all"):
        raise SystemExit(f"usage: python -m backend.serve {'|'.join(ROLES)}")
    faulthandler.enable()
    os.environ |= {
        "PROCESS": "web" if role == "all" else role,
        "DJANGO_SETTINGS_MODULE": "backend.settings.django",
    }
    if role == "all":
        serve_all()
    else:
        limit_memory()
        check_settings()
        report_settings()
        serve(role)


def serve_all() -> None:
    """Run the processes of all roles until SIGTERM, as a child of ``script/server``, which gets to
    know why they don't start."""
    from backend.operations.processes.link import Link

    link = Link.from_environment()
    if link is None:
        raise SystemExit("All roles are started by script/server.")
    try:
        limit_memory()
        check_settings()
        report_settings()
        from backend.operations.processes import instance

        supervisor = instance.begin(link)
    except BaseException as end:
        link.refuse(end)
        raise
    instance.run(supervisor, link)


def serve(role: str) -> None:
    """Run the processes of a role until SIGTERM. Servers, and a worker of several processes,
    have a supervisor of their own; others are one process, which ends when it fails."""
    if role == "web":
        import backend.wsgi  # noqa: F401 (sets Django up)
    else:
        import django

        django.setup()
    from backend.operations.keys.instance import note_live_keys
    from backend.operations.processes import roles
    from backend.operations.processes.supervisor import Supervisor
    from backend.server.listeners import inherit_from_systemd

    inherit_from_systemd()
    note_live_keys()
    made = roles.ROLES[role]()
    work = made.work
    if role == "web" or made.count > 1:
        assigned = Supervisor([made]).run()
        if assigned is None:
            return
        work = assigned
    work()


if __name__ == "__main__":
    main()
