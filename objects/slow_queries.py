"""Finds that took long, and the indexes that would have served them.

``store.find`` says how long each took. Of those over ``SLOW_QUERY`` milliseconds the fields are
counted, in Redis, by which a range, an order, a place or a text was asked for without an index that
serves it. Equality needs none: every class has an index for it. Values are never kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from time import time
from typing import Final, Literal

import redis
from django.conf import settings

from backend.conf import service_settings
from backend.logs import get_logger
from backend.redis_clients import asking_once
from objects.core.names import FieldName, is_field_name
from objects.core.query import (
    Compare,
    Matches,
    Near,
    OrderKey,
    Query,
    Text,
    WithinBox,
    WithinPolygon,
    WithinSphere,
    walk,
)
from objects.core.values import Json
from objects.tables import ClassTable

Use = Literal["range", "order", "place", "text"]
_ORDERED: Final = frozenset({"String", "Number", "Boolean", "Date"})
_PLACES: Final = frozenset({"GeoPoint", "Polygon"})
_KEPT: Final = 14 * 86_400  # seconds
_PATIENCE: Final = 0.25  # seconds
_ALWAYS_INDEXED: Final = frozenset({"objectId", "createdAt"})

log = get_logger("slow_queries")


@dataclass(frozen=True, slots=True)
class Advice:
    """A field that slow queries asked for, and the index that would serve them."""

    field: str
    uses: tuple[Use, ...]
    queries: int
    seconds: float
    latest: float
    direction: Json


def note(table: ClassTable, where: Query, order: Sequence[OrderKey], seconds: float) -> None:
    """Take note of a find, if it was slow. Never raises: nobody's request depends on it."""
    milliseconds = round(seconds * 1000)
    if not 0 < service_settings.SLOW_QUERY <= milliseconds:
        return
    wanted = sorted(set(unserved(table, where, order)))
    log.warning(
        "a slow query",
        class_name=table.class_name,
        duration_ms=milliseconds,
        without_index=[f"{use} {name}" for use, name in wanted],
    )
    if not wanted:
        return
    key = _key(table)
    try:
        with _client().pipeline(transaction=False) as pipe:
            for use, name in wanted:
                pipe.hincrby(key, f"n {use} {name}", 1)
                pipe.hincrby(key, f"ms {use} {name}", milliseconds)
                pipe.hset(key, f"at {use} {name}", str(int(time())))
            pipe.expire(key, _KEPT)
            pipe.execute()
    except (redis.RedisError, OSError):
        return


def unserved(
    table: ClassTable, where: Query, order: Sequence[OrderKey]
) -> Iterator[tuple[Use, str]]:
    """What a query asks for without an index: how, and of which field."""
    for name in (key.path[0] for key in order[:1] if len(key.path) == 1):
        if _kind(table, name) in _ORDERED and not is_served(table, "order", name):
            yield "order", name
    for node in walk(where):
        path = getattr(node, "path", None)
        if not path or len(path) != 1:
            continue
        use = _use(node)
        if use is not None and _fits(table, use, path[0]) and not is_served(table, use, path[0]):
            yield use, path[0]


def _use(node: Query) -> Use | None:
    if isinstance(node, Compare) or (isinstance(node, Matches) and node.pattern.startswith("^")):
        return "range"
    if isinstance(node, Near | WithinBox | WithinPolygon | WithinSphere):
        return "place"
    return "text" if isinstance(node, Text) else None


def _fits(table: ClassTable, use: Use, name: FieldName) -> bool:
    kind = _kind(table, name)
    if use == "place":
        return kind in _PLACES
    return kind == "String" if use == "text" else kind in _ORDERED


def _kind(table: ClassTable, name: FieldName) -> str | None:
    field = table.schema.field_type(name)
    return field.kind if field else None


def is_served(table: ClassTable, use: Use, name: str) -> bool:
    """Whether an index of the class begins with this field, for this use."""
    if use in ("range", "order") and name in _ALWAYS_INDEXED:
        return True
    if name in table.columns:
        return True  # a model has its own indexes; what they serve isn't known here
    wanted = {"place": ("2dsphere",), "text": ("text",)}.get(use, (1, -1))
    for index in table.schema.index_declarations.values():
        fields = index.fields if use == "text" else index.fields[:1]
        if any(field == name and direction in wanted for field, direction in fields):
            return True
    return False


def advice(table: ClassTable) -> list[Advice] | None:
    """The fields of slow queries that still have no index, the costliest first.

    None if nobody knows: Redis is away.
    """
    try:
        kept: dict[bytes, bytes] = _client().hgetall(_key(table))  # type: ignore[assignment]
    except (redis.RedisError, OSError):
        return None
    counts = {key.decode(): int(value) for key, value in kept.items()}
    by_field: dict[tuple[str, str], list[Use]] = {}
    uses: tuple[Use, ...] = ("range", "order", "place", "text")
    for use in uses:
        for key in counts:
            what, of, name = key.split(" ", 2)
            if what != "n" or of != use or not is_field_name(name) or not _fits(table, use, name):
                continue
            if not is_served(table, use, name):
                direction = {"place": "2dsphere", "text": "text"}.get(use, "1")
                by_field.setdefault((name, direction), []).append(use)
    found = [
        Advice(
            name,
            tuple(of),
            max(counts[f"n {use} {name}"] for use in of),
            max(counts.get(f"ms {use} {name}", 0) for use in of) / 1000,
            max(counts.get(f"at {use} {name}", 0) for use in of),
            direction,
        )
        for (name, direction), of in by_field.items()
    ]
    return sorted(found, key=lambda one: -one.seconds)


def _key(table: ClassTable) -> str:
    return f"slow-queries:{table.class_id}"


@lru_cache(maxsize=1)
def _client() -> redis.Redis:
    return asking_once(settings.REDIS_URL, _PATIENCE)
