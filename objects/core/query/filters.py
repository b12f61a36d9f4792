"""Filters of the admin's object table, declared by the operators that they use.

An operator lists the ``Filter`` entries that a form can offer for it. The admin sorts them, shows
them and reads what was entered (``objects.admin.grid.filters``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from backend.kernel.json_types import Json
from objects.core.values import FieldKind


class Entry(Protocol):
    """The text entered beside a filter, read as the operand needs it.

    Each member raises ``InvalidJSON`` if the text isn't such a value.
    """

    @property
    def text(self) -> str:
        """The text itself."""

    @property
    def pattern(self) -> str:
        """A regular expression that finds the text."""

    @property
    def value(self) -> Json:
        """A value of the field's kind."""

    @property
    def values(self) -> list[Json]:
        """Values of the field's kind, separated by commas."""

    @property
    def json(self) -> Json:
        """A JSON value; text that isn't JSON is a string."""

    @property
    def point(self) -> Json:
        """A GeoPoint, from ``latitude, longitude``."""

    @property
    def circle(self) -> tuple[Json, Json]:
        """A GeoPoint and kilometres, from ``latitude, longitude, kilometres``."""


@dataclass(frozen=True, slots=True)
class Filter:
    """A condition that a form offers for fields of some kinds.

    ``constraint`` returns the wire form of the constraint for the text entered. ``takes_value``
    is False for a filter without an input. ``hint`` describes the input's format.
    """

    key: str
    label: str
    kinds: tuple[FieldKind, ...]
    constraint: Callable[[Entry], Json]
    takes_value: bool = True
    hint: str = ""


ORDERED: Final[tuple[FieldKind, ...]] = ("String", "Number", "Date")
"""Kinds of fields that a form compares by size."""
