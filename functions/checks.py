"""System checks of functions for ``manage.py check --deploy``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.core.checks import CheckMessage, Warning

from functions.runtime.registry import registry
from objects.users.accounts.master_fields import is_master_only


def user_keys(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Warn about requirements on fields that users can write themselves."""
    return [
        Warning(
            f"{who} admits users by the values of _User.{name}, which users set themselves.",
            hint=f"Add {name} to MASTER_ONLY_USER_FIELDS, or use a role.",
            id="functions.W001",
        )
        for who, name in _self_service()
    ]


def _self_service() -> Iterator[tuple[str, str]]:
    handlers = [
        *(
            (f"The function {handler.name}", handler.requirements)
            for handler in registry.functions.values()
        ),
        *(
            (f"The trigger {handler.event} of {handler.class_name}", handler.requirements)
            for handler in registry.triggers.values()
        ),
    ]
    for who, requirements in handlers:
        for name, allowed in requirements.user_keys.items():
            if allowed is not None and not is_master_only(name):
                yield who, name
