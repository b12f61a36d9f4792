"""Which backups stay: the newest one of each of so many days, weeks and months."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import Final

from backend.settings.areas.files import Keep

_PERIODS: Final[Mapping[str, Callable[[datetime], tuple[int, ...]]]] = {
    "h": lambda at: (at.year, at.month, at.day, at.hour),
    "d": lambda at: (at.year, at.month, at.day),
    "w": lambda at: at.isocalendar()[:2],
    "m": lambda at: (at.year, at.month),
    "y": lambda at: (at.year,),
}


def removable(
    archives: Mapping[str, datetime],
    *,
    verified: Collection[str],
    failed: Collection[str],
    keep: Keep,
) -> list[str]:
    """Return the names that retention lets go, oldest first.

    ``archives`` are the own ones of a place, by name, with the times (UTC) when they were made.
    Those in ``verified`` were verified, and the runs of those in ``failed`` failed; there is no
    record of the others. Only periods that have an archive count, so a schedule that stood still
    loses nothing.

    Verified ones stay by ``keep``, however many others there are, and the newest of them always.
    Those without a record may be all that is left of a lost instance. They stay by ``keep`` as
    well, and no verified one takes the place of one of them. Failed ones stay until there is a
    newer verified one. Without a verified one everything stays.
    """
    existing = {name: at for name, at in archives.items() if name in verified}
    if not existing:
        return []
    newest = max(existing.values())
    unrecorded = {
        name: at for name, at in archives.items() if name not in verified and name not in failed
    }
    retained = _retained(existing, keep) | _retained(unrecorded, keep)
    for group in (existing, unrecorded):
        retained |= {name for name, at in group.items() if at == max(group.values())}
    retained |= {name for name, at in archives.items() if name in failed and at > newest}
    return sorted(archives.keys() - retained, key=lambda name: (archives[name], name))


def _retained(archives: Mapping[str, datetime], keep: Keep) -> set[str]:
    newest_first = sorted(archives, key=lambda name: (archives[name], name), reverse=True)
    retained = set()
    for unit, count in keep:
        newest: dict[tuple[int, ...], str] = {}
        for name in newest_first:
            newest.setdefault(_PERIODS[unit](archives[name]), name)
        retained.update(list(newest.values())[:count])
    return retained
