"""Messages of the event channel: events of contracts, and who gets them.

A plain message is exactly ``{"event": name, "data": arguments}``. A detailed one adds where the
event is in the chain, and ends with ``id``: where to go on from, which depends on the connection.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

TRANSFER: Final = "Transfer"
ADDED: Final = "added"
REMOVED: Final = "removed"

_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")
_DIGITS = re.compile(r"[0-9]+")
# Names of arguments in use, without underscores and in lower case. Unnamed ones are numbered.
_FROM: Final = frozenset({"from", "src", "source", "sender", "owner", "0"})
_TO: Final = frozenset({"to", "dst", "dest", "destination", "receiver", "recipient", "1"})
_TOKEN: Final = frozenset({"tokenid", "id", "nftid", "token", "assetid"})
_VALUE: Final = frozenset({"value", "amount", "wad", "tokens", "quantity", "qty", "2"})


class Date(msgspec.Struct, frozen=True, gc=False):
    iso: str


class Details(msgspec.Struct, frozen=True, gc=False):
    """The payload of a row of the outbox: an event as REST shows it."""

    args: Any = None
    objectId: str = ""
    networkId: str = ""
    contractName: str = ""
    eventName: str = ""
    address: str = ""
    transactionHash: str = ""
    blockNumber: int = 0
    blockHash: str = ""
    blockTimestamp: Date | None = None
    logIndex: int = 0


class Before(NamedTuple):
    """What earlier rows have told of the same log: numbers of rows, or None
    (``chain.indexing.storage.outbox``)."""

    again_of: int | None = None
    announced: int | None = None
    gone: int | None = None


NOTHING: Final = Before()


class Event:
    """A row of the outbox. It is encoded when it is first needed, and kept.

    A row that doesn't count is sent to no connection: its event was removed before it was final.
    """

    __slots__ = (
        "_detailed",
        "_plain",
        "before",
        "data",
        "details",
        "network_id",
        "op",
        "seq",
        "size",
    )

    def __init__(
        self,
        network_id: int,
        seq: int,
        op: str,
        payload: str | bytes,
        before: Before = NOTHING,
        *,
        counts: bool = True,
    ) -> None:
        self.network_id = network_id
        self.seq = seq
        self.op = op
        self.size = len(payload)
        self.before = before
        self.details = _decode(payload)
        self.data = data_of(self.details) if counts else None
        self._plain: bytes | None = None
        self._detailed: bytes | None = None

    @property
    def terms(self) -> tuple[str, str]:
        """What a client may call the contract: its address in lower case, and its name."""
        return self.details.address.lower(), self.details.contractName

    def is_told(self, start: int, *, reorg: bool) -> bool:
        """Whether a connection gets it that gets everything after row ``start``.

        Without ``reorg``, once: what comes back as it was is not told again, what is removed is
        not told. With it, a removal is told of whatever was announced, and so is what comes back
        after it.
        """
        again_of, announced, gone = self.before
        if self.op == ADDED:
            if again_of is None or again_of <= start:
                return True
            return reorg and gone is not None and gone > again_of
        return reorg and announced is not None and (gone is None or gone < announced)

    @property
    def plain(self) -> bytes:
        """The whole message of a plain connection."""
        if self._plain is None:
            self._plain = _encode({"event": self.details.eventName, "data": self.data})
        return self._plain

    def detailed(self, id_: str) -> bytes:
        """The message of a connection that may go on from ``id_``, a text without quotes."""
        if self._detailed is None:
            self._detailed = self._encode_detailed()
        return b'%b"id":"%b"}' % (self._detailed, id_.encode())

    def _encode_detailed(self) -> bytes:
        details = self.details
        message = {
            "event": details.eventName,
            "data": self.data,
            "objectId": details.objectId,
            "networkId": details.networkId,
            "contractName": details.contractName,
            "address": details.address,
            "blockNumber": details.blockNumber,
            "blockHash": details.blockHash,
            "transactionHash": details.transactionHash,
            "logIndex": details.logIndex,
        }
        if details.blockTimestamp is not None:
            message["blockTimestamp"] = details.blockTimestamp.iso
        if self.op == REMOVED:
            message["removed"] = True
        return _encode(message)[:-1] + b","


_decode: Callable[[str | bytes], Details] = msgspec.json.Decoder(Details).decode


_encode: Callable[[Mapping[str, Any]], bytes] = msgspec.json.Encoder().encode


def control(kind: str, data: Mapping[str, Any], id_: str) -> bytes:
    """A message of the channel itself, ``hello`` or ``reset``."""
    return _encode({"event": kind, "data": data, "id": id_})


def data_of(details: Details) -> Any:
    """What ``data`` says of an event: its arguments, a transfer's by the names that clients know.

    None for an event that has no such message: one that couldn't be decoded.
    """
    if not details.eventName:
        return None
    if details.eventName == TRANSFER and isinstance(details.args, dict):
        return transfer(details.args) or details.args
    return details.args


def is_transfer(data: Any) -> bool:
    """Whether this is what ``transfer`` makes."""
    return isinstance(data, dict) and data.keys() in _SHAPES


_SHAPES: Final = (frozenset({"from", "to", "tokenId"}), frozenset({"from", "to", "value"}))


def transfer(args: Mapping[str, Any]) -> dict[str, str] | None:
    """``from``, ``to`` and ``tokenId`` (a decimal string) or ``value`` of a token's transfer.

    Contracts call these arguments by many names. None if it isn't the transfer of a token.
    """
    if len(args) != 3:
        return None
    arguments: dict[str, str] = {}
    for name, value in args.items():
        key = _called(name)
        if key is None or key in arguments:
            return None
        if key in ("from", "to"):
            if not isinstance(value, str) or _ADDRESS.fullmatch(value) is None:
                return None
        else:
            if isinstance(value, bool) or not isinstance(value, int | str):
                return None
            value = str(value)
            if _DIGITS.fullmatch(value) is None:
                return None
        arguments[key] = value
    if arguments.keys() not in _SHAPES:
        return None
    return {key: arguments[key] for key in ("from", "to", "tokenId", "value") if key in arguments}


def _called(name: str) -> str | None:
    plain = name.replace("_", "").lower()
    for key, names in (("from", _FROM), ("to", _TO), ("tokenId", _TOKEN), ("value", _VALUE)):
        if plain in names:
            return key
    return None
