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

RenewalResult: TypeAlias = AuthorizedQuery | ServiceError


def renew_all(
    subscriptions: Collection[Subscription], change: Change | None
) -> list[tuple[Subscription, RenewalResult]]:
    """Return the new rights of each subscription, or the error that ends it.

    The class is that of ``change``, or without a change the current one. Blocking; call it in a
    thread. Raises ``ServiceUnavailable``.
    """
    tables: dict[ClassName, ClassTable | None] = {}
    if change is not None:
        tables[change.table.class_name] = change.table
    # Equal callers with the same query are evaluated once.
    by_key: dict[object, RenewalResult] = {}
    results: list[tuple[Subscription, RenewalResult]] = []
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
        shared: object = (
            authorized if authorized.effective is not authorized.requested else subscription.cohort
        )
        if triggers.has(name, "before_find"):
            shared = subscription
        key = (principal.authority, principal.user_id, principal.roles, id(shared))
        if key not in by_key:
            try:
                socket = subscription.socket
                with trigger_calls.client_context(
                    socket.address, socket.headers, request_id=socket.request_id
                ):
                    by_key[key] = trigger_calls.renew(principal, authorized, tables[name])
            except ServiceUnavailable:
                raise
            except ServiceError as error:
                by_key[key] = error
        results.append((subscription, by_key[key]))
    return results
