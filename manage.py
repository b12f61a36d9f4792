#!/usr/bin/env python3
"""Django's command line, with the service's settings and the engines that script/server runs."""

import os
import sys
from importlib.util import find_spec
from pathlib import Path

INTERRUPTED = 130
"""The exit code of what Ctrl-C has ended, as shells have it."""


def main() -> None:
    use_environment()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "backend.settings")
    from backend.embedded import pointers

    pointers.choose(sys.argv, os.environ)
    from django.core.management import execute_from_command_line
    from django.db import OperationalError
    from redis import ConnectionError

    try:
        execute_from_command_line(sys.argv)
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
    environment = Path(__file__).resolve().parent / ".venv"
    python = environment / "bin" / "python"
    if not python.exists() or environment.resolve() == Path(sys.prefix).resolve():
        sys.exit(
            "manage.py: Django isn't installed. Run script/manage, which installs it in .venv."
        )
    os.execv(python, [str(python), *sys.argv])


def unreachable(engine: str, variable: str, embedded: str, error: Exception) -> str:
    from django.conf import settings

    from backend.masking import mask_text

    if not getattr(settings, embedded):
        first_line = mask_text(str(error).strip().partition("\n")[0])
        return f"{engine} at {variable} can't be used: {first_line}"
    if settings.DATA_FOLDER.running() is None:
        return (
            f"{engine} isn't running: start script/server with DATA_DIR={settings.DATA_DIR}, "
            f"or set {variable}."
        )
    return f"The embedded {engine} doesn't answer; its log is in {settings.DATA_FOLDER.log}."


if __name__ == "__main__":
    main()
