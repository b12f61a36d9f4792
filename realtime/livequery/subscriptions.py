"""Subscriptions, and the groups in which they are answered.

Subscriptions that ask the same question with the same rights are one ``Group``: a change is matched
once for all of them, and what they are sent is encoded once. Inside a group they are divided by
whom access lists have to name for them (``Cohort``), so that an object with an access list visits
only those whom it names.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import replace

from backend.kernel.errors import ObjectTooLarge
from backend.kernel.networks import client_network
from backend.kernel.principal import EVERYBODY, Principal
from backend.settings.conf import service_settings
from objects.core.names import ClassName
from objects.core.query.predicate import predicate
from objects.core.query.tree import Path, all_of
from realtime.core import messages
from realtime.core.effort import comparisons
from realtime.core.outcome import fields_sent
from realtime.livequery.events import Admitted
from realtime.livequery.identities import Identity
from realtime.sockets.connections import Socket

Readers = frozenset[str] | None
"""Whom an access list lets read; None is everybody."""


class Client:
    """What live queries know of a connection that has said who it is."""

    __slots__ = ("caller", "id", "identity", "said_to", "socket", "subscriptions")

    def __init__(
        self, socket: Socket, client_id: str, caller: Principal, identity: Identity | None
    ) -> None:
        self.socket = socket
        self.id = client_id
        self.caller = caller
        self.identity = identity
        self.said_to = messages.said_to(client_id, caller.installation_id)
        self.subscriptions: dict[int, Subscription] = {}

    def principal(self, identity: Identity | None) -> Principal:
        """The bearer of a session on this connection, as of now; without one, the holder of the
        keys that were shown."""
        if identity is None:
            return self.caller
        return replace(identity.principal, installation_id=self.caller.installation_id)


class Subscription:
    """One request of a client, while it is answered.

    ``holds_identity``: the identity is its own and not its client's. ``size`` is the length of the
    message that asked for it, ``memory`` about the bytes that it takes.
    """

    __slots__ = (
        "admitted",
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
        admitted: Admitted,
        identity: Identity | None,
        size: int,
        memory: int,
        *,
        holds_identity: bool = False,
    ) -> None:
        self.client = client
        self.socket = client.socket
        self.request_id = request_id
        self.admitted = admitted
        self.identity = identity
        self.size = size
        self.memory = memory
        self.holds_identity = holds_identity
        self.middle = messages.event_middle(client.said_to, request_id)
        self.cohort: Cohort | None = None
        """Where it is answered; None as soon as it has ended."""

    @property
    def class_name(self) -> ClassName:
        """The class whose objects it is about."""
        return self.admitted.told.class_name

    @property
    def principal(self) -> Principal:
        """Who asks, as of now."""
        return self.client.principal(self.identity)

    def say_too_large(self, what: str) -> None:
        """Tell the client that this is larger than all that may wait for it; sending it would be
        the end of the connection."""
        self.say(ObjectTooLarge.code, f"{what} is too large to be sent.")

    def say(self, code: int, text: str) -> None:
        """Tell the client what is wrong with it."""
        frame = messages.error(code, text, reconnect=False, request_id=self.request_id)
        self.socket.enqueue(frame)


class Cohort:
    """The subscriptions of a group that access lists name alike; ``acl_ids`` None: always."""

    __slots__ = ("acl_ids", "group", "subscriptions")

    def __init__(self, group: Group, acl_ids: Readers) -> None:
        self.group = group
        self.acl_ids = acl_ids
        self.subscriptions: dict[Subscription, None] = {}

    def reads(self, readers: Readers) -> bool:
        """Whether an access list with these readers lets them read."""
        return readers is None or self.acl_ids is None or not readers.isdisjoint(self.acl_ids)


class Group:
    """Subscriptions with one question and equal rights. ``finds`` leaves access lists aside."""

    __slots__ = (
        "_by_reader",
        "access",
        "cohorts",
        "comparisons",
        "fields",
        "finds",
        "key",
        "query",
        "watch",
    )

    def __init__(self, key: Hashable, admitted: Admitted) -> None:
        question = admitted.told
        self.key = key
        self.access = admitted.access
        self.query = all_of(question.where, admitted.access.condition)
        self.finds = predicate(self.query, class_name=question.class_name)
        self.comparisons = comparisons(self.query)
        self.fields: frozenset[str] | None = (
            None if question.keys is None else fields_sent(path[0] for path in question.keys)
        )
        self.watch: tuple[Path, ...] | None = question.watch
        self.cohorts: dict[Readers, Cohort] = {}
        self._by_reader: dict[str, dict[Cohort, None]] = {}

    def add(self, subscription: Subscription) -> None:
        """Answer it from now on."""
        ids = subscription.admitted.access.acl_ids
        cohort = self.cohorts.get(ids)
        if cohort is None:
            cohort = self.cohorts[ids] = Cohort(self, ids)
            for acl_id in _named_ids(ids):
                self._by_reader.setdefault(acl_id, {})[cohort] = None
        cohort.subscriptions[subscription] = None
        subscription.cohort = cohort

    def remove(self, subscription: Subscription) -> None:
        """Answer it no more."""
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

    def named(self, *lists: Readers) -> list[Cohort]:
        """The cohorts that may read an object under one of these access lists."""
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

    def networks(self) -> frozenset[str]:
        """The networks of the clients who ask; empty if one of them has the master key, or an
        address that isn't known: their time isn't limited."""
        networks: set[str] = set()
        for subscription in self.subscriptions():
            network = client_network(subscription.socket.address)
            if not network or subscription.client.caller.is_master:
                return frozenset()
            networks.add(network)
        return frozenset(networks)

    def subscriptions(self) -> Iterator[Subscription]:
        """All of them."""
        for cohort in self.cohorts.values():
            yield from cohort.subscriptions


def is_too_large(body: bytes | str) -> bool:
    """Whether this is more than what may wait for a client."""
    return len(body) > service_settings.WS_SEND_QUEUE


def group_key(admitted: Admitted) -> Hashable:
    """The same for subscriptions that may be one group."""
    question = admitted.told
    # A tree is no key (1 == True), its text is one.
    return (
        question.class_name,
        repr(question.where),
        question.keys,
        question.watch,
        admitted.access.rights,
    )


def _named_ids(ids: Readers) -> frozenset[str]:
    # A list that names everybody reads as none at all.
    return frozenset() if ids is None else ids - {EVERYBODY}
