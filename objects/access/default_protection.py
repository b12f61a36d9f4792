"""The setting ``PROTECTED_FIELDS``, as class permissions know it."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed

from backend.settings.conf import service_settings
from objects.core.access.class_permissions import set_default_protection
from objects.core.names import FieldName
from objects.definitions import registry


def install() -> None:
    """Apply the setting, now and after ``override_settings``. Call it in ``AppConfig.ready``."""
    _apply()
    setting_changed.connect(_on_change)


def _apply() -> None:
    # The names were checked where the setting was read.
    set_default_protection(
        {
            class_name: {group: frozenset(map(FieldName, names)) for group, names in groups.items()}
            for class_name, groups in service_settings.PROTECTED_FIELDS.items()
        }
    )
    # Classes in memory were read with the former defaults.
    registry.forget_all()


def _on_change(*, setting: str, **kwargs: Any) -> None:
    if setting == "SERVICE":
        with suppress(ImproperlyConfigured):  # raised where the settings are read
            _apply()
