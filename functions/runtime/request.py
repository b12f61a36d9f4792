"""Requests of functions, triggers and jobs: the caller, its address, and access to objects."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

from django.db import transaction

from backend.kernel.errors import ServiceError
from backend.kernel.principal import MASTER, Principal
from backend.kernel.request_context import Current, current
from backend.logs.failures import contained
from backend.logs.setup import get_logger
from functions.runtime.queries import ObjectAccess, Query
from functions.runtime.registry import registry
from functions.runtime.values import Object, decode_object, encode
from objects import service
from objects.core.names import USER, ObjectId, check_class_name
from objects.core.query.parser import parse_where
from objects.core.query.tree import FindOptions, all_of
from objects.storage.records import wire_object
from objects.triggers import Event, Occasion

log = get_logger("functions")


class Request:
    """The fields common to all calls; the subclasses add further ones."""

    def __init__(self, name: str, principal: Principal) -> None:
        self.name = name
        self.principal = principal
        self.objects = ObjectAccess(principal)
        """``request.objects("Project")`` as the caller, ``.objects.as_master(…)``."""
        self._current: Current = current()

    @property
    def master(self) -> bool:
        """Whether the master key is used (the read-only one is not)."""
        return self.principal.has_master_key and self.principal.may_write_as_master

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
        """The object of the user, read on first access."""
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
        """The id of the request in the log."""
        return self._current.request_id

    @property
    def context(self) -> dict[str, Any]:
        """The client's context, shared by all code that runs for the same request.

        An ``after_save`` trigger sees what ``before_save`` has stored there.
        """
        return self._current.context

    @cached_property
    def log(self) -> Any:
        """A logger, with the name of the function and the request's id in each line."""
        return get_logger("functions").bind(function=self.name)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run the block in a transaction, which is rolled back if it raises.

        Triggers run inside it too; those after a save or delete run when it is committed.
        """
        with transaction.atomic():
            yield

    def on_commit(self, action: Callable[[], Any]) -> None:
        """Call a function after the current transaction commits, or now without a transaction.

        What it raises is logged, and changes neither the response nor what else follows the commit.
        """
        transaction.on_commit(partial(_call_after_commit, f"on_commit of {self.name}", action))

    def call(self, name: str, /, **params: Any) -> Any:
        """Call another function as the same caller and return its result. Raises what it raises."""
        assert registry.caller is not None
        return registry.caller(name, params, self.principal)


def _call_after_commit(what: str, action: Callable[[], Any]) -> None:
    try:
        contained(what, action)
    except ServiceError as error:
        # Too late to refuse.
        log.warning("code of the deployment refused what is done", what=what, error=error.message)


class FunctionRequest(Request):
    """The call of a function. ``params`` are all parameters, decoded."""

    def __init__(self, name: str, principal: Principal, params: dict[str, Any]) -> None:
        super().__init__(name, principal)
        self.params = params


class ObjectOfOccasion:
    """The object of an event and its original, decoded on first access."""

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
    """An event of an object.

    ``object`` is the new state of the object; ``before_save`` may change it.
    ``original`` is the previous state, None for a new object.
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
        """Apply the trigger's changes of ``object`` to the event."""
        wire = encode(dict(self.object), as_field=True)
        self._occasion.object = {**wire, **_times(self._occasion.object or {})}


def _times(wire: Mapping[str, Any]) -> dict[str, Any]:
    return {name: wire[name] for name in ("createdAt", "updatedAt") if name in wire}


class FindRequest(Request):
    """A search. ``before_find`` may narrow ``query``, or set ``results`` in place of the search.

    ``after_find`` may change or replace ``results``.
    """

    def __init__(self, occasion: Occasion) -> None:
        super().__init__(f"{occasion.event} {occasion.class_name}", occasion.principal)
        self.event: Event = occasion.event
        self.class_name = check_class_name(occasion.class_name)
        self.is_get = occasion.is_get
        """Whether the request is for an object by its id."""
        self.is_count = occasion.is_count
        self.results: list[Object] | None = None
        if occasion.objects is not None:
            self.results = [decode_object(self.class_name, obj) for obj in occasion.objects]
        self.query = FoundQuery(occasion.principal, self.class_name)
        self._occasion = occasion

    @property
    def options(self) -> FindOptions:
        """The client's query, parsed (``objects.core.query.tree``)."""
        assert self._occasion.query is not None
        return self._occasion.query

    def write_back(self, answer: object = None) -> None:
        """Apply the trigger's changes, or the results that it returned, to the event."""
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
    """A query that a trigger adds to the client's.

    Constraints are joined to the client's; other options replace the client's.
    """

    def _with(self, **params: Any) -> FoundQuery:
        # In place: triggers write ``request.query.where(…)`` as a statement.
        object.__setattr__(self, "params", {**self.params, **params})
        return self

    def set_option(self, name: str, value: Any) -> None:
        """Replace an option by its value as a parameter of a search (``limit``, ``keys``, …)."""
        self._with(**{name: value})

    def joined_to(self, options: FindOptions) -> FindOptions:
        """Return the client's query joined with this one."""
        if not self.params:
            return options
        mine = self.options()
        names = {"excludeKeys": "exclude_keys"}
        replaced = [names.get(name, name) for name in self.params if name != "where"]
        replacements = {name: getattr(mine, name) for name in replaced}
        return replace(
            options, where=all_of(options.where, parse_where(self._where())), **replacements
        )
