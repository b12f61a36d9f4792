"""The steps of ``manage.py prepare``: migrations, and the first staff user of the admin."""

from __future__ import annotations

import json
import secrets
from pathlib import Path
from typing import Any, Final

from django.contrib.auth import get_user_model
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from backend.instance.folder import private_file
from backend.settings.areas.processes import Servers
from objects.changes import capture

FILE: Final = "admin.json"
"""In the data folder: the password of the first staff user, until it is changed."""

_NAME: Final = "admin"


def migrate(verbosity: int) -> None:
    """Apply the migrations that are due, and install the triggers that capture changes."""
    executor = MigrationExecutor(connection)
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        call_command("migrate", verbosity=max(verbosity - 1, 0), interactive=False)
    # A deployment may offer a model as a class whose table has been there before.
    capture.install()


def first_staff_user(folder: Path) -> dict[str, Any]:
    """The name and password of the staff user that was made here, as far as they still hold, and
    whether it was made now. The setting ``ADMIN_PASSWORD`` isn't repeated."""
    users = get_user_model()._default_manager
    file = folder / FILE
    try:
        login = json.loads(file.read_text())
    except (OSError, ValueError):
        login = None
    if not users.filter(is_staff=True, is_active=True).exists():
        password = Servers.ADMIN_PASSWORD.read()
        if password:
            users.create_superuser(_NAME, password=_strong(password))
            return {"username": _NAME, "password": None, "is_new": True}
        if login is None:
            login = {"username": _NAME, "password": secrets.token_urlsafe(12)}
            folder.mkdir(parents=True, exist_ok=True)
            with private_file(file) as out:
                json.dump(login, out)
        users.create_superuser(login["username"], password=login["password"])
        return login | {"is_new": True}
    if login is None:
        return {"username": None, "password": None, "is_new": False}
    is_valid = _is_valid(login)
    return login | {"is_new": False} | ({} if is_valid else {"password": None})


def remove_invalid_password(folder: Path) -> Path | None:
    """Remove the file with the first staff user's password if that password isn't valid any more.

    Returns the file that was removed, if any.
    """
    file = folder / FILE
    try:
        login = json.loads(file.read_text())
    except (OSError, ValueError):
        return None
    if _is_valid(login):
        return None
    file.unlink(missing_ok=True)
    return file


def _is_valid(login: dict[str, str]) -> bool:
    users = get_user_model()._default_manager
    user = users.filter(username=login["username"], is_staff=True).first()
    return user is not None and user.check_password(login["password"])


def _strong(password: str) -> str:
    try:
        validate_password(password)
    except ValidationError as error:
        raise CommandError(f"ADMIN_PASSWORD: {' '.join(error.messages)}") from None
    return password
