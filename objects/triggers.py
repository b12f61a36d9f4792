"""What a deployment's own code does around the operations on objects.

The object service calls these functions; the layer above registers the handlers (``functions``:
Python functions and webhooks). A handler is given an ``Occasion`` and may change it where the event
says so, or raise a ``ServiceError``. Handlers of events before an operation, and of ``saved`` and
``deleted``, run inside of the operation's transaction: what they raise undoes all of it. Those of
the other events after one run when it is committed, and nothing that they do can undo it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Literal, TypeAlias

from django.db import transaction

from backend.kernel.errors import OperationForbidden, ServiceError
from backend.kernel.json_types import Json, Wire
from backend.kernel.principal import Principal
from backend.kernel.request_context import current
from backend.kernel.texts.cache import short_cache
from backend.logs.setup import get_logger
from objects.core.names import MAX_NAME_LENGTH, PUSH_STATUS, FieldPath, Subject
from objects.core.query.tree import Everything, FindOptions, Query

Event: TypeAlias = Literal[
    "before_save",  # may change ``object``
    "saved",  # inside of the transaction
    "after_save",
    "before_delete",
    "deleted",  # inside of the transaction
    "after_delete",
    "before_find",  # may change ``query``, or give ``objects`` instead of asking the database
    "after_find",  # may change ``objects``
    "before_login",
    "after_login",
    "after_logout",
    "before_password_reset",
    "before_connect",  # of a live query's client
    "before_subscribe",  # may change ``query`` and ``live.watch``
    "after_event",  # may change ``object``, ``original``, ``live.send``
]

EVERY_CLASS: Final = Subject("*")
FILE: Final = Subject("@File")
CONFIG: Final = Subject("@Config")
CONNECT: Final = Subject("@Connect")
"""What has triggers like a class, and is none."""

# Internal classes have no triggers, except for sign-out and after the save of a push's status.
_WITHOUT_TRIGGERS: Final = frozenset(
    {
        *("_Session", "_JobStatus", "_PushStatus", "_Hooks", "_GlobalConfig"),
        *("_GraphQLConfig", "_JobSchedule", "_Audience", "_Idempotency"),
    }
)
_OF_WRITES: Final[frozenset[Event]] = frozenset(
    {"before_save", "saved", "after_save", "before_delete", "deleted", "after_delete"}
)
_OF_USERS: Final = frozenset({"before_login", "after_login", "before_password_reset"})
_OF_SESSIONS: Final = frozenset({"after_logout"})
_OF_LIVE_QUERIES: Final = frozenset({"before_subscribe", "after_event"})
# Their operations have no statement that looks at the version of a class.
_UNGUARDED: Final = _OF_USERS | _OF_SESSIONS

log = get_logger("triggers")


@dataclass
class Live:
    """The live query part of a trigger's context.

    ``event`` is ``connect``, ``subscribe``, or the event of an object: ``create``, ``enter``,
    ``update``, ``leave``, ``delete``. ``clients`` and ``subscriptions`` are those of the process.
    ``watch`` are the fields whose changes the client waits for, None for all.
    """

    event: str
    clients: int = 0
    subscriptions: int = 0
    watch: tuple[FieldPath, ...] | None = None
    send: bool = True


@dataclass
class Occasion:
    """An event at which handlers run, and its context.

    ``object`` is the object as it will be (before) or is (after), ``original`` what it was, None
    for a new one. Objects are in wire form, with their access list as ``ACL``.
    """

    event: Event
    class_name: Subject
    principal: Principal
    object: Wire | None = None
    original: Wire | None = None
    query: FindOptions | None = None
    objects: list[Wire] | None = None
    is_get: bool = False
    is_count: bool = False
    live: Live | None = None


Handler: TypeAlias = Callable[[Occasion], None]
Source: TypeAlias = Callable[[Subject, bool], Mapping[Event, tuple[Handler, ...]]]
"""Says for a class which handlers each event has.

A source may answer from memory what holds for the version of the class that is in the registry:
if that is outdated, a statement of the operation finds out, and the operation begins again. The
flag says that no statement will: the answer has to be what holds now.
"""


class NeverCalled(ValueError):
    """A trigger that would never be called. The message names an alternative."""


_handlers: dict[tuple[Event, Subject], list[Handler]] = {}
_written_elsewhere: dict[Subject, tuple[frozenset[Event], str]] = {}
_sources: list[Source] = []


def register(event: Event, class_name: Subject, handler: Handler) -> None:
    """Call the handler at this event of the class; ``*`` stands for every class of objects.

    Raises ``ValueError`` if the class has no such event.
    """
    check_event(event, class_name)
    _handlers.setdefault((event, class_name), []).append(handler)
    _registered.cache_clear()


def unregister(event: Event, class_name: Subject, handler: Handler) -> None:
    """Undo a ``register``."""
    _handlers[event, class_name].remove(handler)
    _registered.cache_clear()


def add_source(source: Source) -> None:
    """Register a further source of a class's handlers. It is called at every operation."""
    _sources.append(source)


def refuse_on_writes(
    class_name: Subject, reason: str, events: Collection[Event] = _OF_WRITES
) -> None:
    """Refuse triggers around saves and deletes of a class that is written without them.

    ``events`` limits this to some events. ``reason`` is for developers and names an alternative.

    Call it in ``AppConfig.ready``, of an application that is loaded before ``functions``.
    """
    _written_elsewhere[class_name] = (frozenset(events), reason)
    _registered.cache_clear()


def check_event(event: Event, class_name: Subject) -> None:
    """Raise an error if a class can't have triggers of this kind.

    ``ValueError`` if they are not allowed, ``NeverCalled`` if nothing would call them.
    """
    refused, reason = _written_elsewhere.get(class_name, (frozenset(), ""))
    if event in refused:
        raise NeverCalled(reason)
    if event in _OF_SESSIONS:
        fits = class_name == "_Session"
    elif event in _OF_USERS:
        fits = class_name == "_User"
    elif event == "before_connect" or class_name == CONNECT:
        fits = event == "before_connect" and class_name == CONNECT
    elif class_name == CONFIG:
        fits = event in ("before_save", "after_save")
    elif class_name == FILE:
        fits = event not in ("saved", "deleted") and event not in _OF_LIVE_QUERIES
    elif class_name == PUSH_STATUS:
        # The service writes it, and apps learn how a push goes on.
        fits = event == "after_save"
    else:
        fits = class_name not in _WITHOUT_TRIGGERS
    if not fits:
        raise ValueError(f"{class_name} has no trigger {event}")


@short_cache(maxsize=4096, longest=MAX_NAME_LENGTH)
def _registered(class_name: Subject) -> Mapping[Event, tuple[Handler, ...]]:
    names = [class_name]
    if not class_name.startswith("@") and class_name not in _WITHOUT_TRIGGERS:
        names.append(EVERY_CLASS)
    refused, _ = _written_elsewhere.get(class_name, (frozenset(), ""))
    handlers_by_event: dict[Event, tuple[Handler, ...]] = {}
    for name in names:
        for (event, registered), handlers in _handlers.items():
            # What no trigger of the class may be declared for calls those of all classes neither.
            if registered == name and handlers and event not in refused:
                handlers_by_event[event] = (*handlers_by_event.get(event, ()), *handlers)
    return handlers_by_event


def handlers(event: Event, class_name: Subject) -> tuple[Handler, ...]:
    """Return the handlers in call order: those of the class, then those of every class."""
    registered = _registered(class_name).get(event, ())
    if event in _OF_LIVE_QUERIES or class_name == CONNECT:
        return registered  # other sources have handlers of objects only
    for source in _sources:
        registered += source(class_name, _is_unguarded(class_name, event)).get(event, ())
    return registered


def has(class_name: Subject, *events: Event) -> bool:
    """Return whether one of these events has handlers.

    The events are all about objects or all about signing in. Very cheap for objects.
    """
    registered = _registered(class_name)
    if registered and not registered.keys().isdisjoint(events):
        return True
    for source in _sources:
        attached = source(class_name, _is_unguarded(class_name, events[0]))
        if attached and not attached.keys().isdisjoint(events):
            return True
    return False


def is_registered(event: Event, class_name: Subject) -> bool:
    """Return whether Python code of the deployment is called at this event. Never waits."""
    return event in _registered(class_name)


def _is_unguarded(class_name: Subject, event: Event) -> bool:
    return event in _UNGUARDED or class_name in (FILE, CONFIG)


def run(occasion: Occasion) -> Occasion:
    """Call the handlers of an event, in order; return the occasion as they changed it."""
    for handler in handlers(occasion.event, occasion.class_name):
        handler(occasion)
    return occasion


def run_after_commit(occasion: Occasion) -> None:
    """Call the handlers when the current transaction commits, or immediately without one."""
    if has(occasion.class_name, occasion.event):
        transaction.on_commit(partial(_run_afterwards, occasion, current().context))


def _run_afterwards(occasion: Occasion, context: dict[str, Any]) -> None:
    """Call the handlers with the context that the operation had."""
    now = current()
    outer, now.context = now.context, context
    try:
        _run_all(occasion)
    finally:
        now.context = outer


def _run_all(occasion: Occasion) -> None:
    for handler in handlers(occasion.event, occasion.class_name):
        try:
            handler(occasion)
        except ServiceError as error:
            # Too late to refuse.
            log.warning(
                "trigger refused what is done",
                trigger=occasion.event,
                class_name=occasion.class_name,
                error=error.message,
            )
        except Exception as error:
            log.error(
                "trigger failed",
                trigger=occasion.event,
                class_name=occasion.class_name,
                exc_info=error,
            )


# -- Finding --------------------------------------------------------------------------------------


def before_find(
    principal: Principal,
    class_name: Subject,
    options: FindOptions,
    *,
    is_get: bool = False,
    object_id: str | None = None,
) -> tuple[FindOptions, list[Wire] | None]:
    """Return the final query, and the objects if a handler has supplied them.

    ``object_id`` is that of a get, for handlers that are shown the query as it was sent.
    """
    if not has(class_name, "before_find"):
        return options, None
    if object_id is not None:
        options = replace(options, raw_where={"objectId": object_id})
    occasion = Occasion(
        "before_find",
        class_name,
        principal,
        query=options,
        is_get=is_get,
        is_count=options.count and options.limit == 0,
    )
    run(occasion)
    return occasion.query or options, occasion.objects


def after_find(
    principal: Principal,
    class_name: Subject,
    objects: Iterable[Wire],
    query: FindOptions,
    *,
    is_get: bool = False,
) -> list[Wire]:
    """Return the found objects, as changed by the handlers. ``query`` is what found them."""
    occasion = Occasion(
        "after_find", class_name, principal, query=query, objects=list(objects), is_get=is_get
    )
    return run(occasion).objects or []


def of_pointers(ids: Collection[str]) -> FindOptions:
    """Return the query for the objects that pointers lead to, as handlers are shown it."""
    listed: list[Json] = [*sorted(ids)]
    asked: Json = listed[0] if len(listed) == 1 else {"$in": listed}
    return FindOptions(where=Everything(), limit=max(1, len(ids)), raw_where={"objectId": asked})


def including(
    principal: Principal, class_name: Subject, query: FindOptions, *, is_get: bool
) -> Query | None:
    """Return the conditions that handlers before a find add for objects of ``include``.

    None if a handler supplies objects instead, which counts as finding none. What a handler raises
    refuses the whole request.
    """
    options, objects = before_find(principal, class_name, query, is_get=is_get)
    return options.where if objects is None else None


def narrowing(principal: Principal, class_name: Subject) -> Query:
    """Return the conditions that handlers before a find add for sub-queries.

    A handler that supplies objects instead counts as finding none.
    """
    empty = FindOptions(where=Everything(), limit=1)
    options, objects = before_find(principal, class_name, empty)
    if objects is not None:
        raise OperationForbidden(
            f"{class_name} can't be named in a sub-query: a trigger supplies its objects."
        )
    return options.where
