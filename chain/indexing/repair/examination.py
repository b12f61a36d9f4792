"""Comparing stored events with the chain, block by block where something differs.

Ranges are read again and compared. Blocks in which something differs are examined closely before
anything is changed: by their hashes, against their headers' filters and the root of their receipts
(``chain.indexing.verification``), and, before an event is taken out, against the receipt of its
transaction. A provider that has lost its logs makes no event disappear.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from time import monotonic
from typing import Final

from chain import rpc
from chain.core.blocks.differences import (
    Difference,
    Identity,
    compare,
)
from chain.core.blocks.events import EventRow
from chain.core.blocks.spans import Span, segments
from chain.core.failures import Contradiction, Moved, TryAgain, Unavailable
from chain.core.node import Header, Log, Node
from chain.indexing import contracts, coverage, verification
from chain.indexing.block_times import read_block_times
from chain.indexing.contracts import Catalogue
from chain.indexing.history.progress import Lost
from chain.indexing.history.unavailable import provider_trouble
from chain.indexing.log_ranges import Limits, read_logs
from chain.indexing.repair.confirmations import unproved_blocks
from chain.indexing.repair.filters import doubtful_blocks
from chain.indexing.repair.findings import Findings
from chain.indexing.repair.removals import superfluous_events
from chain.indexing.repair.repairs import (
    StoredEvent,
    Truth,
    fill_block_timestamps,
    last_block_within,
    repair,
    stored_events,
)
from chain.indexing.storage import block_rows
from chain.indexing.verification import Scheme
from chain.models import Cursor

_AT_ONCE: Final = 20  # blocks looked at closely
_MOST: Final = 50_000  # stored events compared at once
_WITH_HEADERS: Final = 8 * verification.WIDTH  # blocks compared at once by their filters


def examine(
    network_id: int,
    first: int,
    last: int,
    *,
    addresses: Collection[str] | None = None,
    repairing: bool = False,
    probes: int = 0,
    by_receipts: bool = False,
    by_filters: bool = False,
    keeps_blocks: bool = False,
    notify_changes: bool = True,
    seconds: float | None = None,
    progress: Callable[[int], object] = lambda reached: None,
) -> Findings:
    """Compare these blocks, as far as they have been read for contracts that are listened to (or
    for ``addresses`` among them), and mend them if ``repairing``.

    Of the blocks with events, ``probes`` are compared by their receipts as well, drawn by chance;
    with ``by_receipts`` every block that may have events is. With ``by_filters``, those whose
    headers' filters contradict the provider's logs are, as far as it has headers. With
    ``keeps_blocks`` a block with
    another hash than is stored changes nothing, and isn't clear. ``notify_changes`` says whether
    subscribers are notified of corrected events. ``progress`` is called after each step with the
    last compared block; after ``seconds`` the comparison ends where it is. Raises ``NodeFailure``,
    and ``Lost`` when the contracts change meanwhile.
    """
    cursor = Cursor.objects.filter(pk=network_id).first()
    if cursor is None or cursor.number is None:
        return Findings(first, last, first - 1)
    last = min(last, cursor.number)
    findings = Findings(first, last, first - 1)
    catalogue = contracts.catalogue(network_id)
    covered = {
        address: spans
        for address, spans in coverage.covered(network_id).items()
        if addresses is None or address in addresses
    }
    end = None if seconds is None else monotonic() + seconds
    examiners = []
    for piece, names in segments(covered, (first, last)):
        examiner = _Examiner(
            network_id,
            catalogue.only(names),
            names,
            final_height(cursor),
            findings,
            by_receipts=by_receipts,
            by_filters=by_filters,
            keeps_blocks=keeps_blocks,
        )
        examiners.append(examiner)
        for reached in examiner.run(piece, repairing, notify_changes):
            findings.reached = reached
            progress(reached)
            if end is not None and monotonic() > end:
                break
        else:
            continue
        break
    else:
        findings.reached = last
    _probe(examiners, probes, repairing, notify_changes)
    return findings


def _probe(
    examiners: Sequence[_Examiner], count: int, repairing: bool, notify_changes: bool
) -> None:
    """Look closely at so many of the blocks with events that were compared, drawn by chance."""
    heights = [(height, each) for each in examiners for height in sorted(each.with_events)]
    drawn = random.sample(heights, min(count, len(heights)))
    for examiner in examiners:
        chosen = sorted(height for height, each in drawn if each is examiner)
        for at in range(0, len(chosen), _AT_ONCE):
            some = chosen[at : at + _AT_ONCE]
            examiner.look_closely(some, repairing, notify_changes, is_probe=True)


def final_height(cursor: Cursor) -> int:
    """Return the highest final block of those that were read."""
    final = cursor.finalized if cursor.finalized is not None else cursor.began_at
    return min(cursor.number or 0, final or 0)


class _Examiner:
    """Compares blocks of contracts that have been read in all of them."""

    def __init__(
        self,
        network_id: int,
        chosen: Catalogue,
        addresses: Sequence[str],
        final: int,
        findings: Findings,
        *,
        by_receipts: bool,
        by_filters: bool,
        keeps_blocks: bool,
    ) -> None:
        self._network_id = network_id
        self._chosen = chosen
        self._addresses = addresses
        self._final = final
        self._findings = findings
        self._limits = Limits(network_id)
        self._by_receipts = by_receipts
        self._by_filters = by_filters
        self._keeps_blocks = keeps_blocks
        self._width = verification.WIDTH
        self._scheme = Scheme.of_network(network_id).thorough
        self._unqueued = self._scheme._replace(queues_rechecks=False)
        self.with_events: set[int] = set()
        self._anchor = block_rows.highest(network_id, final)

    def run(self, piece: Span, repairing: bool, notify_changes: bool) -> Iterator[int]:
        """Compare the blocks, yielding the last compared one after each step."""
        position, last = piece
        if not self._chosen.wanted.addresses:
            raise Lost
        while position <= last:
            try:
                doubtful: list[int] = []
                if position <= self._final:
                    rows, reached, doubtful = self._read(position, min(last, self._final))
                else:
                    rows, reached = self._read_recent(position, last)
            except Unavailable:
                # A block that no provider has right mustn't hide those behind it.
                if not self._by_receipts:
                    raise
                if self._width == 1:
                    self._findings.unclear.append(position)
                    yield position
                    position += 1
                self._width = max(1, self._width // 2)
                continue
            self._width = min(verification.WIDTH, 2 * self._width)
            most = last_block_within(self._network_id, position, reached, _MOST)
            if most < reached:
                # A provider that gives no logs mustn't have us load all that is stored.
                reached = most
                rows = [row for row in rows if row.block_number <= reached]
            self._findings.events += len(rows)
            blocks = range(position, reached + 1)
            stored = stored_events(self._network_id, blocks, self._addresses)
            self.with_events.update(row.block_number for row in rows)
            self.with_events.update(event.block_number for event in stored)
            differences = compare(stored, rows)
            dated = (
                fill_block_timestamps(self._network_id, differences.undated)
                if repairing and differences.undated
                else 0
            )
            self._findings.dated += dated
            self._findings.undated += max(0, len(differences.undated) - dated)
            doubtful = [height for height in doubtful if height <= reached]
            heights = sorted({*differences.blocks(), *doubtful})
            for at in range(0, len(heights), _AT_ONCE):
                self.look_closely(heights[at : at + _AT_ONCE], repairing, notify_changes)
            yield reached
            position = reached + 1

    def _read(self, first: int, last: int) -> tuple[list[EventRow], int, list[int]]:
        """The events from ``first`` on, the last block that they are of, and the blocks whose
        filters contradict that."""
        log_filter = self._chosen.wanted

        def step(node: Node) -> tuple[list[EventRow], int, list[int]]:
            with provider_trouble():
                self._headers(node, [last])
                end, doubtful = last, []
                if self._by_receipts:
                    end = min(last, first + self._width - 1)
                elif self._by_filters:
                    end = min(last, first + _WITH_HEADERS - 1)
                logs, reached = read_logs(node, self._limits, log_filter, first, end)
                if self._by_receipts:
                    logs, reached = verification.verified_range(
                        node, first, reached, logs, log_filter, self._unqueued
                    )
                elif self._by_filters:
                    blocks = range(first, reached + 1)
                    doubtful = doubtful_blocks(node, blocks, logs, log_filter, self._unqueued)
                rows = self._chosen.read(logs, read_block_times(node, logs).by_hash)
                return rows, reached, doubtful

        return rpc.attempt(self._network_id, step)

    def _read_recent(self, first: int, last: int) -> tuple[list[EventRow], int]:
        last = min(last, first + min(_AT_ONCE, self._width) - 1)
        hashes = [hash_ for _, hash_ in block_rows.between(self._network_id, first, last)]
        if len(hashes) != last - first + 1:
            raise Moved("the chain is being read anew")

        def step(node: Node) -> list[EventRow]:
            log_filter = self._chosen.wanted
            logs = [log for some in node.logs_of(log_filter, hashes) for log in some]
            headers = (
                verification.headers(node, range(first, last + 1))
                if self._by_receipts or self._by_filters
                else []
            )
            if headers:
                if [log.hash for log in headers] != hashes:
                    raise Moved("the chain is being read anew")
                logs = verification.verified(
                    node, headers, logs, log_filter, self._unqueued, by_hash=True
                )
            return self._chosen.read(logs, read_block_times(node, logs, headers).by_hash)

        return rpc.attempt(self._network_id, step), last

    def look_closely(
        self, heights: list[int], repairing: bool, notify_changes: bool, *, is_probe: bool = False
    ) -> None:
        """Read these blocks by their hashes and receipts, and mend what then still differs. Only a
        contradiction in a probe, which nothing gave a reason for, queues a recheck."""
        all_stored: dict[Identity, StoredEvent] = {}
        scheme = self._scheme if is_probe else self._unqueued

        def step(node: Node, *, tolerant: bool = False) -> tuple[Truth, list[int]]:
            headers = self._headers(node, heights)
            hashes = [header.hash for header in headers]
            renamed_blocks = self._with_another_hash(headers)
            if renamed_blocks and not tolerant:
                raise TryAgain(f"block {renamed_blocks[0]} is another one than is stored")
            each = node.logs_of(self._chosen.wanted, hashes)
            logs, unclear = self._verified(node, headers, each, scheme, tolerant=tolerant)
            unclear += renamed_blocks
            rows = self._chosen.read(logs, read_block_times(node, logs, headers).by_hash)
            all_stored.clear()
            all_stored.update(stored_events(self._network_id, heights))
            differences = self._own(compare(all_stored, rows), all_stored)
            gone, doubtful = superfluous_events(node, differences, set(hashes), all_stored)
            unproved = unproved_blocks(
                node, headers, logs, self._chosen.wanted, differences, all_stored
            )
            unclear = sorted({*unclear, *doubtful, *unproved})
            clear = {header.height: header.hash for header in headers}
            for height in unclear:
                clear.pop(height, None)
            rows = [row for row in rows if row.block_number in clear]
            return Truth(clear, rows, gone), unclear

        try:
            truth, unclear = rpc.attempt(self._network_id, step)
        except Unavailable:
            # No provider has everything that was asked for: as far as one has.
            truth, unclear = rpc.attempt(self._network_id, partial(step, tolerant=True))
        stored = {
            identity: row
            for identity, row in all_stored.items()
            if identity.block_number in truth.hashes
        }
        differences = self._own(compare(stored, truth.rows), stored)
        self._findings.unclear += unclear
        self._findings.note(
            differences,
            truth.superfluous,
            lambda identity: stored[identity].transaction_hash,
        )
        if repairing and differences:
            self._findings.mended += repair(
                self._network_id,
                truth,
                self._chosen.version,
                self._final,
                notify_changes=notify_changes,
            )

    def _headers(self, node: Node, heights: Sequence[int]) -> list[Header]:
        """The node's blocks at these heights. ``TryAgain`` unless it has the final block that is
        stored: what it says of another chain must not replace anything."""
        if self._anchor is None:
            return verification.headers(node, heights)
        height, block_hash = self._anchor
        *headers, anchor = verification.headers(node, [*heights, height])
        if anchor.hash != block_hash:
            raise TryAgain("the provider has another chain")
        return headers

    def _own(self, differences: Difference, stored: Mapping[Identity, StoredEvent]) -> Difference:
        """Without what is stored of other contracts in the same blocks."""
        return differences._replace(
            superfluous=[
                identity
                for identity in differences.superfluous
                if stored[identity].address in self._addresses
            ]
        )

    def _with_another_hash(self, headers: Sequence[Header]) -> list[int]:
        """The heights at which another block is stored, by its header or its events: what is final
        isn't replaced because one provider says so, nor what the head's indexer reads anyway."""
        if not self._keeps_blocks:
            return []
        heights = [header.height for header in headers]
        stored = dict(block_rows.at_heights(self._network_id, heights))
        for identity in stored_events(self._network_id, heights):
            stored.setdefault(identity.block_number, identity.block_hash)
        return [
            identity.height
            for identity in headers
            if stored.get(identity.height, identity.hash) != identity.hash
        ]

    def _verified(
        self,
        node: Node,
        headers: list[Header],
        each: list[list[Log]],
        scheme: Scheme,
        *,
        tolerant: bool,
    ) -> tuple[list[Log], list[int]]:
        """The logs of the blocks, and the heights of those that aren't clear: the provider
        contradicts itself. It has to have the receipts unless ``tolerant``."""
        log_filter = self._chosen.wanted
        if not tolerant:
            logs = [log for some in each for log in some]
            return verification.verified(node, headers, logs, log_filter, scheme, by_hash=True), []
        verified_logs: list[Log] = []
        unclear = []
        for header, logs in zip(headers, each, strict=True):
            try:
                verified_logs += verification.verified(
                    node, [header], logs, log_filter, scheme, by_hash=True
                )
            except Contradiction:
                unclear.append(header.height)
            except TryAgain:
                verified_logs += logs
                if verification.is_doubtful(node.network_id, header, logs, log_filter):
                    unclear.append(header.height)
        return verified_logs, unclear
