"""What a deployment's own code does around live queries: triggers that refuse, narrow, change.

Everything here may run code of the deployment and belongs into a thread. Errors are
``ServiceError``, whatever that code does (``functions.runtime.runner``), and their code and text
are for the client.
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
class Question:
    """What a client subscribes to, parsed.

    ``keys`` None means all fields, ``watch`` None all changes. ``asked`` is the ``where`` as it
    was sent.
    """

    class_name: ClassName
    where: Query
    keys: frozenset[Path] | None = None
    watch: tuple[Path, ...] | None = None
    asked: Json = None


@dataclass(frozen=True, slots=True)
class Admitted:
    """A question that may be asked. ``told`` is what counts in the end: what the client has asked
    as triggers have changed it; ``access`` what the caller may see."""

    question: Question
    told: Question
    access: Access


def calling(
    address: str, headers: Mapping[str, str], asks: Principal | None = None
) -> AbstractContextManager[Current]:
    """Let code of the deployment know where a client is and what it said when it connected.

    ``headers`` have names in lower case; those that prove something are left out.
    ``asks``: who wants this done, if it is a client's request. With a client's key it has the
    budget of a request over HTTP for its database queries.
    """
    meta = {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in headers.items()}
    budget = None if asks is None or asks.is_master else Budget(client_network(address))
    return as_current(Current(request_id=token_hex(8), address=address, meta=meta, budget=budget))


def connect(principal: Principal, counts: Counts) -> None:
    """Ask the triggers whether a client may connect. Raises ``ServiceError`` if it may not."""
    if triggers.is_registered("before_connect", CONNECT):
        live = Live("connect", counts.clients, counts.subscriptions)
        triggers.run(Occasion("before_connect", CONNECT, principal, live=live))


def subscribe(principal: Principal, question: Question, counts: Counts) -> Admitted:
    """Check whether a client may subscribe to this, and let triggers change it.

    Raises what ``access.bind`` raises and what the triggers raise.
    """
    class_name = question.class_name
    table = current_table(class_name)
    access = bind(principal, class_name, table, question.where, question.watch or ())
    effective = question
    if triggers.is_registered("before_subscribe", class_name):
        effective = _changed(principal, question, table, counts)
    return Admitted(question, effective, access)


def renew(principal: Principal, admitted: Admitted, table: ClassTable | None) -> Admitted:
    """The same for another version of the class, or for a caller whose roles have changed.

    ``before_subscribe`` isn't asked again. Raises like ``subscribe`` if the question may no longer
    be asked: the subscription ends.
    """
    question = admitted.question
    access = bind(principal, question.class_name, table, question.where, question.watch or ())
    if admitted.told is not question:
        check_matchable(admitted.told.where, table)
    return Admitted(question, admitted.told, access)


def _changed(
    principal: Principal, question: Question, table: ClassTable | None, counts: Counts
) -> Question:
    live = Live("subscribe", counts.clients, counts.subscriptions, watch=question.watch)
    query = FindOptions(where=question.where, limit=0, keys=question.keys, asked=question.asked)
    occasion = Occasion("before_subscribe", question.class_name, principal, query=query, live=live)
    triggers.run(occasion)
    assert occasion.query is not None
    # Not asked of the policy: what triggers ask for isn't the client's question.
    check_matchable(occasion.query.where, table)
    return Question(
        question.class_name,
        occasion.query.where,
        occasion.query.keys,
        live.watch,
        question.asked,
    )


def is_told(class_name: ClassName) -> bool:
    """Whether ``after_event`` has anybody to call for this class. Never waits."""
    return triggers.is_registered("after_event", class_name)


def after_event(
    principal: Principal,
    access: Access,
    event: str,
    obj: Wire,
    original: Wire | None,
    counts: Counts,
) -> tuple[Wire, Wire | None] | None:
    """Return what one subscriber gets, as the triggers want it, or None.

    The triggers get the whole objects, in copies of this subscriber's own; what is hidden from the
    subscriber is taken out of what they leave, by the objects as they are stored. Raises
    ``ServiceError``.
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
