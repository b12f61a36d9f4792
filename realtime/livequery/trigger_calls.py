"""Calls of a deployment's triggers: before connecting and subscribing, and after events.

Everything here can run the deployment's code, so call it in a thread. It only raises
``ServiceError`` (``functions.runtime.runner``), whose code and text are for the client.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from typing import NamedTuple

from structlog.contextvars import bound_contextvars

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

    ``keys`` None means all fields, ``watch`` None all changes. ``raw_where`` is the ``where`` as it
    was sent.
    """

    class_name: ClassName
    where: Query
    keys: frozenset[Path] | None = None
    watch: tuple[Path, ...] | None = None
    raw_where: Json = None


@dataclass(frozen=True, slots=True)
class AuthorizedQuery:
    """A query that its caller may subscribe to, as the client sent it (``requested``) and as
    triggers have changed it (``effective``); ``access`` is what the caller may see."""

    requested: SubscriptionQuery
    effective: SubscriptionQuery
    access: Access


@contextmanager
def client_context(
    address: str,
    headers: Mapping[str, str],
    requested_by: Principal | None = None,
    *,
    request_id: str,
) -> Iterator[None]:
    """Give the deployment's code the client's address and the headers of its handshake.

    ``request_id`` is the socket's, and in the log lines of the block. ``headers`` have names in
    lower case; credentials are left out.
    ``requested_by`` is the caller if this is a client's request: without the master key it has
    the budget of an HTTP request for its database queries.
    """
    meta = {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in headers.items()}
    budget = (
        None if requested_by is None or requested_by.is_master else Budget(client_network(address))
    )
    now = Current(request_id=request_id, address=address, meta=meta, budget=budget)
    with bound_contextvars(request_id=request_id), as_current(now):
        yield


def connect(principal: Principal, counts: Counts) -> None:
    """Run ``before_connect``. Raises ``ServiceError`` if the client may not connect."""
    if triggers.is_registered("before_connect", CONNECT):
        live = Live("connect", counts.clients, counts.subscriptions)
        triggers.run(Occasion("before_connect", CONNECT, principal, live=live))


def subscribe(
    principal: Principal, requested: SubscriptionQuery, counts: Counts
) -> AuthorizedQuery:
    """Check that a client may subscribe to a query. ``before_subscribe`` may change it.

    Raises what ``access.bind`` raises and what the triggers raise.
    """
    class_name = requested.class_name
    table = current_table(class_name)
    access = bind(principal, class_name, table, requested.where, requested.watch or ())
    effective = requested
    if triggers.is_registered("before_subscribe", class_name):
        effective = _run_before_subscribe(principal, requested, table, counts)
    return AuthorizedQuery(requested, effective, access)


def renew(
    principal: Principal, authorized: AuthorizedQuery, table: ClassTable | None
) -> AuthorizedQuery:
    """Authorize a query again, for another version of the class or a caller with other roles.

    ``before_subscribe`` doesn't run again. Raises as ``subscribe`` does if the query is no longer
    allowed: the subscription ends.
    """
    requested = authorized.requested
    access = bind(principal, requested.class_name, table, requested.where, requested.watch or ())
    if authorized.effective is not requested:
        check_matchable(authorized.effective.where, table)
    return AuthorizedQuery(requested, authorized.effective, access)


def _run_before_subscribe(
    principal: Principal, requested: SubscriptionQuery, table: ClassTable | None, counts: Counts
) -> SubscriptionQuery:
    live = Live("subscribe", counts.clients, counts.subscriptions, watch=requested.watch)
    query = FindOptions(
        where=requested.where, limit=0, keys=requested.keys, raw_where=requested.raw_where
    )
    occasion = Occasion("before_subscribe", requested.class_name, principal, query=query, live=live)
    triggers.run(occasion)
    assert occasion.query is not None
    # Not checked by the policy: it is the trigger's query, not the client's.
    check_matchable(occasion.query.where, table)
    return SubscriptionQuery(
        requested.class_name,
        occasion.query.where,
        occasion.query.keys,
        live.watch,
        requested.raw_where,
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
    shown = access.redact(occasion.object, obj)
    final_original = occasion.original
    if final_original is None or original is None:
        return shown, None
    return shown, access.redact(final_original, original)
