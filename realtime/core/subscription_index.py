"""Which subscriptions a change may concern, without looking at the others.

A query is kept under *guards*: pairs of a path and a value, so that an object which the query
finds has one of the values at its path. ``where {"room": "a"}`` has one guard, ``$in`` has one for
each value. Without guards it is kept under a *range* of values at a path, if it compares, and else
it is looked at for every change of its class. The index only leaves out: what it gives has to be
asked whether it matches.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Final, Generic, TypeAlias, TypeVar

from backend.kernel.json_types import Json
from objects.core.query.paths import Object, elements
from objects.core.query.tree import AllOf, AnyOf, Compare, Path, Query
from objects.core.values import FieldKind, kind
from realtime.core.intervals import Intervals

Guard: TypeAlias = tuple[Path, Hashable]

MAX_GUARDS: Final = 100
"""A query that would need more is looked at for every change."""

MAX_LOOKED_AT: Final = 100_000
"""Elements of an object's lists, over all paths; then all that ask about a path may find it."""

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
        """Keep a subscription; under another query, if it is there already."""
        self.remove(subscription)
        found: frozenset[Guard] | Range | None = guards(query)
        if found is None:
            found = _range_of(query)
        self._guards[subscription] = found
        if found is None:
            self._others[subscription] = None
        elif isinstance(found, Range):
            kinds = self._ranged.setdefault(found.path, {})
            kinds.setdefault(found.kind, Intervals()).add(subscription, found.low, found.high)
        else:
            for path, token in found:
                self._guarded.setdefault(path, {}).setdefault(token, {})[subscription] = None

    def remove(self, subscription: S) -> None:
        """Forget a subscription; nothing happens if it isn't there."""
        found = self._guards.pop(subscription, None)
        self._others.pop(subscription, None)
        if isinstance(found, Range):
            kinds = self._ranged[found.path]
            kinds[found.kind].remove(subscription)
            if not kinds[found.kind]:
                del kinds[found.kind]
                if not kinds:
                    del self._ranged[found.path]
            return
        for path, token in found or ():
            tokens = self._guarded[path]
            del tokens[token][subscription]
            if not tokens[token]:
                del tokens[token]
                if not tokens:
                    del self._guarded[path]

    def candidates(self, *images: Object) -> list[S]:
        """The subscriptions that may find one of these images of an object, each once."""
        found = dict(self._others)
        looked_at = 0
        for path, tokens in self._guarded.items():
            if looked_at > MAX_LOOKED_AT:
                for theirs in tokens.values():
                    found.update(theirs)
                continue
            for image in images:
                for value in elements(image, path):
                    looked_at += 1
                    hit = tokens.get(_token(value))
                    if hit is not None:
                        found.update(hit)
        for path, kinds in self._ranged.items():
            if looked_at > MAX_LOOKED_AT:
                for intervals in kinds.values():
                    found.update(dict.fromkeys(intervals))
                continue
            for image in images:
                values = list(elements(image, path))
                looked_at += len(values)
                found.update(dict.fromkeys(_in_range(kinds, values)))
        return list(found)


def _in_range(kinds: dict[FieldKind, Intervals[S]], values: list[Json]) -> Iterator[S]:
    if len(values) > 1:
        # Of a list one element may be above the lower end, and another one below the upper one.
        for intervals in kinds.values():
            yield from intervals
    for value in values if len(values) == 1 else ():
        its_kind = kind(value)
        if its_kind is not None and its_kind in kinds:
            yield from kinds[its_kind].at(_token(value))


def guards(query: Query) -> frozenset[Guard] | None:
    """Pairs of which every object has one that the query finds; None if there are none to name."""
    if isinstance(query, AllOf):
        found = [one for one in map(guards, query.parts) if one is not None]
        return min(found, key=_worth) if found else None
    if isinstance(query, AnyOf):
        return _of_any(query)
    required = query.required_values()
    return None if required is None else _of_values(*required)


@dataclass(frozen=True, slots=True)
class Range:
    """An object that the query finds has a value of this kind between these ends at the path, or
    several elements. An end that is None is open."""

    path: Path
    kind: FieldKind
    low: Any
    high: Any


def _range_of(query: Query) -> Range | None:
    """The range that tells most; None if the query doesn't compare."""
    parts = query.parts if isinstance(query, AllOf) else (query,)
    found: dict[tuple[Path, FieldKind], Range] = {}
    for part in parts:
        if not isinstance(part, Compare):
            continue
        its_kind = kind(part.value)
        assert its_kind is not None
        end = _token(part.value)
        known = found.get((part.path, its_kind), Range(part.path, its_kind, None, None))
        is_low = part.op in ("gt", "gte")
        known = replace(known, low=end) if is_low else replace(known, high=end)
        found[part.path, its_kind] = known
    return max(
        found.values(), key=lambda one: (one.low is not None) + (one.high is not None), default=None
    )


def _of_values(path: Path, values: Sequence[Json]) -> frozenset[Guard] | None:
    if len(values) > MAX_GUARDS or any(value is None for value in values):
        return None
    return frozenset((path, _token(value)) for value in values)


def _of_any(query: AnyOf) -> frozenset[Guard] | None:
    found: set[Guard] = set()
    for part in query.parts:
        one = guards(part)
        if one is None or len(found) + len(one) > MAX_GUARDS:
            return None
        found |= one
    return frozenset(found)


def _worth(found: frozenset[Guard]) -> tuple[int, int]:
    """The fewer guards the better; values that many objects share are worth little."""
    common = sum(isinstance(token, bool | _Kind) for _, token in found)
    return (common, len(found))


class _Kind:
    """Stands for all values that are not worth telling apart."""

    def __init__(self, name: str) -> None:
        self.name = name


_LIST: Final = _Kind("list")
_OBJECT: Final = _Kind("object")
_EXACT: Final = 2**53


def _token(value: Any) -> Hashable:
    """The same for values that are equal (``objects.core.values.equal``, files by their name).

    Others may share it.
    """
    if isinstance(value, str | int) or value is None:
        return value
    if isinstance(value, float):
        # Compared by its shortest spelling, as numbers are; most floats here are whole.
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
