"""The captured changes that a reader has still to read, in the order in which it reads them.

Classes take turns, so that many changes of one don't delay those of another. Large changes wait
apart and are read one at a time, each after a batch of small ones. The changes of an object keep
their order: behind a large one they wait with it. Changes of sessions are read before all others,
whatever their size: the user of a session must not be shown what was committed after its end.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from backend.kernel.limits.fair_queue import Turns
from objects.changes.images import Place
from objects.core.names import SESSION

LARGE: Final = 256 * 1024
"""Bytes of both images of a change from which it is read alone."""
_MOST: Final = 1000  # changes of one batch
_MOST_BYTES: Final = 1024 * 1024

_Object = tuple[str, str]


class PlaceQueue:
    """The places that wait. Not thread-safe."""

    def __init__(self) -> None:
        self._small: Turns[Place] = Turns()
        self._large: Turns[Place] = Turns()
        # Places in each, by object.
        self._of_small: Counter[_Object] = Counter()
        self._of_large: Counter[_Object] = Counter()
        self._is_large_next = False

    def __len__(self) -> int:
        return len(self._small) + len(self._large)

    def put(self, place: Place) -> None:
        """Add a place, behind those of its object."""
        name, changed = place.class_name, _object(place)
        if name == SESSION or (place.size < LARGE and changed not in self._of_large):
            self._small.put(name, place)
            self._of_small[changed] += 1
        else:
            self._large.put(name, place)
            self._of_large[changed] += 1

    def take(self) -> list[Place]:
        """Remove the places of the next batch and return them; none if nothing waits."""
        is_large = self._is_large_next or not len(self._small)
        self._is_large_next = not is_large
        if is_large:
            taken = self._large.take(self._has_no_earlier)
            if taken is not None:
                _decrement(self._of_large, taken[1])
                return [taken[1]]
        places: list[Place] = []
        size = 0
        while len(places) < _MOST and size < _MOST_BYTES:
            taken = self._small.take(_is_sessions) or self._small.take(_any_class)
            if taken is None:
                break
            places.append(taken[1])
            _decrement(self._of_small, taken[1])
            size += taken[1].size
        return places

    def clear(self) -> set[str]:
        """Remove all places and return the names of their classes."""
        names = {*self._small, *self._large}
        self._small, self._large = Turns(), Turns()
        self._of_small.clear()
        self._of_large.clear()
        return names

    def _has_no_earlier(self, class_name: str) -> bool:
        """Whether the next large change of a class is the next one of its object."""
        return _object(self._large.first(class_name)) not in self._of_small


def _object(place: Place) -> _Object:
    return place.class_name, place.object_id


def _decrement(counts: Counter[_Object], place: Place) -> None:
    changed = _object(place)
    counts[changed] -= 1
    if not counts[changed]:
        del counts[changed]


def _is_sessions(class_name: str) -> bool:
    return class_name == SESSION


def _any_class(_class_name: str) -> bool:
    return True
