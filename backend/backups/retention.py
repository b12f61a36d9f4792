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
    good: Collection[str],
    bad: Collection[str],
    keep: Keep,
) -> list[str]:
    """Return the names of the archives that needn't stay, oldest first.

    ``archives`` are the own ones of a place, by name, with the times (UTC) when they were made.
    Those in ``good`` have been verified, those in ``bad`` were and failed; nothing is known of the
    others. Only periods that have an archive count, so a schedule that stood still loses nothing.

    The good ones stay by ``keep``, however many others there are, and the newest of them always.
    Others stay as if they were good, in addition. Bad ones stay until there is a newer good one.
    Without a good one everything stays.
    """
    verified = {name: at for name, at in archives.items() if name in good}
    if not verified:
        return []
    newest = max(verified.values())
    hopeful = {name: at for name, at in archives.items() if name not in bad}
    staying = _staying(verified, keep) | _staying(hopeful, keep)
    staying |= {name for name, at in verified.items() if at == newest}
    staying |= {name for name, at in archives.items() if name in bad and at > newest}
    return sorted(archives.keys() - staying, key=lambda name: (archives[name], name))


def _staying(archives: Mapping[str, datetime], keep: Keep) -> set[str]:
    newest_first = sorted(archives, key=lambda name: (archives[name], name), reverse=True)
    staying = set()
    for unit, count in keep:
        newest: dict[tuple[int, ...], str] = {}
        for name in newest_first:
            newest.setdefault(_PERIODS[unit](archives[name]), name)
        staying.update(list(newest.values())[:count])
    return staying
