"""The subscriptions of a process, by class and by group."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from realtime.core.subscription_index import SubscriptionIndex
from realtime.livequery.groups import Group, Subscription, group_key
from realtime.livequery.notifications import DecodedChange


class LiveClass:
    """The subscriptions to the objects of one class."""

    def __init__(self) -> None:
        self.groups: dict[Hashable, Group] = {}
        self.index: SubscriptionIndex[Group] = SubscriptionIndex()
        self._of_version: dict[int, int] = {}

    def add(self, subscription: Subscription) -> None:
        """Add a subscription."""
        authorized = subscription.authorized
        key = group_key(authorized)
        group = self.groups.get(key)
        if group is None:
            group = self.groups[key] = Group(key, authorized)
            self.index.add(group, group.query)
        group.add(subscription)
        version = authorized.access.version
        self._of_version[version] = self._of_version.get(version, 0) + 1

    def remove(self, subscription: Subscription) -> None:
        """Remove a subscription."""
        assert subscription.cohort is not None
        group = subscription.cohort.group
        group.remove(subscription)
        if not group.cohorts:
            del self.groups[group.key]
            self.index.remove(group)
        version = subscription.authorized.access.version
        self._of_version[version] -= 1
        if not self._of_version[version]:
            del self._of_version[version]

    def candidates(self, decoded: DecodedChange) -> Iterable[Group]:
        """Return the groups that a change may concern."""
        if decoded.change.left_out:
            # By fields that an image lacks, the index would exclude groups that it may match.
            return list(self.groups.values())
        return self.index.candidates(*decoded.images)

    def subscriptions(self) -> list[Subscription]:
        """Return all subscriptions."""
        return [
            subscription for group in self.groups.values() for subscription in group.subscriptions()
        ]

    def outdated_subscriptions(self, version: int) -> list[Subscription]:
        """Return the subscriptions whose rights are of an earlier version of the class."""
        if all(existing >= version for existing in self._of_version):
            return []
        return [
            subscription
            for group in self.groups.values()
            if group.access.version < version
            for subscription in group.subscriptions()
        ]
