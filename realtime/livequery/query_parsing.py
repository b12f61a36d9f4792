"""Parsing of clients' queries. Rights aren't checked here."""

from __future__ import annotations

from backend.kernel.errors import OperationForbidden
from backend.settings.conf import service_settings
from objects.core.names import ClassName, check_class_name, check_key_path
from objects.core.query.parser import parse_where
from realtime.core.messages import LiveQuery
from realtime.livequery.trigger_calls import SubscriptionQuery

_DISABLED = ("none",)


def check_class(name: str) -> ClassName:
    """Return the class of a query.

    Raises ``InvalidClassName``, or ``OperationForbidden`` if the class has no live queries.
    """
    class_name = check_class_name(name)
    allowed = service_settings.LIVE_QUERY_CLASSES
    if allowed == _DISABLED:
        raise OperationForbidden("Live queries are switched off.")
    if allowed and class_name not in allowed:
        raise OperationForbidden(f"Live queries aren't switched on for the class {class_name}.")
    return class_name


def parse_query(query: LiveQuery, *, as_master: bool) -> SubscriptionQuery:
    """Parse a client's query. Call it in a thread: a long ``where`` takes a while.

    Raises what ``parse_where`` raises, and ``InvalidKeyName`` for names that no field has.
    """
    where = parse_where(query.where, allow_internal=as_master)
    keys = query.selected
    return SubscriptionQuery(
        class_name=check_class_name(query.class_name),
        where=where,
        keys=None if keys is None else frozenset(check_key_path(name) for name in keys),
        watch=None if query.watch is None else tuple(sorted(map(check_key_path, query.watch))),
        raw_where=query.where,
    )
