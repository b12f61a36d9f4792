"""Evaluate again what subscribers may see, after the class or their roles have changed."""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeAlias

from backend.kernel.errors import ServiceError, ServiceUnavailable
from objects import triggers
from objects.changes import Change
from objects.core.names import ClassName
from objects.sql.tables import ClassTable
from realtime.livequery import trigger_calls
from realtime.livequery.access import current_table
from realtime.livequery.groups import Subscription
from realtime.livequery.trigger_calls import AuthorizedQuery

Renewed: TypeAlias = AuthorizedQuery | ServiceError


def renewed(
    subscriptions: Collection[Subscription], change: Change | None
) -> list[tuple[Subscription, Renewed]]:
    """What each may see now, or why it may not: of the class as it is with ``change``, or, without
    one, as it is. Belongs into a thread. Raises ``ServiceUnavailable``.
    """
    tables: dict[ClassName, ClassTable | None] = {}
    if change is not None:
        tables[change.table.class_name] = change.table
    # Equal callers with the same query are evaluated once.
    by_question: dict[object, Renewed] = {}
    results: list[tuple[Subscription, Renewed]] = []
    for subscription in subscriptions:
        name, authorized, principal = (
            subscription.class_name,
            subscription.authorized,
            subscription.principal,
        )
        if name not in tables:
            tables[name] = current_table(name)
        # A cohort has one query, unless a trigger has made it the same; what a before_find
        # trigger adds can differ for each client.
        question: object = (
            authorized if authorized.effective is not authorized.requested else subscription.cohort
        )
        if triggers.has(name, "before_find"):
            question = subscription
        key = (principal.authority, principal.user_id, principal.roles, id(question))
        if key not in by_question:
            try:
                with trigger_calls.client_context(
                    subscription.socket.address, subscription.socket.headers
                ):
                    by_question[key] = trigger_calls.renew(principal, authorized, tables[name])
            except ServiceUnavailable:
                raise
            except ServiceError as error:
                by_question[key] = error
        results.append((subscription, by_question[key]))
    return results
