"""What one target gets of a push: its language's texts, and its badge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from backend.kernel.json_types import Json, Wire

_LOCALIZED_FIELDS: Final = ("alert", "title")


def locales_of(data: Mapping[str, Json]) -> tuple[str, ...]:
    """Return the languages of ``alert-LANG`` and ``title-LANG``, in the order of the body."""
    names = (key.split("-", 1) for key in data if key.startswith(("alert-", "title-")))
    return tuple(dict.fromkeys(locale for _, locale in names if locale))


def locale_of(locales: tuple[str, ...], identifier: Json) -> str:
    """Return the first language that an installation's ``localeIdentifier`` begins with, or ""."""
    if not isinstance(identifier, str):
        return ""
    return next((locale for locale in locales if identifier.startswith(locale)), "")


def payload_for(body: Wire, locale: str, badge: float | None) -> Wire:
    """Return the body of a push for a language, without other languages, with this badge.

    Without a badge the body's own stays.
    """
    data = body.get("data")
    if not isinstance(data, dict):
        return body
    own: Wire = {
        key: value for key, value in data.items() if not key.startswith(("alert-", "title-"))
    }
    for name in _LOCALIZED_FIELDS:
        text = data.get(f"{name}-{locale}") if locale else None
        if text:
            own[name] = text
    if badge is not None:
        own["badge"] = int(badge) if badge == int(badge) else badge
    return {**body, "data": own}
