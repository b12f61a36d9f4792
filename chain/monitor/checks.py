"""The checks whose time has come.

One process at a time checks a network, by an advisory lock that ends with the process; it saves
work, and nothing relies on it. No row is locked during a request to a node: what a check has found
is stored where ``next_check_at`` is still what it was when the record was read. Where a block, a
reorganisation or another check has come between, theirs holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import Final

from msgspec.structs import replace

from backend.kernel.connections.advisory_locks import chain_checks
from backend.kernel.errors import UnderMaintenance
from backend.logs.setup import get_logger
from backend.settings.conf import service_settings
from chain import rpc
from chain.core.failures import NodeFailure
from chain.core.node import Node, SentTransaction
from chain.core.transactions import sightings
from chain.core.transactions.states import PENDING, Choices, Record, next_state, pause_after
from chain.models import Blockchain, Cursor
from chain.monitor import node_requests
from chain.monitor.storage.checks import (
    MOST,
    due_transactions,
    write,
    write_missed,
    write_pauses,
    write_sightings,
)
from chain.monitor.storage.rows import Followed, followed
from objects.database import locks, maintenance
from objects.database.transactions import all_or_nothing

_PATIENCE: Final = 20.0
_ENOUGH: Final = 10.0

log = get_logger("transactions")


@dataclass(frozen=True, slots=True)
class _Due:
    now: int
    rows: tuple[Followed, ...]


@dataclass(frozen=True, slots=True)
class _Answers:
    receipts: node_requests.Answers
    transactions: dict[str, SentTransaction | None] = field(default_factory=dict)


def choices() -> Choices:
    """What this deployment has decided."""
    return Choices(service_settings.REORG_REOPEN, service_settings.STALLED_REVIVE)


def check_due(network_id: int, *, now: int | None = None) -> int:
    """Check the transactions of a network whose time has come; how many.

    ``now`` (milliseconds) is the database's clock unless it is given. Networks that aren't
    followed are left alone: their transactions wait. Nothing is done while another process is at
    it, or while the chain is paused.
    """
    if not Blockchain.objects.filter(network_id=network_id, active=True).exists():
        return 0
    with locks.try_held(chain_checks(network_id)) as is_alone:
        return _check(network_id, now) if is_alone else 0


def _check(network_id: int, now: int | None) -> int:
    end = monotonic() + _ENOUGH
    checked = 0
    while monotonic() < end and not maintenance.is_chain_paused():
        due = _due(network_id, now)
        if not due.rows:
            break
        try:
            answers = rpc.attempt(network_id, partial(_ask, due.rows), seconds=_PATIENCE)
        except NodeFailure as failure:
            log.warning("transactions not checked", network=network_id, reason=str(failure))
            _postpone(due, due.rows)
            break
        checked += len(due.rows)
        sightings_by_hash = _said(due, answers)
        doubtful = {
            tx_hash: sighting
            for tx_hash, sighting in sightings_by_hash.items()
            if sightings.is_to_be_judged(sighting, due.now)
        }
        _keep(
            due,
            answers,
            {tx: sighting for tx, sighting in sightings_by_hash.items() if tx not in doubtful},
        )
        if doubtful:
            _judge(network_id, due, doubtful)
        if len(due.rows) < MOST:
            break
    return checked


def _due(network_id: int, now: int | None) -> _Due:
    rows = due_transactions(network_id, now)
    return _Due(rows[0].now if rows else 0, tuple(map(followed, rows)))


def _ask(rows: Sequence[Followed], node: Node) -> _Answers:
    receipts = node_requests.receipts(node, [row.hash for row in rows])
    hashes = [
        row.hash
        for row in rows
        if row.record.status == PENDING
        and receipts.get(row.hash, ...) is None
        and sightings.is_worth_asking(row.sighting, row.record.attempts + 1)
    ]
    try:
        return _Answers(receipts, node_requests.transactions(node, hashes) if hashes else {})
    except NodeFailure:
        return _Answers(receipts)


def _said(due: _Due, answers: _Answers) -> dict[str, sightings.Sighting]:
    """What nodes say of those that aren't mined, by hash, where it is new."""
    sightings_by_hash: dict[str, sightings.Sighting] = {}
    for row in due.rows:
        if row.hash not in answers.transactions:
            continue
        try:
            sighting = sightings.after_asking(row.sighting, answers.transactions[row.hash], due.now)
        except ValueError:
            continue
        if sighting != row.sighting:
            sightings_by_hash[row.hash] = sighting
    return sightings_by_hash


def _keep(
    due: _Due, answers: _Answers, sightings_by_hash: Mapping[str, sightings.Sighting]
) -> None:
    decided = choices()
    missed: list[tuple[Followed, Record, sightings.Sighting | None]] = []
    changed: list[tuple[Followed, Record]] = []
    for row in due.rows:
        if row.hash in answers.receipts:
            receipt = answers.receipts[row.hash]
            new = next_state(row.record, receipt, due.now, choices=decided)
            if receipt is None and row.record.status == PENDING:
                missed.append((row, new, sightings_by_hash.get(row.hash)))
            else:
                changed.append((row, new))

    def kept() -> None:
        maintenance.check()
        write_missed(missed)
        write(changed, unless_changed=True)

    try:
        with maintenance.recording():
            all_or_nothing(kept)
    except UnderMaintenance:
        return
    unanswered = [row for row in due.rows if row.hash not in answers.receipts]
    if unanswered:
        _postpone(due, unanswered)


def _postpone(due: _Due, rows: Sequence[Followed]) -> None:
    """No node has answered: nothing is known, and the next check is soon."""

    def postponed() -> None:
        maintenance.check()
        write_pauses((row, due.now + pause_after(row.failed_checks + 1)) for row in rows)

    try:
        with maintenance.recording():
            all_or_nothing(postponed)
    except UnderMaintenance:
        return


def _judge(network_id: int, due: _Due, doubtful: Mapping[str, sightings.Sighting]) -> None:
    """Keep what nodes say of those that may have been replaced; suspect those that have been."""
    replaced = _replaced(network_id, doubtful)
    found = [
        (row.object_id, replace(sighting, suspected=True) if row.hash in replaced else sighting)
        for row in due.rows
        if (sighting := doubtful.get(row.hash)) is not None
    ]

    def kept() -> None:
        maintenance.check()
        write_sightings(found)

    try:
        with maintenance.recording():
            all_or_nothing(kept)
    except UnderMaintenance:
        return


def _replaced(network_id: int, doubtful: Mapping[str, sightings.Sighting]) -> set[str]:
    """The hashes of those that two providers, if there are two, hold for replaced."""
    height = _final(network_id)

    def witness(node: Node) -> set[str]:
        transactions = node_requests.transactions(node, [*doubtful])
        mined = node_requests.receipts(node, [*doubtful])
        accounts = {
            sighting.from_address for sighting in doubtful.values() if sighting.from_address
        }
        nonces = node_requests.final_nonces(node, sorted(accounts), height)
        return {
            tx_hash
            for tx_hash, sighting in doubtful.items()
            if transactions.get(tx_hash, ...) is None
            and mined.get(tx_hash, ...) is None
            and sighting.from_address in nonces
            and sightings.is_passed(sighting, nonces[sighting.from_address])
        }

    try:
        return set.intersection(*rpc.witnesses(network_id, witness))
    except NodeFailure:
        return set()


def _final(network_id: int) -> int | None:
    """The height that the network's reader has last seen to be final."""
    return Cursor.objects.filter(network_id=network_id).values_list("finalized", flat=True).first()
