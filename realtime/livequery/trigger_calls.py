"""Calls of a deployment's triggers: before connecting and subscribing, and after events.

Everything here can run the deployment's code, so call it in a thread. It only raises
``ServiceError`` (``functions.runtime.runner``), whose code and text are for the client.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from copy import deepcopy
from dataclasses import dataclass
from secrets import token_hex
from typing import NamedTuple

from backend.kernel.json_types import Json, Wire
from backend.kernel.networks import client_network
from backend.kernel.principal import Principal
from backend.kernel.request_context import Budget, Current, as_current
from objects import triggers
from objects.core.names import ClassName
from objects.core.query.tree import FindOptions, Path, Query
from objects.sql.tables import ClassTable
from objects.triggers import CONNECT, Live, Occasion
from realtime.livequery.access import Access, bind, check_matchable, current_table


class Counts(NamedTuple):
    """How many clients and subscriptions of live queries the process has, for triggers."""

    clients: int = 0
    subscriptions: int = 0


@dataclass(frozen=True, slots=True)
class SubscriptionQuery:
    """The parsed query of a subscription.

    ``keys`` None means all fields, ``watch`` None all changes. ``asked`` is the ``where`` as it
    was sent.
    """

    class_name: ClassName
    where: Query
    keys: frozenset[Path] | None = None
    watch: tuple[Path, ...] | None = None
    asked: Json = None


@dataclass(frozen=True, slots=True)
class AuthorizedQuery:
    """A query that its caller may subscribe to, as the client sent it (``requested``) and as
    triggers have changed it (``effective``); ``access`` is what the caller may see."""

    requested: SubscriptionQuery
    effective: SubscriptionQuery
    access: Access


def client_context(
    address: str, headers: Mapping[str, str], requested_by: Principal | None = None
) -> AbstractContextManager[Current]:
    """Give the deployment's code the client's address and the headers of its handshake.

    ``headers`` have names in lower case; credentials are left out.
    ``requested_by`` is the caller if this is a client's request: without the master key it has
    the budget of an HTTP request for its database queries.
    """
    meta = {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in headers.items()}
    budget = (
        None if requested_by is None or requested_by.is_master else Budget(client_network(address))
    )
    return as_current(Current(request_id=token_hex(8), address=address, meta=meta, budget=budget))


def connect(principal: Principal, counts: Counts) -> None:
    """Run ``before_connect``. Raises ``ServiceError`` if the client may not connect."""
    if triggers.is_registered("before_connect", CONNECT):
        live = Live("connect", counts.clients, counts.subscriptions)
        triggers.run(Occasion("before_connect", CONNECT, principal, live=live))


def subscribe(principal: Principal, question: SubscriptionQuery, counts: Counts) -> AuthorizedQuery:
    """Check that a client may subscribe to a query. ``before_subscribe`` may change it.

    Raises what ``access.bind`` raises and what the triggers raise.
    """
    class_name = question.class_name
    table = current_table(class_name)
    access = bind(principal, class_name, table, question.where, question.watch or ())
    effective = question
    if triggers.is_registered("before_subscribe", class_name):
        effective = _changed(principal, question, table, counts)
    return AuthorizedQuery(question, effective, access)


def renew(
    principal: Principal, authorized: AuthorizedQuery, table: ClassTable | None
) -> AuthorizedQuery:
    """The same for another version of the class, or for a caller whose roles have changed.

    ``before_subscribe`` doesn't run again. Raises as ``subscribe`` does if the query is no longer
    allowed: the subscription ends.
    """
    question = authorized.requested
    access = bind(principal, question.class_name, table, question.where, question.watch or ())
    if authorized.effective is not question:
        check_matchable(authorized.effective.where, table)
    return AuthorizedQuery(question, authorized.effective, access)


def _changed(
    principal: Principal, question: SubscriptionQuery, table: ClassTable | None, counts: Counts
) -> SubscriptionQuery:
    live = Live("subscribe", counts.clients, counts.subscriptions, watch=question.watch)
    query = FindOptions(where=question.where, limit=0, keys=question.keys, asked=question.asked)
    occasion = Occasion("before_subscribe", question.class_name, principal, query=query, live=live)
    triggers.run(occasion)
    assert occasion.query is not None
    # Not checked by the policy: it is the trigger's query, not the client's.
    check_matchable(occasion.query.where, table)
    return SubscriptionQuery(
        question.class_name,
        occasion.query.where,
        occasion.query.keys,
        live.watch,
        question.asked,
    )


def has_event_triggers(class_name: ClassName) -> bool:
    """Whether the class has ``after_event`` triggers. Never waits."""
    return triggers.is_registered("after_event", class_name)


def after_event(
    principal: Principal,
    access: Access,
    event: str,
    obj: Wire,
    original: Wire | None,
    counts: Counts,
) -> tuple[Wire, Wire | None] | None:
    """Run ``after_event`` for one subscriber: return the objects to send, or None for no event.

    The triggers get copies of the whole objects. Fields that are hidden from the subscriber are
    removed from their result, as the stored objects decide. Raises ``ServiceError``.
    """
    live = Live(event, counts.clients, counts.subscriptions)
    occasion = Occasion(
        "after_event",
        access.class_name,
        principal,
        object=deepcopy(obj),
        original=deepcopy(original),
        live=live,
    )
    triggers.run(occasion)
    if not live.send or occasion.object is None:
        return None
    shown = access.shown(occasion.object, obj)
    final_original = occasion.original
    if final_original is None or original is None:
        return shown, None
    return shown, access.shown(final_original, original)
