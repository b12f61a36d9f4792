"""Subscriptions, and the groups in which changes are matched.

Subscriptions with the same query and equal rights are one ``Group``: a change is matched once for
all of them, and each form of it is encoded once. A group is divided into cohorts by the ids that
access lists can name, so an object with an access list is compared only for those that it names.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator
from dataclasses import replace

from backend.kernel.errors import ObjectTooLarge
from backend.kernel.networks import client_network
from backend.kernel.principal import EVERYBODY, Principal
from backend.settings.conf import service_settings
from objects.core.names import ClassName
from objects.core.query.predicate import predicate
from objects.core.query.tree import Path, all_of, fields_read
from realtime.core import messages
from realtime.core.effort import comparisons
from realtime.core.outcome import fields_sent
from realtime.livequery.identities import Identity
from realtime.livequery.trigger_calls import AuthorizedQuery
from realtime.sockets.connections import Socket

Readers = frozenset[str] | None
"""The ids that an access list lets read; None is everyone."""


class Client:
    """An authenticated connection of live queries."""

    __slots__ = (
        "caller",
        "id",
        "identity",
        "needs_session",
        "recipient",
        "socket",
        "subscriptions",
    )

    def __init__(
        self,
        socket: Socket,
        client_id: str,
        caller: Principal,
        identity: Identity | None,
        *,
        needs_session: bool = False,
    ) -> None:
        self.socket = socket
        self.id = client_id
        self.caller = caller
        self.identity = identity
        self.needs_session = needs_session
        """It connected with a session that has ended: a subscription needs one of its own."""
        self.recipient = messages.recipient(client_id, caller.installation_id)
        self.subscriptions: dict[int, Subscription] = {}

    def principal(self, identity: Identity | None) -> Principal:
        """Return the current principal of a session on this connection; without one, that of the
        keys that the client sent."""
        if identity is None:
            return self.caller
        return replace(identity.principal, installation_id=self.caller.installation_id)


class Subscription:
    """One active subscription of a client.

    ``holds_identity``: the identity is its own and not its client's. ``size`` is the length of the
    message that started it, ``memory`` an estimate of the bytes that it takes.
    """

    __slots__ = (
        "authorized",
        "client",
        "cohort",
        "holds_identity",
        "identity",
        "memory",
        "middle",
        "request_id",
        "size",
        "socket",
    )

    def __init__(
        self,
        client: Client,
        request_id: int,
        authorized: AuthorizedQuery,
        identity: Identity | None,
        size: int,
        memory: int,
        *,
        holds_identity: bool = False,
    ) -> None:
        self.client = client
        self.socket = client.socket
        self.request_id = request_id
        self.authorized = authorized
        self.identity = identity
        self.size = size
        self.memory = memory
        self.holds_identity = holds_identity
        self.middle = messages.event_middle(client.recipient, request_id)
        self.cohort: Cohort | None = None
        """Its place in a group; None once it has ended."""

    @property
    def class_name(self) -> ClassName:
        """The class of its objects."""
        return self.authorized.effective.class_name

    @property
    def principal(self) -> Principal:
        """The current principal."""
        return self.client.principal(self.identity)

    def send_too_large(self, what: str) -> None:
        """Send the error for a message larger than the send queue, which would close the
        connection."""
        self.send_error(ObjectTooLarge.code, f"{what} is too large to be sent.")

    def send_error(self, code: int, text: str) -> None:
        """Send an error about this subscription."""
        frame = messages.error(code, text, reconnect=False, request_id=self.request_id)
        self.socket.enqueue(frame)


class Cohort:
    """Subscriptions of a group with the same ids in access lists; ``acl_ids`` None: every list."""

    __slots__ = ("acl_ids", "group", "subscriptions")

    def __init__(self, group: Group, acl_ids: Readers) -> None:
        self.group = group
        self.acl_ids = acl_ids
        self.subscriptions: dict[Subscription, None] = {}

    def can_read(self, readers: Readers) -> bool:
        """Whether an access list with these readers lets them read."""
        return readers is None or self.acl_ids is None or not readers.isdisjoint(self.acl_ids)


class Group:
    """Subscriptions with one query and equal rights. ``matches`` doesn't compare access lists."""

    __slots__ = (
        "_by_reader",
        "access",
        "cohorts",
        "comparisons",
        "fields",
        "key",
        "matches",
        "needs",
        "query",
        "rights_need",
        "watch",
    )

    def __init__(self, key: Hashable, authorized: AuthorizedQuery) -> None:
        query = authorized.effective
        self.key = key
        self.access = authorized.access
        self.query = all_of(query.where, authorized.access.condition)
        self.matches = predicate(self.query, class_name=query.class_name)
        self.comparisons = comparisons(self.query)
        self.fields: frozenset[str] | None = (
            None if query.keys is None else fields_sent(path[0] for path in query.keys)
        )
        self.watch: tuple[Path, ...] | None = query.watch
        self.rights_need = fields_read(authorized.access.condition)
        self.needs = fields_read(self.query) | {path[0] for path in self.watch or ()}
        self.cohorts: dict[Readers, Cohort] = {}
        self._by_reader: dict[str, dict[Cohort, None]] = {}

    def add(self, subscription: Subscription) -> None:
        """Add a subscription."""
        ids = subscription.authorized.access.acl_ids
        cohort = self.cohorts.get(ids)
        if cohort is None:
            cohort = self.cohorts[ids] = Cohort(self, ids)
            for acl_id in _named_ids(ids):
                self._by_reader.setdefault(acl_id, {})[cohort] = None
        cohort.subscriptions[subscription] = None
        subscription.cohort = cohort

    def remove(self, subscription: Subscription) -> None:
        """Remove a subscription."""
        cohort = subscription.cohort
        assert cohort is not None
        subscription.cohort = None
        del cohort.subscriptions[subscription]
        if cohort.subscriptions:
            return
        del self.cohorts[cohort.acl_ids]
        for acl_id in _named_ids(cohort.acl_ids):
            cohorts = self._by_reader[acl_id]
            del cohorts[cohort]
            if not cohorts:
                del self._by_reader[acl_id]

    def cohorts_for(self, *lists: Readers) -> list[Cohort]:
        """Return the cohorts that may read an object under one of these access lists."""
        cohorts: dict[Cohort, None] = {}
        for readers in lists:
            if readers is None:
                return list(self.cohorts.values())
            for reader in readers:
                cohorts.update(self._by_reader.get(reader, {}))
        always = self.cohorts.get(None)
        if always is not None:
            cohorts[always] = None
        return list(cohorts)

    def lacks(self, left_out: Collection[str]) -> bool:
        """Whether an event can't be made of an object without these fields."""
        return bool(left_out) and (
            self.fields is None
            or "*" in self.needs
            or not self.needs.isdisjoint(left_out)
            or not self.fields.isdisjoint(left_out)
        )

    def networks(self) -> frozenset[str]:
        """Return the networks of the clients; empty if one has the master key or an unknown
        address: their time isn't limited."""
        networks: set[str] = set()
        for subscription in self.subscriptions():
            network = client_network(subscription.socket.address)
            if not network or subscription.client.caller.is_master:
                return frozenset()
            networks.add(network)
        return frozenset(networks)

    def subscriptions(self) -> Iterator[Subscription]:
        """Yield all subscriptions."""
        for cohort in self.cohorts.values():
            yield from cohort.subscriptions


def is_too_large(body: bytes | str) -> bool:
    """Whether a body is larger than a client's send queue."""
    return len(body) > service_settings.WS_SEND_QUEUE


def group_key(authorized: AuthorizedQuery) -> Hashable:
    """Return a key that is equal for subscriptions of one group."""
    query = authorized.effective
    # A tree can't be a key (1 == True), but its text can.
    return (
        query.class_name,
        repr(query.where),
        query.keys,
        query.watch,
        authorized.access.rights,
    )


def _named_ids(ids: Readers) -> frozenset[str]:
    # A list that names everyone is like no list.
    return frozenset() if ids is None else ids - {EVERYBODY}
