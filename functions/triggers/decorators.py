"""The decorators of triggers, and their connection to the object service.

A trigger takes the request: a ``TriggerRequest`` at objects, a ``FindRequest`` at searches. What
runs before an operation may raise a ``ServiceError`` to refuse it; anything else that it raises
refuses it too, with 141. What runs after it can't refuse any more, and its errors are in the log.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from functions.runtime.registry import Trigger, trigger
from functions.triggers.calls import fire
from functions.triggers.tasks import start_trigger
from objects import triggers
from objects.triggers import CONFIG, CONNECT, FILE, Event

__all__ = [
    "CONFIG",
    "FILE",
    "after_delete",
    "after_event",
    "after_find",
    "after_login",
    "after_logout",
    "after_save",
    "before_connect",
    "before_delete",
    "before_find",
    "before_login",
    "before_password_reset",
    "before_save",
    "before_subscribe",
]

_Body = TypeVar("_Body", bound=Callable[..., Any])
_Decorator = Callable[[_Body], _Body]


def before_save(class_name: str, **options: Any) -> _Decorator[Any]:
    """Before an object of the class is stored: change ``request.object``, or refuse.

    The class may be ``"*"`` for all, ``FILE`` or ``CONFIG``. Options of this and all others:
    ``require_user``, ``require_master``, ``require_any_role``, … as for functions, and
    ``time_limit``.
    """
    return trigger("before_save", class_name, **options)


def after_save(
    class_name: str, *, in_transaction: bool = False, background: bool = False, **options: Any
) -> _Decorator[Any]:
    """After an object of the class was stored and that is committed.

    With ``in_transaction`` inside of the transaction that stores it, where an error undoes all of
    it. With ``background`` in a worker, soon after.
    """
    return _after("after_save", "saved", class_name, in_transaction, background, options)


def before_delete(class_name: str, **options: Any) -> _Decorator[Any]:
    """Before an object of the class is removed: refuse, or clear away what belongs to it."""
    return trigger("before_delete", class_name, **options)


def after_delete(
    class_name: str, *, in_transaction: bool = False, background: bool = False, **options: Any
) -> _Decorator[Any]:
    """After an object of the class was removed; options as for ``after_save``."""
    return _after("after_delete", "deleted", class_name, in_transaction, background, options)


def before_find(class_name: str, **options: Any) -> _Decorator[Any]:
    """Before objects of the class are read by a query, by id, or through a pointer.

    The trigger may narrow ``request.query``, set ``request.results`` in its place, or refuse.
    """
    return trigger("before_find", class_name, **options)


def after_find(class_name: str, **options: Any) -> _Decorator[Any]:
    """After objects of the class were found: change ``request.results``, or return others."""
    return trigger("after_find", class_name, **options)


def before_login(**options: Any) -> _Decorator[Any]:
    """When a user has proven who they are, before the session begins: refuse."""
    return trigger("before_login", "_User", **options)


def after_login(*, background: bool = False, **options: Any) -> _Decorator[Any]:
    """After a session has begun."""
    return trigger("after_login", "_User", background=background, **options)


def after_logout(*, background: bool = False, **options: Any) -> _Decorator[Any]:
    """After a session was ended by its user; ``request.object`` is the session."""
    return trigger("after_logout", "_Session", background=background, **options)


def before_password_reset(**options: Any) -> _Decorator[Any]:
    """Before a password reset link is emailed: refuse.

    The client has its response by then, so it learns neither of the refusal nor of the account.
    """
    return trigger("before_password_reset", "_User", **options)


def before_connect(**options: Any) -> _Decorator[Any]:
    """When a client of live queries has shown its keys, before it is connected: refuse."""
    return trigger("before_connect", CONNECT, **options)


def before_subscribe(class_name: str, **options: Any) -> _Decorator[Any]:
    """Before a client subscribes to objects of the class: change ``request.query``, or refuse.

    It takes a ``SubscribeRequest``.
    """
    return trigger("before_subscribe", class_name, **options)


def after_event(class_name: str, **options: Any) -> _Decorator[Any]:
    """Before an event is sent to a subscriber of the class.

    The trigger may change ``request.object`` and ``request.original``, or set
    ``request.send_event`` to False. It takes a ``LiveEventRequest`` and is called once for each
    subscriber of the event.
    """
    return trigger("after_event", class_name, **options)


def _after(
    event: Event,
    inside: Event,
    class_name: str,
    in_transaction: bool,
    background: bool,
    options: dict[str, Any],
) -> _Decorator[Any]:
    if in_transaction and background:
        raise TypeError("a trigger runs in the transaction or in the background, not both")
    chosen = inside if in_transaction else event
    return trigger(chosen, class_name, background=background, **options)


# -- Being called ----------------------------------------------------------------------------------


def connect(registered: Trigger) -> Callable[[], None]:
    """Connect a trigger to its event. Returns a callable that disconnects it."""
    handler = partial(start_trigger if registered.background else fire, registered)
    triggers.register(registered.event, registered.class_name, handler)
    return partial(triggers.unregister, registered.event, registered.class_name, handler)
