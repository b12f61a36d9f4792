"""Events of apps: a client key reports them, the master key counts them.

An event is a name, a time and a few texts that classify it (``dimensions``). Events
are kept one by one for ``EVENT_RETENTION`` days, ``EVENT_LIMIT`` of them at most (``retention``).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from django.db.models import Count, F, Func, TextField, Value
from django.db.models.functions import Now, TruncDate

from backend.kernel.errors import (
    IncorrectType,
    InvalidEventName,
    InvalidJSON,
    InvalidQuery,
    MasterKeyRequired,
    OperationForbidden,
)
from backend.kernel.json_types import Wire
from backend.kernel.principal import Principal
from backend.kernel.texts.shown import shown
from objects.analytics.models import Event
from objects.core.names import is_storable_text
from objects.core.values import normalise_date
from objects.database import maintenance
from objects.database.orm import orm_queries

MOST_DIMENSIONS: Final = 8
LONGEST_NAME: Final = 128  # characters, also of a dimension
LONGEST_VALUE: Final = 256
MOST_COUNTS: Final = 10_000

_ASKED: Final = frozenset({"since", "until", "dimension"})
_USUAL_SPAN: Final = timedelta(days=30)
_LONGEST_SPAN: Final = timedelta(days=366)


@maintenance.reported_first
def record(principal: Principal, name: str, body: Mapping[str, Any]) -> None:
    """Keep one event. ``body`` is ``{"at"?: Date, "dimensions"?: {text: text}}``.

    What else SDKs send with it is passed over. Raises ``UnderMaintenance``, ``InvalidEventName``,
    ``InvalidJSON``, ``IncorrectType``, and ``OperationForbidden`` for the read-only master key.
    """
    if principal.is_master and not principal.may_write_as_master:
        raise OperationForbidden("read-only masterKey isn't allowed to report events.")
    _check_name(name)
    at = _time(body.get("at"))
    dimensions = _dimensions(body.get("dimensions"))
    with orm_queries(), maintenance.writing():
        now = Now()
        Event.objects.create(
            name=name,
            dimensions=dimensions,
            at=now if at is None else datetime.fromisoformat(at),
            received_at=now,
        )


def counts(principal: Principal, name: str | None, params: Mapping[str, Any]) -> list[Wire]:
    """How many events there were on each day (UTC), newest day first, then the most frequent.

    Of one name or, for None, of each: ``{"day", "name", "count"}``. With ``dimension`` also by its
    ``value``, null for events without it. ``since`` and ``until`` (ISO 8601, until excluded) are
    the last 30 days unless they are given, and at most 366 days apart. At most ``MOST_COUNTS``
    come back. Raises ``MasterKeyRequired``, ``InvalidQuery``.
    """
    if not principal.has_master_key:
        raise MasterKeyRequired
    for parameter in params.keys() - _ASKED:
        raise InvalidQuery(f"Invalid parameter for query: {shown(parameter)}")
    since, until = _span(params.get("since"), params.get("until"))
    dimension = params.get("dimension")
    if dimension is not None and not isinstance(dimension, str):
        raise InvalidQuery("dimension: expected the name of a dimension")
    events = Event.objects.filter(at__gte=since, at__lt=until)
    if name is not None:
        events = events.filter(name=name)
    # Not a lookup of the field: Django reads the key "1" as the index of an array.
    value = Func(
        F("dimensions"),
        Value(dimension),
        function="jsonb_extract_path_text",
        output_field=TextField(),
    )
    with orm_queries():
        days = [
            *events.annotate(
                day=TruncDate("at", tzinfo=UTC),
                value=Value(None, TextField()) if dimension is None else value,
            )
            .values_list("day", "name", "value")
            .annotate(count=Count("*"))
            .order_by("-day", "-count", "name", "value")[:MOST_COUNTS]
        ]
    return [
        {
            "day": day.isoformat(),
            "name": event,
            **({} if dimension is None else {"value": value_}),
            "count": count,
        }
        for day, event, value_, count in days
    ]


def _check_name(name: str) -> None:
    if not name.strip() or len(name) > LONGEST_NAME or not _is_plain(name):
        raise InvalidEventName(
            f"Invalid event name: {shown(name)}. It has 1 to {LONGEST_NAME} printable characters."
        )


def _is_plain(text: str) -> bool:
    return text.isprintable() and is_storable_text(text)


def _time(value: object) -> str | None:
    if value is None:
        return None
    if isinstance(value, dict) and value.get("__type") == "Date":
        value = value.get("iso")
    return normalise_date(value, "at")


def _dimensions(dimensions: object) -> dict[str, str]:
    if dimensions is None:
        return {}
    if not isinstance(dimensions, dict):
        raise InvalidJSON("dimensions: expected an object")
    if len(dimensions) > MOST_DIMENSIONS:
        raise InvalidJSON(f"dimensions: an event has at most {MOST_DIMENSIONS} of them")
    for name, value in dimensions.items():
        if not name or len(name) > LONGEST_NAME or not _is_plain(name):
            raise InvalidJSON(
                f"dimensions: a name has 1 to {LONGEST_NAME} printable characters: {shown(name)}"
            )
        if not isinstance(value, str) or not is_storable_text(value):
            raise IncorrectType(f"dimensions.{shown(name)}: expected text")
        if len(value) > LONGEST_VALUE:
            raise InvalidJSON(f"dimensions.{shown(name)}: longer than {LONGEST_VALUE} characters")
    return dimensions


def _span(since: object, until: object) -> tuple[datetime, datetime]:
    end = _moment(until, "until") or datetime.now(UTC) + timedelta(days=1)
    begin = _moment(since, "since") or end - _USUAL_SPAN
    if not timedelta(0) <= end - begin <= _LONGEST_SPAN:
        raise InvalidQuery(f"since, until: expected up to {_LONGEST_SPAN.days} days, in this order")
    return begin, end


def _moment(value: object, place: str) -> datetime | None:
    if value is None:
        return None
    try:
        return datetime.fromisoformat(normalise_date(value, place))
    except IncorrectType as error:
        raise InvalidQuery(error.message) from None
