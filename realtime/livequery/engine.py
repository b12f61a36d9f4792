"""Live queries of one process: subscriptions, and the publication of committed changes.

All state belongs to the event loop. Database queries and a deployment's code run in threads; their
results are applied in one step afterwards, if they are still valid then.
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
from realtime.livequery.classes import LiveClass
from realtime.livequery.event_triggers import EventTriggers, PendingEvent
from realtime.livequery.feed import RETRY, Feed
from realtime.livequery.groups import Client, Group, Subscription, is_too_large
from realtime.livequery.identities import SESSIONS, Identities, Identity, SessionChanges
from realtime.livequery.notifications import (
    DecodedChange,
    Notification,
    match,
    notifications,
    readers,
)
from realtime.livequery.renewal import RenewalResult, renew_all
from realtime.livequery.trigger_calls import Counts, has_event_triggers
from realtime.process.process import Process
from realtime.process.shares import Shares
from realtime.process.time_slice import TimeSlice
from realtime.sockets.connections import TRY_AGAIN
from realtime.sockets.threads import FairThreads, Requester, Threads

_TOO_COSTLY: Final = "The query has too many constraints for an object with such long lists."
_TIME_EXHAUSTED: Final = (
    "Queries of this address take too long to match: use fewer or simpler ones."
)
_SESSION_ENDED: Final = 209
_MEBIBYTE: Final = 1024 * 1024
_MEMORY: Final = 2048 * _MEBIBYTE  # where MEMORY_LIMIT is 0

log = get_logger("livequery")
T = TypeVar("T")


class LiveQueries:
    """A ``Part`` of the realtime process."""

    name = "livequery"

    def __init__(self, process: Process) -> None:
        self._process = process
        self._identities = Identities()
        self._clients: dict[Client, None] = {}
        self._classes: dict[str, LiveClass] = {}
        self._subscriptions_of: dict[Identity, dict[Subscription, None]] = {}
        self._feed: Feed | None = None
        self._feeding = asyncio.Event()
        # Captured classes, and those whose capture was requested, with the number of requests.
        self._captured: frozenset[str] = frozenset()
        self._pending_classes: dict[str, int] = {}
        self._threads = FairThreads("livequery-requests")
        # Connecting clients wait for each other and for their triggers; changes of rights and
        # events wait for neither.
        self._renewals = Threads("livequery-renewing", 1)
        self._triggers = Threads("livequery-triggers")
        # Costly matching, so that only live queries wait for it.
        self._matching = Threads("livequery-matching", 1)
        self._time = MatchingTime()
        self._event_triggers = EventTriggers(self._triggers.run, self.counts)
        self._subscriptions = 0
        # Of subscriptions, including those that are being set up.
        most = (settings.MEMORY_LIMIT * _MEBIBYTE or _MEMORY) // 4
        self.memory = Shares("Subscriptions", most, most // 8)
        self._changes = 0
        self._events = 0
        self._lag = 0.0

    async def run(self) -> None:
        """Publish changes until cancelled."""
        # After a restart of this part changes may have been missed.
        for client in list(self._clients):
            self._disconnect(client)
        self._feed = feed = Feed(self._identities, self.publish)
        self._captured = frozenset()
        unlisten = self._process.listener.subscribe(Reader.CHANNEL, lambda _payload: feed.wake())
        self._feeding.set()
        try:
            await feed.run()
        finally:
            self._feeding.clear()
            unlisten()
            self._event_triggers.stop()
            for threads in (self._threads, self._renewals, self._triggers, self._matching):
                await threads.close()

    def status(self) -> dict[str, Any]:
        """Return figures (see ``Part``). ``lag`` is the age of the last change when it was sent."""
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
        """Return the figures that triggers get."""
        return Counts(len(self._clients), self._subscriptions)

    async def in_thread(self, requester: Requester, work: Callable[[], T]) -> T:
        """Run a client's request that needs the database or a deployment's code in a thread, as
        ``FairThreads`` does."""
        return await self._threads.run_for(requester, work)

    def drop_requests(self, requester: Requester) -> None:
        """Drop the requests of a closed connection that haven't started."""
        self._threads.drop_requests(requester)

    # -- Clients --------------------------------------------------------------------------------

    def add_client(self, client: Client) -> None:
        """Add a connected client. Its identity is released when it is removed."""
        self._clients[client] = None

    def remove_client(self, client: Client) -> None:
        """Remove a client and its subscriptions."""
        if client not in self._clients:
            return
        del self._clients[client]
        for subscription in list(client.subscriptions.values()):
            self._remove_subscription(subscription)
        self.release_identity(client.identity)
        self._release_classes()

    def is_connected(self, client: Client) -> bool:
        """Whether a client is connected."""
        return client in self._clients

    async def authenticate(self, requester: Requester, token: str) -> Identity:
        """Return the bearer of a session token, to be released. Raises ``InvalidSessionToken``."""
        # A session can end while it is authenticated: that has to be noticed.
        await self.capture(SESSIONS)
        try:
            return await self.in_thread(requester, lambda: self._identities.authenticate(token))
        finally:
            self.release_capture(SESSIONS)

    def release_identity(self, identity: Identity | None) -> None:
        """Release an identity that ``authenticate`` returned."""
        if identity is not None:
            self._identities.release(identity)
            self._release_classes()

    # -- Subscriptions --------------------------------------------------------------------------

    def add_subscription(self, subscription: Subscription) -> None:
        """Start a subscription; its class has to be captured."""
        self._classes.setdefault(subscription.class_name, LiveClass()).add(subscription)
        subscription.client.subscriptions[subscription.request_id] = subscription
        if subscription.identity is not None:
            self._subscriptions_of.setdefault(subscription.identity, {})[subscription] = None
        self._subscriptions += 1
        self.memory.hold(subscription.socket.address, subscription.memory)

    def remove_subscription(self, subscription: Subscription) -> None:
        """End a subscription. The client isn't notified."""
        self._remove_subscription(subscription)
        self._release_classes()

    def _remove_subscription(self, subscription: Subscription) -> None:
        if subscription.cohort is None:
            return
        name = subscription.class_name
        self._classes[name].remove(subscription)
        if not self._classes[name].groups:
            del self._classes[name]
        del subscription.client.subscriptions[subscription.request_id]
        self._subscriptions -= 1
        self.memory.release(subscription.socket.address, subscription.memory)
        identity = subscription.identity
        if identity is not None:
            subscriptions = self._subscriptions_of[identity]
            del subscriptions[subscription]
            if not subscriptions:
                del self._subscriptions_of[identity]
            if subscription.holds_identity:
                self._identities.release(identity)

    async def capture(self, class_name: ClassName) -> None:
        """Capture a class until ``release_capture`` is called and it has no subscriptions.

        Raises ``ServiceUnavailable`` if it can't be captured.
        """
        self._pending_classes[class_name] = self._pending_classes.get(class_name, 0) + 1
        try:
            while class_name not in self._captured:
                await self._feeding.wait()
                assert self._feed is not None
                captured = await self._feed.request(self._required_classes())
                # Other subscriptions may have started or ended meanwhile.
                self._captured = captured & self._required_classes()
        except BaseException:
            self.release_capture(class_name)
            raise

    def release_capture(self, class_name: ClassName) -> None:
        """Undo ``capture``: its caller has subscribed, or no longer needs it."""
        self._pending_classes[class_name] -= 1
        if not self._pending_classes[class_name]:
            del self._pending_classes[class_name]
        self._release_classes()

    def _required_classes(self) -> frozenset[str]:
        names = {*self._classes, *self._pending_classes}
        if len(self._identities):
            names.add(SESSIONS)
        return frozenset(names)

    def _release_classes(self) -> None:
        required = self._required_classes()
        if not self._captured <= required and self._feed is not None:
            self._captured &= required
            self._feed.release(required)

    # -- Changes --------------------------------------------------------------------------------

    async def publish(self, batch: Batch, effects: SessionChanges) -> None:
        """Send subscribers the changes of a batch, and its effects on their sessions."""
        gaps = [self._classes[name] for name in batch.gap if name in self._classes]
        for client in {
            subscription.client: None
            for live_class in gaps
            for subscription in live_class.subscriptions()
        }:
            self._disconnect(client)
        for identity in effects.ended:
            for subscription in list(self._subscriptions_of.get(identity, ())):
                subscription.send_error(_SESSION_ENDED, "Invalid session token")
                self.remove_subscription(subscription)
        changed = [
            subscription
            for identity in effects.changed
            for subscription in self._subscriptions_of.get(identity, ())
        ]
        if changed:
            await self._renew(changed, None)
        time_slice = TimeSlice()
        for change in batch.changes:
            await self._publish_change(change, time_slice)

    async def _publish_change(self, change: Change, time_slice: TimeSlice) -> None:
        name, version = change.table.class_name, change.table.version
        # Subscriptions start and end while rights are read; the last check covers the recipients.
        while (live_class := self._classes.get(name)) and (
            outdated := live_class.outdated_subscriptions(version)
        ):
            await self._renew(outdated, change)
        if live_class is None:
            return
        decoded = DecodedChange(change)
        self._changes += 1
        self._lag = time() - change.at
        for group in live_class.candidates(decoded):
            try:
                if group.lacks(change.left_out):
                    for subscription in readers(decoded, group):
                        subscription.send_too_large(f"A change of {change.object_id}")
                    continue
                effort = decoded.effort(group)
                if effort > MOST:
                    self._end_group(group, Timeout(_TOO_COSTLY))
                    continue
                started_at = monotonic()
                if self._has_no_time(group, started_at):
                    self._end_group(group, Timeout(_TIME_EXHAUSTED))
                    continue
                matched = (
                    match(decoded, group)
                    if effort <= QUICK
                    else await self._matching.run(partial(match, decoded, group))
                )
                now = monotonic()
                if now - started_at > NOTICED:
                    self._time.spend(group.networks(), now - started_at, now)
                if matched is not None:
                    for notification in notifications(decoded, group, matched):
                        self._send(decoded, group, notification)
            except Exception as error:
                log.error("live query failed", class_name=name, exc_info=error)
                self._end_group(group, InternalError("Internal server error."))
            if time_slice.is_over:
                await time_slice.renew()

    def _has_no_time(self, group: Group, now: float) -> bool:
        """Whether all networks of the group have used up their time while others wait."""
        exhausted = self._time.exhausted_networks(now)
        if not exhausted:
            return False
        networks = group.networks()
        return (
            bool(networks)
            and networks <= exhausted
            and any(
                client_network(client.socket.address) not in exhausted for client in self._clients
            )
        )

    def _end_group(self, group: Group, error: ServiceError) -> None:
        for subscription in list(group.subscriptions()):
            subscription.send_error(error.code, error.message)
            self.remove_subscription(subscription)

    def _send(self, decoded: DecodedChange, group: Group, notification: Notification) -> None:
        if has_event_triggers(decoded.class_name):
            self._run_triggers(decoded, group, notification)
            return
        body = decoded.body(notification, group)
        event, op, too_large = messages.event, notification.op, is_too_large(body)
        for cohort in notification.cohorts:
            for subscription in cohort.subscriptions:
                if too_large:
                    subscription.send_too_large(f"{op} of {decoded.change.object_id}")
                else:
                    subscription.socket.enqueue(event(op, subscription.middle, body))
            self._events += len(cohort.subscriptions)

    def _run_triggers(
        self, decoded: DecodedChange, group: Group, notification: Notification
    ) -> None:
        obj = None if notification.object is None else decoded.image(notification.object)
        original = None if notification.original is None else decoded.image(notification.original)
        for cohort in notification.cohorts:
            for subscription in cohort.subscriptions:
                pending = PendingEvent(
                    subscription,
                    subscription.authorized.access,
                    group.fields,
                    notification.op,
                    decoded.change.object_id,
                    obj,
                    original,
                )
                self._event_triggers.put(decoded.class_name, pending)
            self._events += len(cohort.subscriptions)

    async def _renew(self, subscriptions: Collection[Subscription], change: Change | None) -> None:
        """Evaluate again what subscribers may see: of the class as it is with this change, or as
        it is now. Subscriptions that are no longer allowed are notified and end."""
        active = [item for item in subscriptions if item.cohort is not None]
        while True:
            try:
                results = await self._renewals.run(lambda: renew_all(active, change))
                break
            except ServiceUnavailable as error:
                log.warning("rights of live queries can't be read", error=error.message)
                await asyncio.sleep(RETRY)
        for subscription, authorized in results:
            self._apply_access(subscription, authorized)

    def _apply_access(self, subscription: Subscription, authorized: RenewalResult) -> None:
        if subscription.cohort is None:
            return
        if isinstance(authorized, ServiceError):
            subscription.send_error(authorized.code, authorized.message)
            self.remove_subscription(subscription)
            return
        live_class = self._classes[subscription.class_name]
        live_class.remove(subscription)
        subscription.authorized = authorized
        live_class.add(subscription)

    def _disconnect(self, client: Client) -> None:
        self.remove_client(client)
        client.socket.close_with(TRY_AGAIN, "changes were missed")
