"""Comparing what is stored with the chain, and putting right what differs.

Ranges are read again and compared. Blocks in which something differs are looked at closely before
anything is changed: by their hashes, against the bloom filters of their headers, and, before an
event is taken out, against the receipt of its transaction. A provider that has lost its logs makes
no event disappear.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Final

import msgspec

from backend.errors import Timeout, TransactionConflict, UnderMaintenance
from backend.logs import get_logger
from chain import contracts, coverage, gateway
from chain.block_times import read_block_times
from chain.contracts import Catalogue
from chain.core.bloom import Watch
from chain.core.comparing import Difference, Identity, identity_of
from chain.core.events import EventRow
from chain.core.failures import Moved, NodeFailure, TryAgain
from chain.core.node import Hash, Header, Log, Node, Number
from chain.core.spans import Span, segments
from chain.filling.progress import Lost, canonical_blocks
from chain.mending import Stored, Truth, date, difference, last_of_some, mend, stored_events
from chain.models import Cursor
from chain.reading import Limits, read_logs
from objects import maintenance

SLICE: Final = 60.0  # seconds of one audit; the next one goes on
_SHOWN: Final = 100  # events of each kind that are listed
_AT_ONCE: Final = 20  # blocks looked at closely
_MOST: Final = 50_000  # stored events compared at once

log = get_logger("chain")


@dataclass
class Findings:
    """What a comparison of the blocks ``first`` to ``last`` has found; it has come to ``reached``.

    The lists hold ``[block, index in the block, transaction]`` of the first hundred events each,
    ``counts`` all of them. ``unclear`` are blocks that a provider contradicts itself about; nothing
    is changed in them. ``undated`` events lack the time of their block; ``dated`` have got it now.
    """

    first: int
    last: int
    reached: int
    events: int = 0
    mended: int = 0
    undated: int = 0
    dated: int = 0
    missing: list[list[Any]] = field(default_factory=list)
    superfluous: list[list[Any]] = field(default_factory=list)
    different: list[list[Any]] = field(default_factory=list)
    unclear: list[int] = field(default_factory=list)
    counts: dict[str, int] = field(
        default_factory=lambda: {"missing": 0, "superfluous": 0, "different": 0}
    )

    @property
    def is_clean(self) -> bool:
        return not self.unclear and not any(self.counts.values())

    def as_json(self) -> dict[str, Any]:
        return {
            "from": self.first,
            "to": self.last,
            "reached": self.reached,
            "events": self.events,
            **self.counts,
            "mended": self.mended,
            "undated": self.undated,
            "dated": self.dated,
            "unclear": len(self.unclear),
            "examples": {
                "missing": self.missing,
                "superfluous": self.superfluous,
                "different": self.different,
                "unclear": self.unclear[:_SHOWN],
            },
        }

    def note(self, found: Difference, gone: Collection[Identity], sent: Callable[..., str]) -> None:
        for kind, places in (
            ("missing", [(*identity_of(row)[:2], row.transaction_hash) for row in found.missing]),
            (
                "different",
                [(*identity_of(row)[:2], row.transaction_hash) for row in found.different],
            ),
            ("superfluous", [(*one[:2], sent(one)) for one in found.superfluous if one in gone]),
        ):
            self.counts[kind] += len(places)
            listed: list[list[Any]] = getattr(self, kind)
            listed += [[*place] for place in places[: _SHOWN - len(listed)]]


def audit(network_id: int) -> Findings | None:
    """Compare what has become final since the last audit, and mend it. None if there's nothing to
    compare. What was found is kept with the cursor."""
    cursor = Cursor.objects.filter(pk=network_id).first()
    if cursor is None or cursor.number is None or cursor.halted is not None:
        return None
    final = _final(cursor)
    audited = min(cursor.audited if cursor.audited is not None else cursor.began_at or 0, final)
    if audited == final or maintenance.is_chain_paused():
        return None
    findings = None
    report: dict[str, Any]
    try:
        findings = examine(network_id, audited + 1, final, mending=True, seconds=SLICE)
        report = findings.as_json()
        audited = findings.reached
    except (NodeFailure, Lost, Timeout, TransactionConflict) as failure:
        report = {"trouble": str(failure) or "The contracts have changed meanwhile."}
    except UnderMaintenance:
        return None
    with maintenance.recording():
        Cursor.objects.filter(pk=network_id, audited=cursor.audited).update(
            audited=audited, audit=report | {"at": _now()}
        )
    if findings is not None and not findings.is_clean:
        log.error(
            "what is stored differed from the chain",
            network=network_id,
            **{name: value for name, value in report.items() if name != "examples"},
        )
    return findings


def examine(
    network_id: int,
    first: int,
    last: int,
    *,
    addresses: Collection[str] | None = None,
    mending: bool = False,
    tell_changes: bool = True,
    seconds: float | None = None,
    progress: Callable[[int], object] = lambda reached: None,
) -> Findings:
    """Compare these blocks, as far as they have been read for contracts that are listened to (or
    for ``addresses`` among them), and mend them if ``mending``.

    ``progress`` is told the last block that was compared, now and then. Raises ``NodeFailure``, and
    ``Lost`` when the contracts change meanwhile.
    """
    cursor = Cursor.objects.filter(pk=network_id).first()
    if cursor is None or cursor.number is None:
        return Findings(first, last, first - 1)
    last = min(last, cursor.number)
    findings = Findings(first, last, first - 1)
    known = contracts.catalogue(network_id)
    covered = {
        address: spans
        for address, spans in coverage.covered(network_id).items()
        if addresses is None or address in addresses
    }
    end = None if seconds is None else monotonic() + seconds
    for piece, names in segments(covered, (first, last)):
        examiner = _Examiner(network_id, known.only(names), names, _final(cursor), findings)
        for reached in examiner.run(piece, mending, tell_changes):
            findings.reached = reached
            progress(reached)
            if end is not None and monotonic() > end:
                return findings
    findings.reached = last
    return findings


def _final(cursor: Cursor) -> int:
    final = cursor.finalized if cursor.finalized is not None else cursor.began_at
    return min(cursor.number or 0, final or 0)


def _now() -> str:
    from django.utils import timezone

    from objects.core.values import wire_time

    return wire_time(timezone.now())


class _Examiner:
    """Compares blocks of contracts that have been read in all of them."""

    def __init__(
        self,
        network_id: int,
        chosen: Catalogue,
        addresses: Sequence[str],
        final: int,
        findings: Findings,
    ) -> None:
        self._network_id = network_id
        self._chosen = chosen
        self._addresses = addresses
        self._final = final
        self._findings = findings
        self._limits = Limits(network_id)

    def run(self, piece: Span, mending: bool, tell_changes: bool) -> Iterator[int]:
        """Compare the blocks; the last one that was, again and again."""
        position, last = piece
        if not self._chosen.wanted.addresses:
            raise Lost
        while position <= last:
            if position <= self._final:
                rows, reached = self._read(position, min(last, self._final))
            else:
                rows, reached = self._read_recent(position, last)
            most = last_of_some(self._network_id, position, reached, _MOST)
            if most < reached:
                # A provider that gives no logs mustn't have us load all that is stored.
                reached = most
                rows = [row for row in rows if row.block_number <= reached]
            self._findings.events += len(rows)
            stored = stored_events(self._network_id, position, reached, self._addresses)
            found = difference(stored, rows)
            dated = date(self._network_id, found.undated) if mending and found.undated else 0
            self._findings.dated += dated
            self._findings.undated += max(0, len(found.undated) - dated)
            heights = found.blocks()
            for at in range(0, len(heights), _AT_ONCE):
                self._look_closely(heights[at : at + _AT_ONCE], mending, tell_changes)
            yield reached
            position = reached + 1

    def _read(self, first: int, last: int) -> tuple[list[EventRow], int]:
        def step(node: Node) -> tuple[list[EventRow], int]:
            if node.header(last) is None:
                raise TryAgain("the provider doesn't have the final blocks yet")
            logs, reached = read_logs(node, self._limits, self._chosen.wanted, first, last)
            return self._chosen.read(logs, read_block_times(node, logs).by_hash), reached

        return gateway.attempt(self._network_id, step)

    def _read_recent(self, first: int, last: int) -> tuple[list[EventRow], int]:
        last = min(last, first + _AT_ONCE - 1)
        hashes = [hash_ for _, hash_ in canonical_blocks(self._network_id, first, last)]
        if len(hashes) != last - first + 1:
            raise Moved("the chain is being read anew")

        def step(node: Node) -> list[EventRow]:
            logs = [one for some in node.logs_of(self._chosen.wanted, hashes) for one in some]
            return self._chosen.read(logs, read_block_times(node, logs).by_hash)

        return gateway.attempt(self._network_id, step), last

    def _look_closely(self, heights: list[int], mending: bool, tell_changes: bool) -> None:
        """Ask for these blocks one by one, and mend what then still differs."""
        seen: dict[Identity, Stored] = {}

        def step(node: Node) -> tuple[Truth, list[int]]:
            headers = _headers(node, heights)
            hashes = [header.hash for header in headers]
            logs = node.logs_of(self._chosen.wanted, hashes)
            unclear = self._incomplete(headers, logs)
            all_logs = [one for some in logs for one in some]
            times = read_block_times(node, all_logs, headers).by_hash
            rows = self._chosen.read(all_logs, times)
            stored = stored_events(self._network_id, heights[0], heights[-1])
            seen.clear()
            seen.update({one: row for one, row in stored.items() if one.block_number in heights})
            found = self._own(difference(seen, rows), seen)
            gone, doubtful = self._superfluous(node, found, set(hashes), seen)
            unclear = sorted({*unclear, *doubtful})
            clear = {header.height: header.hash for header in headers}
            for height in unclear:
                clear.pop(height, None)
            rows = [row for row in rows if row.block_number in clear]
            return Truth(clear, rows, gone), unclear

        truth, unclear = gateway.attempt(self._network_id, step)
        stored = {one: row for one, row in seen.items() if one.block_number in truth.hashes}
        found = self._own(difference(stored, truth.rows), stored)
        self._findings.unclear += unclear
        self._findings.note(
            found, truth.superfluous, lambda one: stored[one].content.transaction_hash
        )
        if mending and found:
            self._findings.mended += mend(
                self._network_id,
                truth,
                self._chosen.version,
                self._final,
                tell_changes=tell_changes,
            )

    def _own(self, found: Difference, stored: Mapping[Identity, Stored]) -> Difference:
        """Without what is stored of other contracts in the same blocks."""
        return found._replace(
            superfluous=[
                one for one in found.superfluous if stored[one].content.address in self._addresses
            ]
        )

    def _incomplete(self, headers: list[Header], logs: list[list[Log]]) -> list[int]:
        """Blocks whose headers say that there is a log which the node doesn't give."""
        watch = Watch(self._chosen.wanted)
        return [
            header.height
            for header, some in zip(headers, logs, strict=True)
            if watch.silent(header, {one.address.lower() for one in some})
        ]

    def _superfluous(
        self,
        node: Node,
        found: Difference,
        hashes: Collection[str],
        stored: Mapping[Identity, Stored],
    ) -> tuple[set[Identity], list[int]]:
        """Which events are certainly not in the chain, and the blocks in which that isn't sure: a
        receipt that isn't there, or that holds the log."""
        gone = {one for one in found.superfluous if one.block_hash not in hashes}
        doubtful: set[int] = set()
        rest = [one for one in found.superfluous if one not in gone]
        sent = sorted({stored[one].content.transaction_hash for one in rest})
        calls = [("eth_getTransactionReceipt", (one,)) for one in sent]
        receipts = dict(zip(sent, node.batch(calls, is_raw=True), strict=True))
        for one in rest:
            answer = receipts[stored[one].content.transaction_hash]
            if isinstance(answer, TryAgain):
                raise answer
            if isinstance(answer, NodeFailure) or _may_have(answer, one):
                doubtful.add(one.block_number)
            else:
                gone.add(one)
        return gone, sorted(doubtful)


def _headers(node: Node, heights: Sequence[int]) -> list[Header]:
    found = [header for header in node.headers(heights) if header is not None]
    if len(found) != len(heights):
        raise TryAgain("the provider doesn't have a block")
    return found


class _Place(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    block_hash: Hash
    log_index: Number


class _Places(msgspec.Struct, frozen=True, gc=False):
    logs: list[_Place] = []


_places = msgspec.json.Decoder(_Places | None)


def _may_have(receipt: msgspec.Raw, wanted: Identity) -> bool:
    """Whether a receipt has a log at this place, or isn't there."""
    try:
        found = _places.decode(receipt)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise TryAgain("a receipt that isn't one") from None
    return found is None or any(
        one.block_hash == wanted.block_hash and int(one.log_index, 16) == wanted.log_index
        for one in found.logs
    )
