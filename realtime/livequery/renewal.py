"""Evaluate again what subscribers may see, after the class or their roles have changed."""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeAlias

from backend.kernel.errors import ServiceError, ServiceUnavailable
from objects import triggers
from objects.changes import Change
from objects.core.names import ClassName
from objects.sql.tables import ClassTable
from realtime.livequery import events
from realtime.livequery.access import current_table
from realtime.livequery.events import Admitted
from realtime.livequery.subscriptions import Subscription

Renewed: TypeAlias = Admitted | ServiceError


def renewed(
    subscriptions: Collection[Subscription], change: Change | None
) -> list[tuple[Subscription, Renewed]]:
    """What each may see now, or why it may not: of the class as it is with ``change``, or, without
    one, as it is. Belongs into a thread. Raises ``ServiceUnavailable``.
    """
    tables: dict[ClassName, ClassTable | None] = {}
    if change is not None:
        tables[change.table.class_name] = change.table
    # Callers who are alike and ask the same are asked about once.
    by_question: dict[object, Renewed] = {}
    results: list[tuple[Subscription, Renewed]] = []
    for subscription in subscriptions:
        name, admitted, principal = (
            subscription.class_name,
            subscription.admitted,
            subscription.principal,
        )
        if name not in tables:
            tables[name] = current_table(name)
        # Of a cohort all ask the same, unless a trigger has made it the same; what a trigger
        # before a find adds may be another's for each client.
        question: object = (
            admitted if admitted.told is not admitted.question else subscription.cohort
        )
        if triggers.has(name, "before_find"):
            question = subscription
        key = (principal.authority, principal.user_id, principal.roles, id(question))
        if key not in by_question:
            try:
                with events.calling(subscription.socket.address, subscription.socket.headers):
                    by_question[key] = events.renew(principal, admitted, tables[name])
            except ServiceUnavailable:
                raise
            except ServiceError as error:
                by_question[key] = error
        results.append((subscription, by_question[key]))
    return results
