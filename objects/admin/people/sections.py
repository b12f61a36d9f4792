"""Sections of other applications on the page of a user."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from django.http import HttpRequest

MOST: Final = 50
"""Rows that a section shows."""


@dataclass(frozen=True, slots=True)
class Section:
    """A table with a heading; ``rows`` have a text for each of the ``columns``."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


_Maker = Callable[[str], Section]
_makers: list[tuple[str, _Maker]] = []


def user_section(permission: str) -> Callable[[_Maker], _Maker]:
    """Register a section for the page of a user, for staff with the permission."""

    def register(maker: _Maker) -> _Maker:
        _makers.append((permission, maker))
        return maker

    return register


def sections(request: HttpRequest, user_id: str) -> list[Section]:
    """Return the sections that the staff user may see, with their first ``MOST`` rows."""
    sections_of_user = [make(user_id) for needed, make in _makers if request.user.has_perm(needed)]
    return [
        Section(section.title, section.columns, section.rows[:MOST]) for section in sections_of_user
    ]
