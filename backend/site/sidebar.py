"""The sidebar of the admin: the pages of each section, and lists that the apps add.

``templates/unfold/helpers/app_list.html`` shows it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Final

from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse

from backend.site.model_admin import SECTIONS, ModelAdmin, Section, _pages


@dataclass(frozen=True, slots=True)
class SidebarList:
    """A list above the sections, with a template of its own.

    Each of the ``items`` has a ``title``, a ``link`` and what the template shows. ``context`` is
    for the template as well.
    """

    title: str
    template: str
    items: list[dict[str, Any]]
    context: dict[str, Any]


_MakeList = Callable[[HttpRequest], SidebarList | None]
_lists: Final[list[_MakeList]] = []


def sidebar_list(make: _MakeList) -> _MakeList:
    """Show the list that the function returns in the sidebar of every page; None is nothing.

    The function checks the permissions of the staff user itself. Its cost is part of every page.
    """
    _lists.append(make)
    return make


def navigation(request: HttpRequest) -> list[dict[str, Any]]:
    """Return the sidebar: the lists, then for each section the pages that this staff user may
    see."""
    lists = [asdict(made) for make in _lists if (made := make(request)) is not None]
    sections = page_sections(request)
    if any(item.get("active") for made in lists for item in made["items"]):
        # The page is an item of a list, which is more precise.
        for section in sections:
            section["items"] = [item | {"active": False} for item in section["items"]]
    return [*lists, *sections]


def page_sections(request: HttpRequest) -> list[dict[str, Any]]:
    """Return the pages that this staff user may see, by section."""
    entries: dict[Section, list[tuple[int, str, dict[str, Any]]]] = {name: [] for name in SECTIONS}
    for model, model_admin in admin.site._registry.items():
        if not isinstance(model_admin, ModelAdmin) or model_admin.section is None:
            continue
        if not model_admin.has_view_permission(request):
            continue
        meta = model._meta
        link = reverse(f"admin:{meta.app_label}_{meta.model_name}_changelist")
        title = model_admin.sidebar_title or str(meta.verbose_name_plural).capitalize()
        entry = _entry(title, model_admin.icon, link, model_admin.position)
        if request.path.startswith(model_admin.also_at):
            entry[2]["active"] = True
        entries[model_admin.section].append(entry)
    for page in _pages.values():
        if page.section is None:
            continue
        if page.permission is None or request.user.has_perm(page.permission):
            link = reverse(f"admin:{page.name}")
            entries[page.section].append(_entry(page.title, page.icon, link, page.position))
    return [
        {"title": name, "items": [entry for _, _, entry in sorted(items, key=_place)]}
        for name, items in entries.items()
        if items
    ]


def _entry(title: str, icon: str, link: str, position: int) -> tuple[int, str, dict[str, Any]]:
    return position, title, {"title": title, "icon": icon, "link": link}


def _place(entry: tuple[int, str, dict[str, Any]]) -> tuple[int, str]:
    return entry[0], entry[1]
