"""Which webhooks a class has: in every process at once, without a query for each operation.

They are kept with the class's definition in memory. Whoever changes a webhook gives its class a new
version in the same transaction (``registry.renew``), and the next statement of any process about
the class finds that out (``docs/architecture.md``). Where there is no such statement (files,
parameters of the app, signing in, classes that aren't there yet) they are read each time.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from functions.webhooks import calls, outbox
from functions.webhooks.names import EVENTS, event_of
from objects.core.names import Subject, is_class_name
from objects.database.statements import fetch
from objects.definitions.registry import find
from objects.triggers import Event, Handler

Known = Mapping[Event, tuple[Handler, ...]]

_KEY: Final = "webhooks"
_NONE: Final[Known] = {}
# What may change or refuse is waited for; the rest is told afterwards.
_WAITED_FOR: Final = frozenset(
    {
        *("before_save", "before_delete", "before_find", "after_find"),
        *("before_login", "before_password_reset"),
    }
)


def handlers(class_name: Subject, fresh: bool) -> Known:
    """A source for ``objects.triggers``."""
    table = find(class_name) if not fresh and is_class_name(class_name) else None
    if table is None:
        return _read(class_name)
    known: Known | None = table.attached.get(_KEY)
    if known is None:
        known = table.attached[_KEY] = _read(class_name)
    return known


def _read(class_name: Subject) -> Known:
    rows = fetch(
        "SELECT id, trigger_name FROM functions_hook WHERE class_name = %s",
        (class_name,),
        prepare=True,
    )
    if not rows:
        return _NONE
    return {
        event_of(class_name, name): (_handler(class_name, int(hook_id), name),)
        for hook_id, name in rows
        if name in EVENTS
    }


def _handler(class_name: Subject, hook_id: int, trigger_name: str) -> Handler:
    if event_of(class_name, trigger_name) in _WAITED_FOR:
        return partial(calls.trigger, hook_id, trigger_name)
    return partial(outbox.keep, hook_id, trigger_name)
