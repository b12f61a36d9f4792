"""The webhooks of a class, cached in every process with the definition of the class.

Changing a webhook increments the version of its class in the same transaction
(``registry.renew``), and the next statement of any process on the class detects that
(``docs/architecture.md``). Operations without such a statement (files, parameters of the app,
login, classes that don't exist yet) read the webhooks each time.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final, NamedTuple

from functions.webhooks import deliveries, synchronous_calls
from functions.webhooks.names import EVENTS, event_of
from objects.core.names import Subject, is_class_name
from objects.database.row_types import select_list
from objects.database.statements import fetch_rows
from objects.definitions.registry import current, find
from objects.triggers import Event, Handler

HandlersByEvent = Mapping[Event, tuple[Handler, ...]]

_KEY: Final = "webhooks"
_NONE: Final[HandlersByEvent] = {}
# These may change or reject the operation; the remaining events are delivered afterwards.
_SYNCHRONOUS: Final = frozenset(
    {
        *("before_save", "before_delete", "before_find", "after_find"),
        *("before_login", "before_password_reset"),
    }
)


def handlers(class_name: Subject, fresh: bool) -> HandlersByEvent:
    """Return the webhook handlers of a class by event, as a source for ``objects.triggers``."""
    table = find(class_name) if not fresh and is_class_name(class_name) else None
    if table is None:
        return _read(class_name)
    cached: HandlersByEvent | None = table.attached.get(_KEY)
    if cached is None:
        cached = _read(class_name)
        if cached:
            # An outdated definition would call the webhooks, and again after it was found to be so.
            table = current(table.class_name) or table
        table.attached[_KEY] = cached
    return cached


class _HookRow(NamedTuple):
    id: int
    trigger_name: str


def _read(class_name: Subject) -> HandlersByEvent:
    rows = fetch_rows(
        _HookRow,
        f"SELECT {select_list(_HookRow, 'h')} FROM functions_hook h"
        " WHERE class_name = %(class_name)s",
        {"class_name": class_name},
        prepare=True,
    )
    if not rows:
        return _NONE
    return {
        event_of(class_name, row.trigger_name): (_handler(class_name, row.id, row.trigger_name),)
        for row in rows
        if row.trigger_name in EVENTS
    }


def _handler(class_name: Subject, hook_id: int, trigger_name: str) -> Handler:
    if event_of(class_name, trigger_name) in _SYNCHRONOUS:
        return partial(synchronous_calls.trigger, hook_id, trigger_name)
    return partial(deliveries.enqueue, hook_id, trigger_name)
