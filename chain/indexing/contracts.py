"""What is known of a network's contracts: which logs are wanted, and what they mean.

A contract's logs are read by its own ABI first, then by those of the contracts whose code it runs
(``chain.core.abi.proxies``), as far as they are registered on the network; whether these are
listened to doesn't matter.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

import msgspec
from django.db import transaction
from eth_utils import keccak

from backend.logs.setup import get_logger
from chain import rpc
from chain.core.abi import proxies
from chain.core.abi.contract import LONGEST_NAME, TRANSFER, Event, events_of
from chain.core.abi.logs import Vocabulary
from chain.core.blocks.events import EventRow, event_row
from chain.core.failures import Halted, NodeFailure, SlowDown
from chain.core.names import ZERO_ADDRESS, checksummed
from chain.core.node import Log, LogFilter, Node
from chain.indexing.contract_versions import contracts_changed
from chain.indexing.storage import contracts as rows
from chain.indexing.storage.contracts import ContractRow
from objects.database import maintenance

LOOK_AGAIN: Final = 3600.0  # seconds, at what has run the code of others
LOOK_FOR_PROXIES: Final = 86_400.0  # at what hasn't
LOOK_AFTER_FAILURE: Final = 60.0  # at what no provider has answered for
MOST_LOOKED_AT: Final = 50  # contracts at a time
_WITHOUT_CODE: Final = f"0x{keccak(text='an address without code')[12:].hex()}"

log = get_logger("chain")

_Version = tuple[str, str]
"""A contract's object id and which version of the row it is."""


@dataclass
class Contract:
    """A contract that is listened to. ``behind`` are the addresses of the code that it runs or has
    run, the newest first; ``looked_at`` is when that was found out (seconds since the epoch)."""

    object_id: str
    name: str
    address: str
    behind: tuple[str, ...]
    looked_at: float
    abis: tuple[tuple[Event, ...], ...]
    _vocabulary: Vocabulary | None = field(default=None, init=False)

    @property
    def vocabulary(self) -> Vocabulary:
        if self._vocabulary is None:
            events = (event for abi in (*self.abis, proxies.EVENTS) for event in abi)
            self._vocabulary = Vocabulary(events)
        return self._vocabulary

    @property
    def is_due(self) -> bool:
        """Whether it is time to look whose code it runs."""
        return time.time() - self.looked_at >= self._pause

    @property
    def _pause(self) -> float:
        return LOOK_AGAIN if self.behind else LOOK_FOR_PROXIES

    def postpone(self) -> None:
        """Let it be due in a minute."""
        self.looked_at = time.time() - self._pause + LOOK_AFTER_FAILURE


_NO_TIMES: Final[Mapping[str, str]] = MappingProxyType({})


class Catalogue:
    """The contracts of a network that are listened to, as of one ``version`` of the cursor's
    ``contracts``. ``wanted`` are their logs; without addresses there is nothing to ask for."""

    def __init__(self, version: int, contracts: Mapping[str, Contract]) -> None:
        self.version = version
        self.contracts = contracts
        self.wanted = LogFilter(addresses=tuple(contracts))

    def only(self, addresses: Iterable[str]) -> Catalogue:
        """The same, of these contracts alone; those that aren't listened to are left out."""
        chosen = {address.lower() for address in addresses}
        contracts = {
            address_of_contract: contract
            for address_of_contract, contract in self.contracts.items()
            if address_of_contract in chosen
        }
        return Catalogue(self.version, contracts)

    def read(self, logs: Sequence[Log], times: Mapping[str, str] = _NO_TIMES) -> list[EventRow]:
        """The events that these logs are, in their order; logs of other contracts are left out.
        ``times`` are those of their blocks, by hash.

        Logs of one transaction have to come together, in the order of the block.
        """
        events = []
        contracts = self.contracts
        transaction_hash = ""
        ordinals: dict[str, int] = {}
        for log in logs:
            contract = contracts.get(log.address) or contracts.get(log.address.lower())
            if contract is None:
                continue
            if log.transaction_hash != transaction_hash:
                transaction_hash = log.transaction_hash
                ordinals = {}
            ordinal = ordinals.get(contract.address, 0)
            ordinals[contract.address] = ordinal + 1
            vocabulary = contract.vocabulary
            name, args = vocabulary.read(log.topics, log.data)
            events.append(
                event_row(
                    log,
                    contract.name,
                    contract.address,
                    name,
                    args,
                    ordinal,
                    times,
                    vocabulary.is_token_transfer(log.topics) if name == TRANSFER else None,
                )
            )
        return events


_catalogues: dict[int, Catalogue] = {}
_abis: dict[int, dict[_Version, tuple[Event, ...]]] = {}


def catalogue(network_id: int) -> Catalogue:
    """The contracts of the network now. Costs one small query unless they have changed."""
    version = rows.version(network_id)
    cached = _catalogues.get(network_id)
    # No write has been counted yet at 0.
    if cached is None or cached.version != version or not version:
        # In this order: what changes meanwhile gives the cursor another version.
        cached = _catalogues[network_id] = Catalogue(version, _listened_to(network_id))
    return cached


def _listened_to(network_id: int) -> dict[str, Contract]:
    contracts = rows.registered(network_id, LONGEST_NAME)
    behind = {row: _addresses(row.behind) for row in contracts if row.listening}
    registered = {row.address.lower(): row for row in contracts}
    needed = {
        *behind,
        *(
            registered[address]
            for all_ in behind.values()
            for address in all_
            if address in registered
        ),
    }
    abis = _events(network_id, needed)
    return {
        row.address.lower(): Contract(
            row.object_id,
            row.name,
            checksummed(row.address.lower()),
            addresses,
            row.looked_at,
            (
                abis[row],
                *(abis[registered[address]] for address in addresses if address in registered),
            ),
        )
        for row, addresses in behind.items()
    }


def _addresses(text: str | None) -> tuple[str, ...]:
    return tuple(msgspec.json.decode(text)) if text else ()


def _events(
    network_id: int, contracts: Iterable[ContractRow]
) -> dict[ContractRow, tuple[Event, ...]]:
    """The events of these contracts' ABIs, of which only those are read that have changed."""
    cached = _abis.get(network_id, {})
    versions = {row: (row.object_id, row.row_version) for row in contracts}
    missing = [row.object_id for row, version in versions.items() if version not in cached]
    read: dict[_Version, tuple[Event, ...]] = {}
    if missing:
        for row in rows.abis(missing):
            events = events_of(msgspec.json.decode(row.abi or "null"))
            read[row.object_id, row.row_version] = tuple(events)
    current = {version: cached[version] for version in versions.values() if version in cached}
    _abis[network_id] = current | read
    # By the id alone, since a row may have been written in between: with what its contract runs,
    # which changes nothing here, or by a process whose change has another version.
    newest = {object_id: events for (object_id, _), events in read.items()}
    return {
        row: current[each] if each in current else newest.get(row.object_id, ())
        for row, each in versions.items()
    }


# -- What they run --------------------------------------------------------------------------------


def refresh(network_id: int, node: Node, logs: Sequence[Log] = ()) -> bool:
    """Look whose code the network's contracts run: those that are due, and those whose ``logs`` say
    that it has changed. Asks the node nothing if there are none. Contracts about which no provider
    answers delay nothing: they are looked at again a minute later.

    Whether something was found that wasn't known. Then the cursor's ``contracts`` has grown, and
    these logs are to be read again, by the catalogue that is made of it.
    """
    contracts = catalogue(network_id).contracts
    named = {each: all_ for each, all_ in proxies.named_by(logs).items() if each in contracts}
    due = [each for each, contract in contracts.items() if contract.is_due and each not in named]
    addresses = [*named, *due[:MOST_LOOKED_AT]]
    if not addresses:
        return False
    implementations = _answered(node, addresses)
    changes: dict[str, tuple[str, ...]] = {}
    for address in addresses:
        if address not in implementations and address not in named:
            contracts[address].postpone()
            continue
        contract = contracts[address]
        # What it ran formerly has logged too.
        all_ = [*implementations.get(address, ()), *named.get(address, ()), *contract.behind]
        behind = tuple(dict.fromkeys(each for each in all_ if each not in (address, ZERO_ADDRESS)))
        changes[address] = behind[: proxies.MOST_NAMED]
    if not changes:
        return False
    has_news = any(set(behind) != set(contracts[each].behind) for each, behind in changes.items())
    _note(network_id, {contracts[each].object_id: changes[each] for each in changes}, has_news)
    for address in changes:
        contracts[address].looked_at = time.time()
    return has_news


def _answered(node: Node, addresses: Sequence[str]) -> dict[str, list[str]]:
    """As ``_look_behind``, without the contracts about which no provider answers.

    A contract may make a node fail in ways that no text explains. A node that answers the same
    calls about an address without code isn't what is wrong then.
    """
    try:
        return _look_behind(node, addresses)
    except SlowDown:
        raise
    except NodeFailure as failure:
        reason = str(failure)
    if not _answers_calls(node):
        others = rpc.ask_several(
            node.network_id, lambda each: _look_behind(each, addresses), most=1
        )
        if others:
            return others[0]
    elif len(addresses) > 1:
        middle = len(addresses) // 2
        return _answered(node, addresses[:middle]) | _answered(node, addresses[middle:])
    log.warning(
        "a contract can't be looked at",
        network=node.network_id,
        address=addresses[0],
        others=len(addresses) - 1,
        reason=reason,
    )
    return {}


def _answers_calls(node: Node) -> bool:
    """Whether the node answers the calls of ``_look_behind`` for an address without code. Raises
    ``TryAgain`` if it doesn't even answer for its head."""
    try:
        answers = node.batch(proxies.questions(_WITHOUT_CODE))
    except NodeFailure:
        node.header("latest")
        return False
    return not any(isinstance(answer, NodeFailure) for answer in answers)


def _look_behind(node: Node, addresses: Sequence[str]) -> dict[str, list[str]]:
    """The addresses of the code that these contracts run. Raises ``NodeFailure``, also if an error
    may not be the contract's own answer."""
    answers = node.batch([call for each in addresses for call in proxies.questions(each)])
    unclear = [each for each in answers if _is_unclear(each)]
    if unclear and not _answers_calls(node):
        raise unclear[0]
    implementations: dict[str, list[str]] = {}
    beacons: dict[str, str] = {}
    for number, address in enumerate(addresses):
        start = number * proxies.QUESTIONS
        implementations[address], beacon = proxies.addresses_in(
            answers[start : start + proxies.QUESTIONS]
        )
        if beacon is not None:
            beacons[address] = beacon
    if beacons:
        calls = [proxies.beacon_question(beacon) for beacon in beacons.values()]
        for address, answer in zip(beacons, node.batch(calls), strict=True):
            implementation = proxies.address_in(answer)
            implementations[address] += [implementation] if implementation else []
    return implementations


def _is_unclear(answer: Any) -> bool:
    return isinstance(answer, NodeFailure) and not isinstance(answer, Halted)


def _note(network_id: int, behind: Mapping[str, tuple[str, ...]], has_news: bool) -> None:
    texts = {
        object_id: msgspec.json.encode(addresses).decode()
        for object_id, addresses in behind.items()
    }
    with maintenance.recording(), transaction.atomic():
        maintenance.check()
        rows.store_behind(texts)
        if has_news:
            contracts_changed({"networkId": network_id})
