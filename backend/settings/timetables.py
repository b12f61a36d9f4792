"""When a schedule is due, as text and as data.

``300`` is every 300 seconds, ``0 3 * * *`` a crontab line in UTC (minute, hour, day of month,
month, day of week), ``0 3 * * * Europe/Berlin`` one by another clock, and
``2030-01-01T12:00:00Z`` once. Unlike cron, a line with both a day of the month and a day of the
week is due on days that are both.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import pairwise
from typing import Final, TypeAlias
from zoneinfo import ZoneInfo

from celery.schedules import ParseException, crontab
from django_celery_beat.tzcrontab import TzAwareCrontab

_LEAST_SECONDS = 1
# Characters that django-celery-beat keeps of each field, and of a time zone's name.
_LONGEST = (240, 96, 124, 64, 64, 63)
_MOST_SECONDS = timedelta(days=3660).total_seconds()
_LOOKED_AHEAD: Final = 32  # times of a crontab line: those of a month, for a daily one


@dataclass(frozen=True, slots=True)
class Every:
    """At regular intervals."""

    seconds: float

    def __str__(self) -> str:
        return f"{self.seconds:g}" if self.seconds % 1 else str(int(self.seconds))


@dataclass(frozen=True, slots=True)
class Cron:
    """At the times that a crontab line names."""

    minute: str
    hour: str
    day_of_month: str = "*"
    month_of_year: str = "*"
    day_of_week: str = "*"
    timezone: str = "UTC"

    def crontab(self) -> crontab:
        """As Celery has it. Raises ``ValueError`` or ``ParseException``."""
        return crontab(
            minute=self.minute,
            hour=self.hour,
            day_of_month=self.day_of_month,
            month_of_year=self.month_of_year,
            day_of_week=self.day_of_week,
        )

    @property
    def zone(self) -> tzinfo:
        """Return the time zone of the line."""
        return UTC if self.timezone == "UTC" else ZoneInfo(self.timezone)

    def longest_pause(self, start: datetime) -> timedelta:
        """Return the longest time between two times of the line, of those that follow ``start``."""
        schedule = self.crontab()
        times = [start.astimezone(self.zone)]
        for _ in range(_LOOKED_AHEAD):
            _, delta, _ = schedule.remaining_delta(times[-1], tz=self.zone)
            times.append(times[-1] + delta)
        return max(later - earlier for earlier, later in pairwise(times[1:]))

    def __str__(self) -> str:
        days = (self.day_of_month, self.month_of_year, self.day_of_week)
        line = " ".join((self.minute, self.hour, *days))
        return line if self.timezone == "UTC" else f"{line} {self.timezone}"


@dataclass(frozen=True, slots=True)
class Once:
    """At one moment, or as soon as possible after it."""

    at: datetime

    def __str__(self) -> str:
        return self.at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


Timing: TypeAlias = Every | Cron | Once


def parse(schedule: float | str) -> Timing:
    """The timing that a number of seconds or a text stands for. Raises ``ValueError``, which says
    what is wrong."""
    if isinstance(schedule, bool) or not isinstance(schedule, int | float | str):
        raise ValueError("a schedule is seconds or a crontab line")
    if not isinstance(schedule, str):
        return _every(schedule)
    words = schedule.split()
    if len(words) in (5, 6):
        return _cron(words)
    if len(words) != 1:
        raise ValueError("a crontab line has five fields, and maybe a time zone after them")
    try:
        seconds = float(words[0])
    except ValueError:
        return _once(words[0])
    return _every(seconds)


def check_schedule(schedule: float | str) -> None:
    """Raise ``ValueError`` unless a job may be registered with this schedule."""
    if isinstance(parse(schedule), Once):
        raise ValueError("a job's schedule is seconds or a crontab line")


def parse_cron(line: str) -> Cron:
    """The timing of a crontab line that is due at times. Raises ``ValueError``."""
    timing = parse(line)
    if not isinstance(timing, Cron):
        raise ValueError("it must be a crontab line")
    return timing


def crontab_in_zone(line: str) -> TzAwareCrontab:
    """Return a crontab line as django-celery-beat schedules it. Raises ``ValueError``."""
    cron = parse_cron(line)
    return TzAwareCrontab(
        minute=cron.minute,
        hour=cron.hour,
        day_of_month=cron.day_of_month,
        month_of_year=cron.month_of_year,
        day_of_week=cron.day_of_week,
        tz=cron.zone,
    )


def _every(seconds: float) -> Every:
    # Also refuses what is no number at all.
    if not _LEAST_SECONDS <= seconds <= _MOST_SECONDS:
        raise ValueError("the seconds of a schedule are between 1 and those of ten years")
    return Every(float(seconds))


def _cron(words: list[str]) -> Cron:
    cron = Cron(*words)
    try:
        if any(len(word) > most for word, most in zip(words, _LONGEST, strict=False)):
            raise ValueError
        cron.crontab()
        ZoneInfo(cron.timezone)
    except (ParseException, ValueError, KeyError, OSError):
        raise ValueError(f"this is no crontab line: {' '.join(words)[:100]}") from None
    return cron


def _once(text: str) -> Once:
    try:
        at = datetime.fromisoformat(text)
        return Once((at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC))
    except (ValueError, OverflowError):
        raise ValueError(
            "a schedule is seconds, a crontab line, or a time such as 2030-01-01T12:00:00Z"
        ) from None
