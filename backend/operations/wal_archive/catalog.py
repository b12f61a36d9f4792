"""What the place has, from its names alone: what a restore needs, and what can be removed."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from backend.operations.backup.problems import BackupError

ROOT: Final = "wal/"
SEGMENT: Final = 16 * 1024 * 1024
"""Bytes of a WAL segment, as ``initdb`` has it."""

_TIME: Final = "%Y%m%dT%H%M%S%fZ"
_SPAN: Final = r"([0-9a-f]{16})-([0-9a-f]{16})-([0-9]{8}T[0-9]{12}Z)"
_NAME: Final = re.compile(
    rf"wal/(?P<instance>[a-z0-9_-]+)/(?P<lineage>[a-z0-9_]+)/"
    rf"(?P<rest>begun|log/{_SPAN}|base/{_SPAN}|base/([0-9a-f]{{16}})\.tar\.gz)"
)


def new_instance() -> str:
    """Return a name for a data folder."""
    return f"{datetime.now(UTC):%Y%m%d}-{secrets.token_hex(4)}"


def new_lineage() -> str:
    """Return a name for a lineage, which can be a part of a slot's name."""
    return f"{datetime.now(UTC):%Y%m%dt%H%M%S%f}_{secrets.token_hex(3)}"


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """WAL from ``start`` to before ``end``, positions in bytes.

    Of a piece of WAL, ``time`` is when everything that had been committed was before ``end``; of a
    copy of the cluster, when it was finished.
    """

    start: int
    end: int
    time: datetime

    def __str__(self) -> str:
        return f"{self.start:016x}-{self.end:016x}-{self.time.astimezone(UTC).strftime(_TIME)}"


@dataclass(slots=True)
class Lineage:
    """The spans of one lineage by kind, each sorted. ``copies`` are the positions of copies of the
    cluster, also of those that were never declared complete."""

    prefix: str
    is_begun: bool = False
    pieces: list[Span] = field(default_factory=list)
    bases: list[Span] = field(default_factory=list)
    copies: list[int] = field(default_factory=list)

    def piece_name(self, piece: Span) -> str:
        return f"{self.prefix}log/{piece}"

    def base_name(self, base: Span) -> str:
        return f"{self.prefix}base/{base}"

    def copy_name(self, start: int) -> str:
        return f"{self.prefix}base/{start:016x}.tar.gz"

    @property
    def end(self) -> int:
        """The position up to which WAL is stored; 0 for none."""
        return max((piece.end for piece in self.pieces), default=0)

    def chain(self, base: Span) -> list[Span]:
        """Return the pieces from the start of a base on, without a gap between them."""
        chain: list[Span] = []
        position = base.start
        for piece in self.pieces:
            if piece.end <= position:
                continue
            if piece.start > position:
                break
            chain.append(piece)
            position = piece.end
        return chain

    def is_usable(self, base: Span) -> bool:
        """Whether the WAL that belongs to a base is stored."""
        chain = self.chain(base)
        return bool(chain) and chain[-1].end >= base.end


def read(names: Iterable[str]) -> dict[str, list[Lineage]]:
    """Return the lineages of each instance, in the order of their beginning, from stored names.
    Other names are ignored."""
    instances: dict[str, dict[str, Lineage]] = {}
    for name in names:
        match = _NAME.fullmatch(name)
        if match is None:
            continue
        prefix = lineage_prefix(match["instance"], match["lineage"])
        lineages = instances.setdefault(match["instance"], {})
        lineage = lineages.setdefault(match["lineage"], Lineage(prefix))
        kind, _, rest = match["rest"].partition("/")
        if kind == "begun":
            lineage.is_begun = True
        elif rest.endswith(".tar.gz"):
            lineage.copies.append(int(rest.partition(".")[0], 16))
        else:
            start, end, time = rest.split("-")
            moment = datetime.strptime(time, _TIME).replace(tzinfo=UTC)
            span = Span(int(start, 16), int(end, 16), moment)
            (lineage.pieces if kind == "log" else lineage.bases).append(span)
    for lineages in instances.values():
        for lineage in lineages.values():
            for spans in (lineage.pieces, lineage.bases):
                spans.sort()
            lineage.copies.sort()
    return {
        instance: [lineage for _, lineage in sorted(lineages.items())]
        for instance, lineages in instances.items()
    }


def lineage_prefix(instance: str, lineage: str) -> str:
    return f"{ROOT}{instance}/{lineage}/"


# -- restoring ------------------------------------------------------------------------------------


def moment(text: str) -> datetime:
    """Return the time that ``--until`` names. Raises ``BackupError``."""
    try:
        until = datetime.fromisoformat(text)
    except ValueError:
        raise BackupError(f"--until: {text!r} is no time, as 2026-11-28T10:00:00Z.") from None
    if until.tzinfo is None:
        raise BackupError(f"--until: {text} has no time zone: add Z for UTC, or +01:00.")
    if until > datetime.now(UTC):
        raise BackupError(f"--until: {text} is in the future.")
    return until


@dataclass(frozen=True, slots=True)
class Plan:
    """What a restore reads: a base, and the WAL after it. ``until`` is the requested time, or None
    for the end of the archive, which ``end`` is."""

    lineage: Lineage
    base: Span
    pieces: Sequence[Span]
    until: datetime | None
    end: datetime


def plan(instances: Mapping[str, Sequence[Lineage]], instance: str, until: datetime | None) -> Plan:
    """Choose what a restore of an instance to a moment needs. ``instance`` is empty for the only
    one. Raises ``BackupError`` if the archive doesn't have that moment."""
    lineages = _lineages_of(instances, instance)
    usable = sorted(
        ((lineage, base) for lineage in lineages for base in lineage.bases),
        key=lambda each: each[1].time,
    )
    usable = [(lineage, base) for lineage, base in usable if lineage.is_usable(base)]
    if not usable:
        raise BackupError("The archive has no complete copy of the database yet.")
    if until is None:
        lineage, base = usable[-1]
    else:
        earlier = [each for each in usable if each[1].time <= until]
        if not earlier:
            raise BackupError(
                f"The archive begins at {shown(usable[0][1].time)}: choose a later time, or"
                " restore an archive of a whole instance."
            )
        lineage, base = earlier[-1]
    chain = lineage.chain(base)
    end = chain[-1]
    if end.end < lineage.end and (until is None or until > end.time):
        raise BackupError(
            f"WAL is missing in {lineage.prefix}log after {shown(end.time)}: --until"
            f" {shown(end.time)} restores what is before the gap."
        )
    if until is not None and until > end.time:
        later = [base.time for _, base in usable if base.time > until]
        between = f" and before {shown(later[0])}" if later else ""
        raise BackupError(
            f"The archive has nothing after {shown(end.time)}{between}: leave out --until for the"
            f" end of the archive, or choose {shown(end.time)}."
        )
    if until is not None:
        first = next(number for number, piece in enumerate(chain) if piece.time >= until)
        chain = chain[: first + 1]
    return Plan(lineage, base, chain, until, max(base.time, chain[-1].time))


def _lineages_of(instances: Mapping[str, Sequence[Lineage]], instance: str) -> Sequence[Lineage]:
    if not instances:
        raise BackupError("The place of backups (BACKUP_TO) has no WAL that this key can read.")
    if instance and instance not in instances:
        raise BackupError(f"The archive has no instance {instance}: {_list(instances)}.")
    if not instance and len(instances) > 1:
        raise BackupError(
            "The archive has WAL of several instances: name one, as --restore wal/NAME:"
            f" {_list(instances)}."
        )
    return instances[instance or next(iter(instances))]


def _list(instances: Mapping[str, Sequence[Lineage]]) -> str:
    """Name the instances with the time that each covers."""
    texts = []
    for name, lineages in sorted(instances.items()):
        first = min((base.time for each in lineages for base in each.bases), default=None)
        last = max((piece.time for each in lineages for piece in each.pieces), default=None)
        texts.append(
            f"{name} ({shown(first)} to {shown(last)})" if first and last else f"{name} (empty)"
        )
    return ", ".join(texts)


def shown(moment: datetime) -> str:
    """Return a time as ``--until`` takes it."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


# -- retention ------------------------------------------------------------------------------------


def superfluous(
    lineages: Sequence[Lineage], current: str, horizon: datetime
) -> tuple[list[str], Span | None]:
    """Return the names that no moment since ``horizon`` needs, in an order in which they can be
    removed one by one, and the oldest base that stays. ``current`` is the prefix of the lineage
    that is being written."""
    usable = sorted(
        (base.time, base)
        for lineage in lineages
        for base in lineage.bases
        if lineage.is_usable(base)
    )
    before = [base for time, base in usable if time <= horizon]
    if not before:
        return [], usable[0][1] if usable else None
    oldest = before[-1]
    names = [
        name
        for lineage in lineages
        for name in _superfluous_of(lineage, oldest, is_current=lineage.prefix == current)
    ]
    return names, oldest


def _superfluous_of(lineage: Lineage, oldest: Span, *, is_current: bool) -> list[str]:
    """Return the names of one lineage that neither ``oldest`` nor a later base needs: first what
    declares a copy complete, last what others may need."""
    stay = [base for base in lineage.bases if base.time >= oldest.time]
    if not stay and is_current:
        return []
    starts = {base.start for base in stay}
    last: list[Span] = []
    if is_current:
        # A copy that is being made, or was made a moment ago, isn't among the bases.
        newest = max(base.start for base in lineage.bases)
        starts.update(start for start in lineage.copies if start > newest)
        # The last piece says where the lineage continues.
        last = lineage.pieces[-1:]
    names = [lineage.base_name(base) for base in lineage.bases if base not in stay]
    names += [lineage.copy_name(start) for start in lineage.copies if start not in starts]
    first = min(starts, default=lineage.end)
    names += [
        lineage.piece_name(piece)
        for piece in lineage.pieces
        if piece.end <= first and piece not in last
    ]
    return names if stay else [*names, f"{lineage.prefix}begun"]
