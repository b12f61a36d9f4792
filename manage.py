#!/usr/bin/env python3
"""Django's command line, with the service's settings and the engines that script/server runs."""

import os
import select
import sys
from importlib.util import find_spec
from io import TextIOWrapper
from pathlib import Path

ROOT = Path(__file__).resolve().parent
INTERRUPTED = 130
"""Exit code of a command that Ctrl-C ended, as in shells."""
PIPE_CLOSED = 141
"""Exit code of a command whose output nothing reads any more, as in shells: 128 and SIGPIPE."""

OFFLINE_ARGUMENTS = ("-h", "--help", "--rest")
"""Arguments with which a command of the applications needs no database."""


def main() -> None:
    use_environment()
    write_any_text()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "backend.settings.django")
    # A container's variable names its role, whose time limits would end a backup or an index.
    if os.environ.get("PROCESS") != "test":
        os.environ["PROCESS"] = "manage"
    from backend.operations.launcher import pointers

    pointers.choose(sys.argv, os.environ)
    from django.core.management import execute_from_command_line
    from django.db import OperationalError
    from redis import ConnectionError

    try:
        try:
            check_database(sys.argv)
            execute_from_command_line(sys.argv)
        finally:
            sys.stdout.flush()  # here and not at the interpreter's end, which would print a warning
    except BrokenPipeError:
        if not has_closed_output():
            raise
        # The interpreter flushes both once more when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(PIPE_CLOSED)
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        sys.exit(INTERRUPTED)
    except OperationalError as error:
        sys.exit(unreachable("PostgreSQL", "DATABASE_URL", "EMBEDDED_POSTGRES", error))
    except ConnectionError as error:
        sys.exit(unreachable("Redis", "REDIS_URL", "EMBEDDED_REDIS", error))


def use_environment() -> None:
    """Start again with the Python of ``.venv`` if this one has no Django."""
    if find_spec("django") is not None:
        return
    environment = ROOT / ".venv"
    python = environment / "bin" / "python"
    if not python.exists() or environment.resolve() == Path(sys.prefix).resolve():
        sys.exit(
            "manage.py: Django isn't installed. Run script/manage, which installs it in .venv."
        )
    os.execv(python, [str(python), *sys.argv])


def write_any_text() -> None:
    """Let commands print texts of applications, which no encoding of a terminal may hold."""
    from backend.kernel.texts.encoding import REPLACING

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors=REPLACING)


def check_database(arguments: list[str]) -> None:
    """Connect to PostgreSQL if the command is runserver or one of the applications.

    Raises ``OperationalError``. The commands would take it for an error of a request, with another
    message or a traceback.
    """
    from django.db import connection

    names = {
        module.stem
        for application in ("objects", "functions", "chain")
        for module in (ROOT / application / "management" / "commands").glob("[a-z]*.py")
    }
    is_offline = any(argument.partition("=")[0] in OFFLINE_ARGUMENTS for argument in arguments[2:])
    # It checks the database itself, in a thread whose exceptions end as tracebacks.
    names.add("runserver")
    if len(arguments) > 1 and arguments[1] in names and not is_offline:
        connection.ensure_connection()
        # Receivers of connection_created aren't registered yet.
        connection.close()


def has_closed_output() -> bool:
    """Whether standard output is a pipe without a reader."""
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    return any(event & select.POLLERR for _, event in poll.poll(0))


def unreachable(engine: str, variable: str, embedded: str, error: Exception) -> str:
    from django.conf import settings

    from backend.kernel.texts.redaction import mask_text

    if not getattr(settings, embedded):
        first_line = mask_text(str(error).strip().partition("\n")[0])
        return f"{engine} at {variable} can't be used: {first_line}"
    if settings.DATA_FOLDER.running() is None:
        return (
            f"The service isn't running: start script/server with DATA_DIR={settings.DATA_DIR}, "
            f"or set {variable} to use another {engine}."
        )
    return f"The embedded {engine} doesn't answer; its log is in {settings.DATA_FOLDER.log}."


if __name__ == "__main__":
    main()
