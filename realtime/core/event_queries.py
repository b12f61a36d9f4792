"""Subscriptions to the event channel, parsed from the query string of the handshake.

| parameter | |
|---|---|
| ``contract`` | addresses or names (not ``0x…``): only events of these contracts |
| ``network`` | numbers: only events of these networks |
| ``event`` | names, or ``*`` for every kind; default ``Transfer`` |
| ``since`` | a cursor, ``0`` or ``now``: detailed messages from that position |
| ``reorg`` | ``1``: detailed messages, including removals by reorganisations |
| ``finality`` | ``safe`` or ``final``: events once their block is; default ``latest`` |

``contract``, ``network`` and ``event`` may be repeated and accept comma-separated lists. Any other
parameter is rejected: a misspelled filter would otherwise match everything.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final, Literal, NamedTuple

from realtime.core.cursors import BadCursor, Cursor, decode
from realtime.core.events import TRANSFER, Event

MOST_VALUES: Final = 100
LONGEST_VALUE: Final = 200
LARGEST_NETWORK: Final = 2**53 - 1
NOW: Final = "now"
BEGINNING: Final = "0"
ALL: Final = "*"

PARAMETERS: Final = ("contract", "network", "event", "since", "reorg", "finality")

Finality = Literal["latest", "safe", "final"]
LATEST: Final = "latest"
SAFE: Final = "safe"
FINAL: Final = "final"

_LONGEST_NAME_SHOWN: Final = 40
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")
_HEXADECIMAL = re.compile(r"0x[0-9a-fA-F]*")
_NETWORK = re.compile(r"[1-9][0-9]{0,15}")
_YES = frozenset({"1", "true", "on", "yes"})
_NO = frozenset({"", "0", "false", "off", "no"})


class BadQuery(ValueError):
    """An invalid query; the text is for the client and names the parameter."""


class Filter(NamedTuple):
    """Conditions on events; None is no restriction. Addresses are in lower case."""

    events: frozenset[str] | None = frozenset({TRANSFER})
    contracts: frozenset[str] | None = None
    networks: frozenset[int] | None = None

    def matches(self, event: Event) -> bool:
        """Whether the event matches.

        An event that couldn't be decoded never does; a ``Transfer`` that isn't a token transfer
        only matches a filter for every kind.
        """
        if event.data is None:
            return False
        if self.networks is not None and event.network_id not in self.networks:
            return False
        if self.contracts is not None and self.contracts.isdisjoint(event.terms):
            return False
        if self.events is None:
            return True
        name = event.details.eventName
        return name in self.events and (name != TRANSFER or event.is_transfer)


class EventSubscription(NamedTuple):
    """The parameters of a connection. ``since`` is None if it doesn't receive cursors."""

    filter: Filter = Filter()
    since: Cursor | str | None = None
    reorg: bool = False
    finality: Finality = LATEST

    @property
    def is_detailed(self) -> bool:
        return self.since is not None or self.reorg


def parse(
    query: Mapping[str, Sequence[str]], *, ignored: Collection[str] = ()
) -> EventSubscription:
    """Parse a query. Raises ``BadQuery`` for an invalid one, and for a parameter that is neither
    one of ``PARAMETERS`` nor among ``ignored``."""
    for name in query:
        if name not in PARAMETERS and name not in ignored:
            raise BadQuery(
                f"{name[:_LONGEST_NAME_SHOWN]}: unknown parameter. Use {', '.join(PARAMETERS)}."
            )
    contracts = _values(query, "contract")
    networks = _values(query, "network")
    events = _values(query, "event")
    event_filter = Filter(
        events=frozenset(events) if events else frozenset({TRANSFER}),
        contracts=frozenset(map(_contract, contracts)) if contracts else None,
        networks=frozenset(map(_network, networks)) if networks else None,
    )
    if ALL in events:
        event_filter = event_filter._replace(events=None)
    return EventSubscription(event_filter, _since(query), _flag(query, "reorg"), _finality(query))


def _values(query: Mapping[str, Sequence[str]], name: str) -> list[str]:
    parts = [part.strip() for text in query.get(name, ()) for part in text.split(",")]
    values = [part for part in parts if part]
    if len(values) > MOST_VALUES:
        raise BadQuery(f"{name}: at most {MOST_VALUES} values.")
    if any(len(part) > LONGEST_VALUE for part in values):
        raise BadQuery(f"{name}: a value has at most {LONGEST_VALUE} characters.")
    if parts and not values:
        raise BadQuery(f"{name}: names nothing.")
    return values


def _contract(text: str) -> str:
    if _ADDRESS.fullmatch(text):
        return text.lower()
    if _HEXADECIMAL.fullmatch(text):
        raise BadQuery("contract: an address has 40 hexadecimal digits after 0x.")
    return text


def _network(text: str) -> int:
    if _NETWORK.fullmatch(text) is None or int(text) > LARGEST_NETWORK:
        raise BadQuery(f"network: {text!r} is no number of a network.")
    return int(text)


def _since(query: Mapping[str, Sequence[str]]) -> Cursor | str | None:
    values = query.get("since")
    if not values:
        return None
    if len(values) > 1:
        raise BadQuery("since: may be given once.")
    text = values[0].strip()
    if text in ("", NOW):
        return NOW
    if text == BEGINNING:
        return BEGINNING
    try:
        return decode(text)
    except BadCursor:
        raise BadQuery("since: neither the id of a message, nor 0, nor now.") from None


def _finality(query: Mapping[str, Sequence[str]]) -> Finality:
    values = query.get("finality")
    if not values:
        return LATEST
    if len(values) > 1:
        raise BadQuery("finality: may be given once.")
    value = values[0].strip()
    for finality in (LATEST, SAFE, FINAL):
        if value == finality:
            return finality
    raise BadQuery("finality: latest, safe or final.")


def _flag(query: Mapping[str, Sequence[str]], name: str) -> bool:
    values = query.get(name)
    text = values[-1].strip().lower() if values else ""
    if text in _YES:
        return True
    if text in _NO:
        return False
    raise BadQuery(f"{name}: 1 or 0.")
