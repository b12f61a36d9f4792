"""An index of subscriptions by the values that their queries require.

A query is indexed by *guards*: pairs of a path and a value. Every object that the query matches has
one of these values at its path. ``where {"room": "a"}`` has one guard, ``$in`` has one for each
value. A query without guards is indexed by a *range* of values at a path if it has comparisons,
and otherwise tested for every change of its class. The index only excludes: its candidates have to
be matched.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Final, Generic, TypeAlias, TypeVar

from backend.kernel.json_types import Json
from objects.core.query.paths import Object, comparables, elements
from objects.core.query.tree import AllOf, AnyOf, Compare, Path, Query
from objects.core.values import FieldKind, kind
from realtime.core.intervals import Intervals

Guard: TypeAlias = tuple[Path, Hashable]

MAX_GUARDS: Final = 100
"""A query that would need more is tested for every change."""

MAX_EXAMINED: Final = 100_000
"""Elements of an object's lists, over all paths; beyond it, each query on a path is a candidate."""

S = TypeVar("S", bound=Hashable)


class SubscriptionIndex(Generic[S]):
    """The subscriptions of one class, each with its query."""

    def __init__(self) -> None:
        self._guarded: dict[Path, dict[Hashable, dict[S, None]]] = {}
        self._ranged: dict[Path, dict[FieldKind, Intervals[S]]] = {}
        self._others: dict[S, None] = {}
        self._guards: dict[S, frozenset[Guard] | Range | None] = {}

    def __len__(self) -> int:
        return len(self._guards)

    def __iter__(self) -> Iterator[S]:
        return iter(self._guards)

    def add(self, subscription: S, query: Query) -> None:
        """Add a subscription, or replace the query of an existing one."""
        self.remove(subscription)
        entry: frozenset[Guard] | Range | None = guards(query)
        if entry is None:
            entry = _range_of(query)
        self._guards[subscription] = entry
        if entry is None:
            self._others[subscription] = None
        elif isinstance(entry, Range):
            kinds = self._ranged.setdefault(entry.path, {})
            kinds.setdefault(entry.kind, Intervals()).add(subscription, entry.low, entry.high)
        else:
            for path, token in entry:
                self._guarded.setdefault(path, {}).setdefault(token, {})[subscription] = None

    def remove(self, subscription: S) -> None:
        """Remove a subscription, if it exists."""
        entry = self._guards.pop(subscription, None)
        self._others.pop(subscription, None)
        if isinstance(entry, Range):
            kinds = self._ranged[entry.path]
            kinds[entry.kind].remove(subscription)
            if not kinds[entry.kind]:
                del kinds[entry.kind]
                if not kinds:
                    del self._ranged[entry.path]
            return
        for path, token in entry or ():
            tokens = self._guarded[path]
            del tokens[token][subscription]
            if not tokens[token]:
                del tokens[token]
                if not tokens:
                    del self._guarded[path]

    def candidates(self, *images: Object) -> list[S]:
        """Return the subscriptions that may match one of these images of an object, each once."""
        matches = dict(self._others)
        examined = 0
        for path, tokens in self._guarded.items():
            if examined > MAX_EXAMINED:
                for subscriptions in tokens.values():
                    matches.update(subscriptions)
                continue
            for image in images:
                for value in comparables(image, path):
                    examined += 1
                    subscribers = tokens.get(_token(value))
                    if subscribers is not None:
                        matches.update(subscribers)
        for path, kinds in self._ranged.items():
            if examined > MAX_EXAMINED:
                for intervals in kinds.values():
                    matches.update(dict.fromkeys(intervals))
                continue
            for image in images:
                values = list(elements(image, path))
                examined += len(values)
                matches.update(dict.fromkeys(_in_range(kinds, values)))
        return list(matches)


def _in_range(kinds: dict[FieldKind, Intervals[S]], values: list[Json]) -> Iterator[S]:
    if len(values) > 1:
        # One element of a list may be above the lower end and another below the upper end.
        for intervals in kinds.values():
            yield from intervals
    for value in values if len(values) == 1 else ():
        value_kind = kind(value)
        if value_kind is not None and value_kind in kinds:
            yield from kinds[value_kind].containing(_token(value))


def guards(query: Query) -> frozenset[Guard] | None:
    """Return pairs of which every matching object has at least one, or None."""
    if isinstance(query, AllOf):
        alternatives = [
            part_guards for part_guards in map(guards, query.parts) if part_guards is not None
        ]
        return min(alternatives, key=_worth) if alternatives else None
    if isinstance(query, AnyOf):
        return _of_any(query)
    required = query.required_values()
    return None if required is None else _of_values(*required)


@dataclass(frozen=True, slots=True)
class Range:
    """A condition of a query: a value of this kind between these ends at the path, or several
    elements. An end that is None is open."""

    path: Path
    kind: FieldKind
    low: Any
    high: Any


def _range_of(query: Query) -> Range | None:
    """Return the most selective range, or None if the query has no comparisons."""
    parts = query.parts if isinstance(query, AllOf) else (query,)
    ranges: dict[tuple[Path, FieldKind], Range] = {}
    for part in parts:
        if not isinstance(part, Compare):
            continue
        value_kind = kind(part.value)
        assert value_kind is not None
        end = _token(part.value)
        value_range = ranges.get((part.path, value_kind), Range(part.path, value_kind, None, None))
        is_low = part.op in ("gt", "gte")
        value_range = replace(value_range, low=end) if is_low else replace(value_range, high=end)
        ranges[part.path, value_kind] = value_range
    return max(
        ranges.values(),
        key=lambda candidate: (candidate.low is not None) + (candidate.high is not None),
        default=None,
    )


def _of_values(path: Path, values: Sequence[Json]) -> frozenset[Guard] | None:
    if len(values) > MAX_GUARDS or any(value is None for value in values):
        return None
    return frozenset((path, _token(value)) for value in values)


def _of_any(query: AnyOf) -> frozenset[Guard] | None:
    combined: set[Guard] = set()
    for part in query.parts:
        part_guards = guards(part)
        if part_guards is None or len(combined) + len(part_guards) > MAX_GUARDS:
            return None
        combined |= part_guards
    return frozenset(combined)


def _worth(query_guards: frozenset[Guard]) -> tuple[int, int]:
    """Return a sort key: few guards are better, and values that many objects share are worse."""
    common = sum(isinstance(token, bool | _Kind) for _, token in query_guards)
    return (common, len(query_guards))


class _Kind:
    """A token shared by all values of a kind that the index doesn't distinguish."""

    def __init__(self, name: str) -> None:
        self.name = name


_LIST: Final = _Kind("list")
_OBJECT: Final = _Kind("object")
_EXACT: Final = 2**53


def _token(value: Any) -> Hashable:
    """Return a token that is the same for equal values (``objects.core.values.equal``).

    Files are compared by name. Different values may share a token.
    """
    if isinstance(value, str | int) or value is None:
        return value
    if isinstance(value, float):
        # Compared by its shortest decimal form, as numbers are; most floats here are whole.
        if value.is_integer() and -_EXACT < value < _EXACT:
            return int(value)
        return Decimal(repr(value))
    if isinstance(value, list):
        return _LIST
    name = value.get("__type")
    if name == "Pointer":
        return ("Pointer", _plain(value.get("className")), _plain(value.get("objectId")))
    if name == "Date":
        return ("Date", _plain(value.get("iso")))
    if name == "File":
        return ("File", _plain(value.get("name")))
    return _OBJECT


def _plain(value: Any) -> Hashable:
    return value if isinstance(value, str) else None
