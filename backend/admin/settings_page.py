"""The settings in the admin: what is set, where it comes from, and what a change needs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.urls import reverse
from django.utils.safestring import SafeString
from django.views.decorators.http import require_safe

from backend.admin import documentation
from backend.kernel.texts.redaction import is_sensitive, mask_text
from backend.settings import environment
from backend.settings.declaration import Setting
from backend.settings.documentation import bounds_of, default_of, sections
from backend.settings.environment import BadSetting
from backend.site.model_admin import page, render
from backend.site.search import Result, search_source

VIEW: Final = "backend.view_setting"
_URL: Final = re.compile(r"[a-z][a-z0-9+.-]*://[^\s,]+", re.IGNORECASE)
_LONGEST: Final = 500  # characters of a value


@dataclass(frozen=True, slots=True)
class Row:
    """A setting as the page shows it. ``value`` is "" for one that has its default."""

    name: str
    value: str
    default: SafeString
    origin: str
    documentation: SafeString
    is_secret: bool
    needs_restart: bool


@page(
    "settings/",
    name="settings",
    permission=VIEW,
    title="Settings",
    section="Operations",
    icon="settings",
    position=90,
)
@require_safe
def settings_page(request: HttpRequest) -> HttpResponseBase:
    """The settings that this deployment has set, or all, or those that contain a text."""
    text = request.GET.get("q", "").strip()[:100]
    shows_all = bool(text) or "all" in request.GET
    areas = []
    number_set = number = 0
    for title, declared in sections().items():
        rows = [_row(setting) for setting in declared]
        number += len(rows)
        number_set += sum(bool(row.origin) for row in rows)
        shown = [row for row in rows if (shows_all or row.origin) and _has(row, text)]
        if shown:
            areas.append((title, shown))
    return render(
        request,
        "admin/settings.html",
        "Settings",
        areas=areas,
        text=text,
        shows_all=shows_all,
        number=number,
        number_set=number_set,
        env_file=environment.env_file(settings.BASE_DIR / ".env"),
        has_documentation=documentation.is_there(),
    )


@search_source("Settings", icon="settings", position=70, permission=VIEW)
def search_settings(request: HttpRequest, text: str) -> Iterator[Result]:
    """Settings by their names and descriptions, never by their values."""
    link = reverse("admin:settings", query={"all": 1})
    for declared in sections().values():
        for setting in declared:
            detail = documentation.plain(setting.documentation)
            yield Result(setting.name, f"{link}#{setting.name}", detail)


def _has(row: Row, text: str) -> bool:
    # Not the value: a search would confirm a guess.
    return text.lower() in f"{row.name} {row.documentation}".lower()


def _row(setting: Setting[Any]) -> Row:
    origin = environment.origin(setting.name)
    is_secret = setting.secret or is_sensitive(setting.name)
    return Row(
        setting.name,
        _value(setting, is_secret=is_secret) if origin else "",
        documentation.inline(f"{default_of(setting)}{bounds_of(setting)}"),
        origin,
        documentation.inline(f"{setting.documentation}."),
        is_secret,
        setting.needs_restart,
    )


def _value(setting: Setting[Any], *, is_secret: bool) -> str:
    if is_secret:
        return "set; its value is never shown"
    try:
        value = setting.read()
    except BadSetting as error:
        return mask_text(str(error))
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, list | tuple | frozenset | set):
        value = ", ".join(map(str, value))
    return _URL.sub(_without_secrets, mask_text(str(value)))[:_LONGEST]


def _without_secrets(match: re.Match[str]) -> str:
    """Return a URL without the user and the query, which may be secret."""
    try:
        parts = urlsplit(match[0])
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "an unreadable URL"
    query = "?…" if parts.query else ""
    return f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path}{query}"
