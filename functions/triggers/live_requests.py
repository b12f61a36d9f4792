"""Requests of the triggers of live queries (``functions.triggers.decorators``)."""

from __future__ import annotations

from typing import Any

from functions.runtime.request import FoundQuery, ObjectOfOccasion, Request
from functions.runtime.values import encode
from objects.core.names import check_class_name, check_key_path
from objects.core.query.tree import FindOptions
from objects.triggers import Live, Occasion

_LAID_DOWN = ("objectId", "createdAt", "updatedAt")


class LiveRequest(Request):
    """The common fields. ``clients`` and ``subscriptions`` count those of this process."""

    def __init__(self, occasion: Occasion) -> None:
        super().__init__(f"{occasion.event} {occasion.class_name}", occasion.principal)
        assert occasion.live is not None
        self._occasion = occasion
        self._live: Live = occasion.live
        self.event: str = self._live.event
        self.clients = self._live.clients
        self.subscriptions = self._live.subscriptions


class ConnectRequest(LiveRequest):
    """A client that wants to connect."""


class SubscribeRequest(LiveRequest):
    """A subscription to objects, before it starts.

    ``query`` may be narrowed; the fields that are sent (``keys``) and the fields whose changes
    count (``watch``) may be replaced.
    """

    def __init__(self, occasion: Occasion) -> None:
        super().__init__(occasion)
        self.class_name = check_class_name(occasion.class_name)
        self.query = SubscribedQuery(occasion.principal, self.class_name)

    @property
    def options(self) -> FindOptions:
        """The client's query, parsed (``objects.core.query.tree``): its ``where`` and
        ``keys``."""
        assert self._occasion.query is not None
        return self._occasion.query

    @property
    def watch(self) -> tuple[str, ...] | None:
        """The fields whose changes the client waits for; None for all."""
        watch = self._live.watch
        return None if watch is None else tuple(".".join(path) for path in watch)

    def write_back(self) -> None:
        """Apply the trigger's changes of ``query``."""
        params = dict(self.query.params)
        watched = params.pop("watch", None)
        if watched is not None:
            self._live.watch = tuple(check_key_path(name) for name in watched) or None
        query = FoundQuery(self.principal, self.class_name, params)
        self._occasion.query = query.joined_to(self.options)


class SubscribedQuery(FoundQuery):
    """What a trigger adds to a subscription; ``order``, ``limit`` and the like mean nothing."""

    def watch(self, *names: str) -> SubscribedQuery:
        """Only changes of these fields count; without names those of any."""
        self._with(watch=names)
        return self


class LiveEventRequest(ObjectOfOccasion, LiveRequest):
    """An event before it is sent to a subscriber: ``event``, ``object`` and maybe ``original``.

    Both objects are copies for this subscriber and may be changed.
    """

    def __init__(self, occasion: Occasion) -> None:
        super().__init__(occasion)
        self.class_name = check_class_name(occasion.class_name)
        self.send_event = True

    def write_back(self) -> None:
        """Apply the changes of the trigger."""
        self._live.send = bool(self.send_event)
        if not self._live.send:
            return
        self._occasion.object = _written(self.object, self._occasion.object)
        if self.original is None:
            self._occasion.original = None
        else:
            self._occasion.original = _written(self.original, self._occasion.original)


def _written(changed: Any, was: dict[str, Any] | None) -> dict[str, Any]:
    """The changed object in wire form; which one it is and of when stays."""
    wire: dict[str, Any] = encode(dict(changed), as_field=True)
    before = was or {}
    return {**wire, **{name: before[name] for name in _LAID_DOWN if name in before}}
