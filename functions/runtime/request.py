"""What a function, trigger or job is handed: who calls, from where, and the door to objects."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import Any

from django.db import transaction

from backend.kernel.principal import MASTER, Principal
from backend.kernel.request_context import Current, current
from backend.logs.setup import get_logger
from functions.runtime.queries import Door, Query
from functions.runtime.registry import registry
from functions.runtime.values import Object, decode_object, encode
from objects import service
from objects.core.names import USER, ObjectId, check_class_name
from objects.core.query.parser import parse_where
from objects.core.query.tree import FindOptions, all_of
from objects.storage.records import wire_object
from objects.triggers import Event, Occasion


class Request:
    """One call. The fields of all kinds of calls are here; see the subclasses for the others."""

    def __init__(self, name: str, principal: Principal) -> None:
        self.name = name
        self.principal = principal
        self.objects = Door(principal)
        """The door: ``request.objects("Project")`` as the caller, ``.objects.as_master(…)``."""
        self._current: Current = current()

    @property
    def master(self) -> bool:
        """Whether the master key is used (the read-only one is not)."""
        return self.principal.may_write_as_master

    @property
    def read_only(self) -> bool:
        """Whether the read-only master key is used."""
        return self.principal.is_master and not self.principal.may_write_as_master

    @property
    def user_id(self) -> str | None:
        """The id of the user whose session the call has."""
        return self.principal.user_id

    @cached_property
    def user(self) -> Object | None:
        """That user's object; read when it is first asked for."""
        if self.principal.user_id is None:
            return None
        return decode_object(
            USER, wire_object(service.get(MASTER, USER, ObjectId(self.principal.user_id)))
        )

    @property
    def roles(self) -> frozenset[str]:
        """The names of the user's roles, inherited ones among them."""
        return self.principal.roles

    @property
    def installation_id(self) -> str | None:
        return self.principal.installation_id

    @property
    def headers(self) -> Mapping[str, str]:
        """The request's headers by lower-case name, without keys, tokens and cookies."""
        return self._current.headers

    @property
    def address(self) -> str:
        """The client's IP address."""
        return self._current.address

    @property
    def request_id(self) -> str:
        """Under which the log has what belongs to this call."""
        return self._current.request_id

    @property
    def context(self) -> dict[str, Any]:
        """The client's context; what is put there is found by everything else that runs for the
        same request: a trigger after a save finds what the one before it has put there."""
        return self._current.context

    @cached_property
    def log(self) -> Any:
        """A logger, with the name of the function and the request's id in each line."""
        return get_logger("functions").bind(function=self.name)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All that is written inside is written when it ends, or nothing if it raises.

        Triggers run inside of it too; those after a save or delete when it is committed.
        """
        with transaction.atomic():
            yield

    def on_commit(self, action: Callable[[], Any]) -> None:
        """Do this when the transaction under way is committed; now, if there is none."""
        transaction.on_commit(action)

    def call(self, name: str, /, **params: Any) -> Any:
        """Another function's result, as the same caller. Raises what it raises."""
        assert registry.caller is not None
        return registry.caller(name, params, self.principal)


class FunctionRequest(Request):
    """A function's call. ``params`` are all parameters, decoded."""

    def __init__(self, name: str, principal: Principal, params: dict[str, Any]) -> None:
        super().__init__(name, principal)
        self.params = params


class ObjectOfOccasion:
    """The object of an occasion, and what it was, as functions see objects; read when asked for."""

    class_name: str
    _occasion: Occasion

    @cached_property
    def object(self) -> Object:
        return decode_object(self.class_name, self._occasion.object or {})

    @cached_property
    def original(self) -> Object | None:
        was = self._occasion.original
        return None if was is None else decode_object(self.class_name, was)


class TriggerRequest(ObjectOfOccasion, Request):
    """An event at an object.

    ``object`` is the object as it will be, or is by now; in ``before_save`` it may be changed.
    ``original`` is the object as it was, None for a new one.
    """

    def __init__(self, occasion: Occasion) -> None:
        super().__init__(f"{occasion.event} {occasion.class_name}", occasion.principal)
        self.event: Event = occasion.event
        self.class_name = occasion.class_name
        self._occasion = occasion

    @property
    def is_new(self) -> bool:
        """Whether the object is being created."""
        return self._occasion.original is None

    def changed(self, name: str) -> bool:
        """Whether a field has another value than before."""
        before = None if self.original is None else self.original.get(name)
        return bool(self.object.get(name) != before)

    def write_back(self) -> None:
        """Hand on what the trigger has done to ``object``."""
        wire = encode(dict(self.object), as_field=True)
        self._occasion.object = {**wire, **_times(self._occasion.object or {})}


def _times(wire: Mapping[str, Any]) -> dict[str, Any]:
    return {name: wire[name] for name in ("createdAt", "updatedAt") if name in wire}


class FindRequest(Request):
    """A search. Before it, ``query`` may be narrowed, or ``results`` set to answer in its place;
    after it, ``results`` may be changed or replaced."""

    def __init__(self, occasion: Occasion) -> None:
        super().__init__(f"{occasion.event} {occasion.class_name}", occasion.principal)
        self.event: Event = occasion.event
        self.class_name = check_class_name(occasion.class_name)
        self.is_get = occasion.is_get
        """Whether one object is asked for by its id."""
        self.is_count = occasion.is_count
        self.results: list[Object] | None = None
        if occasion.objects is not None:
            self.results = [decode_object(self.class_name, obj) for obj in occasion.objects]
        self.query = FoundQuery(occasion.principal, self.class_name)
        self._occasion = occasion

    @property
    def options(self) -> FindOptions:
        """The client's question, parsed (``objects.core.query.tree``)."""
        assert self._occasion.query is not None
        return self._occasion.query

    def write_back(self, answer: object = None) -> None:
        """Hand on what the trigger has done, or what it returned in place of the results."""
        if isinstance(answer, list):
            self.results = answer
        if self.event == "before_find":
            self._occasion.query = self.query.joined_to(self.options)
        if self.results is not None:
            self._occasion.objects = [_whole(obj) for obj in self.results]


def _whole(obj: Any) -> dict[str, Any]:
    wire = encode(obj)
    return {name: value for name, value in wire.items() if name not in ("__type", "className")}


class FoundQuery(Query):
    """What a trigger adds to a client's question: constraints are joined to the client's, the rest
    takes the place of what the client has said."""

    def _with(self, **params: Any) -> FoundQuery:
        # In place: triggers write ``request.query.where(…)`` as a statement.
        object.__setattr__(self, "params", {**self.params, **params})
        return self

    def joined_to(self, options: FindOptions) -> FindOptions:
        """The question in the end."""
        if not self.params:
            return options
        mine = self.options()
        names = {"excludeKeys": "exclude_keys"}
        replaced = [names.get(name, name) for name in self.params if name != "where"]
        replacements = {name: getattr(mine, name) for name in replaced}
        return replace(
            options, where=all_of(options.where, parse_where(self._where())), **replacements
        )
