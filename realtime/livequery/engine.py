"""Live queries of one process: who is subscribed to what, and the telling of committed changes.

All of the state is the event loop's. What asks the database or runs a deployment's code does so in
a thread, and what it found is put into force in one step afterwards, if it still holds then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from functools import partial
from time import monotonic, time
from typing import Any, Final, TypeVar

from django.conf import settings

from backend.kernel.errors import InternalError, ServiceError, ServiceUnavailable, Timeout
from backend.kernel.networks import client_network
from backend.logs.setup import get_logger
from objects.changes import Batch, Change, Reader
from objects.core.names import ClassName
from realtime.core import messages
from realtime.core.effort import MOST, QUICK
from realtime.core.matching_time import NOTICED, MatchingTime
from realtime.livequery.after_events import Afterwards, Happened
from realtime.livequery.classes import LiveClass
from realtime.livequery.events import Counts, is_told
from realtime.livequery.feed import RETRY, Feed
from realtime.livequery.identities import SESSIONS, Followed, Identities, Identity
from realtime.livequery.notifications import Seen, Telling, match, tellings
from realtime.livequery.renewal import Renewed, renewed
from realtime.livequery.subscriptions import Client, Group, Subscription, is_too_large
from realtime.process.process import Process
from realtime.process.shares import Shares
from realtime.sockets.connections import TRY_AGAIN
from realtime.sockets.threads import Asker, FairThreads, Threads

_SLICE: Final = 0.01
"""Seconds for which changes are sent before others have their turn in the event loop."""
_TOO_COSTLY: Final = "The query has too many constraints for an object with such long lists."
_NO_TIME_LEFT: Final = "Queries of this address take too long to match: ask fewer or simpler ones."
_SESSION_ENDED: Final = 209
_MEBIBYTE: Final = 1024 * 1024
_MEMORY: Final = 2048 * _MEBIBYTE  # where MEMORY_LIMIT is 0

log = get_logger("livequery")
T = TypeVar("T")


class Turn:
    """The time for which the event loop may be held, before others have their turn."""

    def __init__(self) -> None:
        self._began = monotonic()

    @property
    def is_over(self) -> bool:
        return monotonic() - self._began > _SLICE

    async def pass_on(self) -> None:
        """Let others have theirs, then begin another one."""
        await asyncio.sleep(0)
        self._began = monotonic()


class LiveQueries:
    """A ``Part`` of the realtime process."""

    name = "livequery"

    def __init__(self, process: Process) -> None:
        self._process = process
        self._identities = Identities()
        self._clients: dict[Client, None] = {}
        self._classes: dict[str, LiveClass] = {}
        self._of_identity: dict[Identity, dict[Subscription, None]] = {}
        self._feed: Feed | None = None
        self._feeding = asyncio.Event()
        # Classes that are captured, and those that are relied on before they count.
        self._captured: frozenset[str] = frozenset()
        self._coming: dict[str, int] = {}
        self._threads = FairThreads("livequery-asking")
        # Clients who come wait for each other and for the triggers that they meet; changes of
        # rights and events wait for neither.
        self._renewals = Threads("livequery-renewing", 1)
        self._triggers = Threads("livequery-triggers")
        # What takes long to match, so that only live queries wait for it.
        self._matching = Threads("livequery-matching", 1)
        self._time = MatchingTime()
        self._afterwards = Afterwards(self._triggers.do, self.counts)
        self._subscriptions = 0
        # Of subscriptions, those that begin too.
        most = (settings.MEMORY_LIMIT * _MEBIBYTE or _MEMORY) // 4
        self.memory = Shares("Subscriptions", most, most // 8)
        self._changes = 0
        self._events = 0
        self._lag = 0.0

    async def run(self) -> None:
        """Tell changes until cancelled."""
        # If this isn't the first time, something may have been missed.
        for client in list(self._clients):
            self._send_away(client)
        self._feed = feed = Feed(self._identities, self.tell)
        self._captured = frozenset()
        unlisten = self._process.listener.subscribe(Reader.CHANNEL, lambda _payload: feed.wake())
        self._feeding.set()
        try:
            await feed.run()
        finally:
            self._feeding.clear()
            unlisten()
            self._afterwards.stop()
            for threads in (self._threads, self._renewals, self._triggers, self._matching):
                await threads.close()

    def status(self) -> dict[str, Any]:
        """Figures, as a ``Part`` gives them. ``lag`` is how old the last change was when told."""
        read_at = None if self._feed is None else self._feed.read_at
        return {
            "clients": len(self._clients),
            "subscriptions": self._subscriptions,
            "groups": sum(len(live_class.groups) for live_class in self._classes.values()),
            "classes": len(self._classes),
            "sessions": len(self._identities),
            "changes": self._changes,
            "events": self._events,
            "lag": round(self._lag, 3),
            "read": None if read_at is None else round(monotonic() - read_at, 3),
        }

    def counts(self) -> Counts:
        """The figures that triggers get."""
        return Counts(len(self._clients), self._subscriptions)

    async def in_thread(self, asker: Asker, work: Callable[[], T]) -> T:
        """Do what a client asks for, where the database or a deployment's code is needed, as
        ``FairThreads`` does it."""
        return await self._threads.do_for(asker, work)

    def drop(self, asker: Asker) -> None:
        """A connection is gone: what it has asked and wasn't begun is forgotten."""
        self._threads.drop(asker)

    # -- Clients --------------------------------------------------------------------------------

    def add_client(self, client: Client) -> None:
        """A client is connected. Its identity is released when it is removed."""
        self._clients[client] = None

    def remove_client(self, client: Client) -> None:
        """A client is gone, and its subscriptions with it."""
        if client not in self._clients:
            return
        del self._clients[client]
        for subscription in list(client.subscriptions.values()):
            self._end(subscription)
        self.release(client.identity)
        self._let_go()

    def is_here(self, client: Client) -> bool:
        """Whether a client is connected."""
        return client in self._clients

    async def prove(self, asker: Asker, token: str) -> Identity:
        """The bearer of a session token, to be released. Raises ``InvalidSessionToken``."""
        # What ends a session while it is proven has to be noticed.
        await self.capture(SESSIONS)
        try:
            return await self.in_thread(asker, lambda: self._identities.prove(token))
        finally:
            self.captured(SESSIONS)

    def release(self, identity: Identity | None) -> None:
        """An identity that was proven is used no more."""
        if identity is not None:
            self._identities.release(identity)
            self._let_go()

    # -- Subscriptions --------------------------------------------------------------------------

    def begin(self, subscription: Subscription) -> None:
        """Answer a subscription from now on; its class has to be captured."""
        self._classes.setdefault(subscription.class_name, LiveClass()).add(subscription)
        subscription.client.subscriptions[subscription.request_id] = subscription
        if subscription.identity is not None:
            self._of_identity.setdefault(subscription.identity, {})[subscription] = None
        self._subscriptions += 1
        self.memory.hold(subscription.socket.address, subscription.memory)

    def end(self, subscription: Subscription) -> None:
        """Answer a subscription no more. Nothing is said to the client."""
        self._end(subscription)
        self._let_go()

    def _end(self, subscription: Subscription) -> None:
        if subscription.cohort is None:
            return
        name = subscription.class_name
        self._classes[name].remove(subscription)
        if not self._classes[name].groups:
            del self._classes[name]
        del subscription.client.subscriptions[subscription.request_id]
        self._subscriptions -= 1
        self.memory.give_back(subscription.socket.address, subscription.memory)
        identity = subscription.identity
        if identity is not None:
            subscriptions = self._of_identity[identity]
            del subscriptions[subscription]
            if not subscriptions:
                del self._of_identity[identity]
            if subscription.holds_identity:
                self._identities.release(identity)

    async def capture(self, class_name: ClassName) -> None:
        """Have a class captured, until ``captured`` is called and it has no subscriptions.

        Raises ``ServiceUnavailable`` if that can't be had.
        """
        self._coming[class_name] = self._coming.get(class_name, 0) + 1
        try:
            while class_name not in self._captured:
                await self._feeding.wait()
                assert self._feed is not None
                in_force = await self._feed.want(self._wanted())
                # Others may have come and gone meanwhile.
                self._captured = in_force & self._wanted()
        except BaseException:
            self.captured(class_name)
            raise

    def captured(self, class_name: ClassName) -> None:
        """End what ``capture`` began: its caller has subscribed, or no longer needs it."""
        self._coming[class_name] -= 1
        if not self._coming[class_name]:
            del self._coming[class_name]
        self._let_go()

    def _wanted(self) -> frozenset[str]:
        names = {*self._classes, *self._coming}
        if len(self._identities):
            names.add(SESSIONS)
        return frozenset(names)

    def _let_go(self) -> None:
        required = self._wanted()
        if not self._captured <= required and self._feed is not None:
            self._captured &= required
            self._feed.let_go(required)

    # -- Changes --------------------------------------------------------------------------------

    async def tell(self, batch: Batch, followed: Followed) -> None:
        """Tell subscribers of a reading, and of what it has done to their sessions."""
        gaps = [self._classes[name] for name in batch.gap if name in self._classes]
        for client in {
            one.client: None for live_class in gaps for one in live_class.subscriptions()
        }:
            self._send_away(client)
        for identity in followed.ended:
            for subscription in list(self._of_identity.get(identity, ())):
                subscription.say(_SESSION_ENDED, "Invalid session token")
                self.end(subscription)
        changed = [one for who in followed.changed for one in self._of_identity.get(who, ())]
        if changed:
            await self._renew(changed, None)
        turn = Turn()
        for change in batch.changes:
            await self._tell_change(change, turn)

    async def _tell_change(self, change: Change, turn: Turn) -> None:
        name, version = change.table.class_name, change.table.version
        # Others come and go while rights are read; the last check is of those who get it.
        while (live_class := self._classes.get(name)) and (
            outdated := live_class.outdated(version)
        ):
            await self._renew(outdated, change)
        if live_class is None:
            return
        decoded = Seen(change)
        self._changes += 1
        self._lag = time() - change.at
        for group in live_class.index.candidates(*decoded.images):
            try:
                effort = decoded.effort(group)
                if effort > MOST:
                    self._give_up(group, Timeout(_TOO_COSTLY))
                    continue
                started_at = monotonic()
                if self._has_no_time(group, started_at):
                    self._give_up(group, Timeout(_NO_TIME_LEFT))
                    continue
                matched = (
                    match(decoded, group)
                    if effort <= QUICK
                    else await self._matching.do(partial(match, decoded, group))
                )
                now = monotonic()
                if now - started_at > NOTICED:
                    self._time.spend(group.networks(), now - started_at, now)
                if matched is not None:
                    for notification in tellings(decoded, group, matched):
                        self._send(decoded, group, notification)
            except Exception as error:
                log.error("live query failed", class_name=name, exc_info=error)
                self._give_up(group, InternalError("Internal server error."))
            if turn.is_over:
                await turn.pass_on()

    def _has_no_time(self, group: Group, now: float) -> bool:
        """Whether all who ask this have used up their time, and others wait for it."""
        spent = self._time.spent(now)
        if not spent:
            return False
        networks = group.networks()
        return (
            bool(networks)
            and networks <= spent
            and any(client_network(client.socket.address) not in spent for client in self._clients)
        )

    def _give_up(self, group: Group, error: ServiceError) -> None:
        for subscription in list(group.subscriptions()):
            subscription.say(error.code, error.message)
            self.end(subscription)

    def _send(self, decoded: Seen, group: Group, notification: Telling) -> None:
        if is_told(decoded.class_name):
            self._have_asked(decoded, group, notification)
            return
        body = decoded.body(notification, group)
        event, op, too_large = messages.event, notification.op, is_too_large(body)
        for cohort in notification.cohorts:
            for subscription in cohort.subscriptions:
                if too_large:
                    subscription.say_too_large(f"{op} of {decoded.change.object_id}")
                else:
                    subscription.socket.enqueue(event(op, subscription.middle, body))
            self._events += len(cohort.subscriptions)

    def _have_asked(self, decoded: Seen, group: Group, notification: Telling) -> None:
        obj = None if notification.object is None else decoded.image(notification.object)
        original = None if notification.original is None else decoded.image(notification.original)
        for cohort in notification.cohorts:
            for subscription in cohort.subscriptions:
                pending = Happened(
                    subscription,
                    subscription.admitted.access,
                    group.fields,
                    notification.op,
                    decoded.change.object_id,
                    obj,
                    original,
                )
                self._afterwards.put(decoded.class_name, pending)
            self._events += len(cohort.subscriptions)

    async def _renew(self, subscriptions: Collection[Subscription], change: Change | None) -> None:
        """Evaluate again what subscribers may see: of the class as it is with this change, or as
        it is now. Those who may see nothing any more are notified, and end."""
        active = [one for one in subscriptions if one.cohort is not None]
        while True:
            try:
                results = await self._renewals.do(lambda: renewed(active, change))
                break
            except ServiceUnavailable as error:
                log.warning("rights of live queries can't be read", error=error.message)
                await asyncio.sleep(RETRY)
        for subscription, admitted in results:
            self._put_into_force(subscription, admitted)

    def _put_into_force(self, subscription: Subscription, admitted: Renewed) -> None:
        if subscription.cohort is None:
            return
        if isinstance(admitted, ServiceError):
            subscription.say(admitted.code, admitted.message)
            self.end(subscription)
            return
        live_class = self._classes[subscription.class_name]
        live_class.remove(subscription)
        subscription.admitted = admitted
        live_class.add(subscription)

    def _send_away(self, client: Client) -> None:
        self.remove_client(client)
        client.socket.close_with(TRY_AGAIN, "changes were missed")
