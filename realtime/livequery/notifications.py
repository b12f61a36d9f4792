"""The notifications of a committed change for a group of subscriptions, and their content.

An image is decoded once, and encoded once for each set of visible fields; subscribers get the same
text after a head of their own. Nothing here waits or queries the database.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal, NamedTuple

from backend.kernel.json_types import Wire
from backend.kernel.principal import EVERYBODY
from backend.kernel.texts.encoding import encode_json
from objects.changes import Change
from objects.storage.records import Record
from realtime.core.effort import QUICK, extent
from realtime.core.messages import event_body, identity_only
from realtime.core.outcome import Op, outcome, touches
from realtime.livequery.groups import Cohort, Group, Readers, Subscription

Which = Literal["before", "after"]

_HEAD: Final = 16  # fields and elements of an object that aren't in its size, and more
_WATCHED: Final = frozenset({"create", "update"})
_HAS_ORIGINAL: Final = frozenset({"update", "enter", "leave"})


@dataclass(frozen=True, slots=True)
class Notification:
    """One event, for some cohorts of a group.

    ``object`` and ``original`` name the images to send; ``object`` None is an object that the
    subscribers may no longer read: only its class and id are sent.
    """

    op: Op
    object: Which | None
    original: Which | None
    cohorts: list[Cohort]


class DecodedChange:
    """A change with its decoded images."""

    def __init__(self, change: Change) -> None:
        self.change = change
        self.class_name = change.table.class_name
        self.before: Wire | None = None if change.before is None else change.before.object()
        self.after: Wire | None = None if change.after is None else change.after.object()
        self.readers_before = _readers(change.before)
        self.readers_after = _readers(change.after)
        self._shown: dict[_Form, bytes] = {}
        self._bodies: dict[tuple[_Form, _Form | None], bytes] = {}

    @property
    def images(self) -> list[Wire]:
        """The existing images."""
        return [image for image in (self.before, self.after) if image is not None]

    def effort(self, group: Group) -> int:
        """Return the effort to match it (``realtime.core.effort``), or an upper bound."""
        upper = group.comparisons * self._size
        return upper if upper <= QUICK else group.comparisons * self._extent

    @cached_property
    def _size(self) -> int:
        records = (self.change.before, self.change.after)
        return sum(_HEAD + record.size for record in records if record is not None)

    @cached_property
    def _extent(self) -> int:
        return sum(map(extent, self.images))

    def image(self, which: Which) -> Wire:
        """Return an existing image."""
        image = self.before if which == "before" else self.after
        assert image is not None
        return image

    def body(self, notification: Notification, group: Group) -> bytes:
        """Return what follows the head of the message for every recipient."""
        key = (
            self._form(notification.object, group),
            None if notification.original is None else self._form(notification.original, group),
        )
        body = self._bodies.get(key)
        if body is None:
            original = None if key[1] is None else self._text(key[1])
            body = self._bodies[key] = event_body(self._text(key[0]), original)
        return body

    def _form(self, which: Which | None, group: Group) -> _Form:
        if which is None:
            return (None, frozenset(), None)
        return (which, group.access.hidden_fields(self.image(which)), group.fields)

    def _text(self, form: _Form) -> bytes:
        text = self._shown.get(form)
        if text is None:
            text = self._shown[form] = self._show(*form)
        return text

    def _show(
        self, which: Which | None, hidden: frozenset[str], fields: frozenset[str] | None
    ) -> bytes:
        if which is None:
            return identity_only(self.class_name, self.change.object_id)
        record = self.change.before if which == "before" else self.change.after
        image = self.image(which)
        assert record is not None
        if fields is None and hidden.isdisjoint(image):
            # A class name has no character that JSON would escape.
            return f'{{"className":"{self.class_name}",{record.json()[1:]}'.encode()
        shown = {
            name: value
            for name, value in image.items()
            if name not in hidden and (fields is None or name in fields)
        }
        return encode_json({"className": self.class_name, **shown})


_Form = tuple[Which | None, frozenset[str], frozenset[str] | None]


def _readers(record: Record | None) -> Readers:
    if record is None or record.read_acl is None:
        return None
    ids = record.acl.read_ids
    return None if ids is None or EVERYBODY in ids else frozenset(ids)


class Matched(NamedTuple):
    """How a group matches the images, regardless of access lists."""

    matched_before: bool
    matches_after: bool
    allowed_before: bool
    allowed_after: bool
    is_watched: bool


def match(decoded: DecodedChange, group: Group) -> Matched | None:
    """Match a change with a group; None if it concerns no subscription. Only reads immutable
    parts of the group, so it can run in a thread."""
    before, after = decoded.before, decoded.after
    matched_before = before is not None and group.matches(before)
    matches_after = after is not None and group.matches(after)
    if not (matched_before or matches_after):
        return None
    # Only the image that isn't found has to be checked.
    allowed_before = matched_before or (before is not None and group.access.allows(before))
    allowed_after = matches_after or (after is not None and group.access.allows(after))
    # A new object has changed each field that it has.
    is_watched = group.watch is None or after is None or touches(group.watch, before or {}, after)
    return Matched(matched_before, matches_after, allowed_before, allowed_after, is_watched)


def notifications(decoded: DecodedChange, group: Group, matched: Matched) -> list[Notification]:
    """Return the notifications of a change for the cohorts of a group."""
    matched_before, matches_after, allowed_before, allowed_after, is_watched = matched
    before, after = decoded.before, decoded.after

    def notification(reads_before: bool, reads_after: bool) -> Notification | None:
        op = outcome(
            None if before is None else matched_before and reads_before,
            None if after is None else matches_after and reads_after,
        )
        if op is None or (op in _WATCHED and not is_watched):
            return None
        if op == "delete":
            return Notification(op, "before", None, [])
        shows_original = op in _HAS_ORIGINAL and allowed_before and reads_before
        return Notification(
            op,
            "after" if allowed_after and reads_after else None,
            "before" if shows_original else None,
            [],
        )

    kinds: dict[tuple[bool, bool], Notification | None] = {}
    for cohort in group.cohorts_for(*_lists(decoded)):
        reads = (cohort.can_read(decoded.readers_before), cohort.can_read(decoded.readers_after))
        if reads not in kinds:
            kinds[reads] = notification(*reads)
        kind = kinds[reads]
        if kind is not None:
            kind.cohorts.append(cohort)
    return [kind for kind in kinds.values() if kind is not None and kind.cohorts]


def readers(decoded: DecodedChange, group: Group) -> list[Subscription]:
    """Return the subscriptions of a group that may read an image, without matching it.

    None where that depends on fields that aren't read (``Change.left_out``).
    """
    left_out = decoded.change.left_out
    if "*" in group.rights_need or not group.rights_need.isdisjoint(left_out):
        return []
    if not any(map(group.access.allows, decoded.images)):
        return []
    cohorts = group.cohorts_for(*_lists(decoded))
    return [subscription for cohort in cohorts for subscription in cohort.subscriptions]


def _lists(decoded: DecodedChange) -> list[Readers]:
    return [
        readers
        for image, readers in (
            (decoded.before, decoded.readers_before),
            (decoded.after, decoded.readers_after),
        )
        if image is not None
    ]
