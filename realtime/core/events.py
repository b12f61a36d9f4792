"""Messages of the event channel: contract events and their delivery rules.

A plain message is exactly ``{"event": name, "data": arguments}``. A detailed message adds the
event's position in the chain and ends with ``id``, the connection's cursor for resuming.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from backend.kernel.texts.encoding import encode_json

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
    tokenTransfer: bool | None = None
    logIndex: int = 0


class PriorRows(NamedTuple):
    """Numbers of earlier rows about the same log, or None (see ``outbox_reader``)."""

    again_of: int | None = None
    announced: int | None = None
    gone: int | None = None


NO_PRIOR_ROWS: Final = PriorRows()


class Event:
    """A row of the outbox. Its encodings are cached.

    A row with ``counts=False`` isn't sent: its event was removed before it was final.
    """

    __slots__ = (
        "_detailed",
        "_plain",
        "data",
        "details",
        "is_transfer",
        "network_id",
        "op",
        "prior",
        "seq",
        "size",
    )

    def __init__(
        self,
        network_id: int,
        seq: int,
        op: str,
        payload: str | bytes,
        prior: PriorRows = NO_PRIOR_ROWS,
        *,
        counts: bool = True,
    ) -> None:
        self.network_id = network_id
        self.seq = seq
        self.op = op
        self.size = len(payload)
        self.prior = prior
        self.details = _decode(payload)
        transfer = _transfer_of(self.details)
        self.is_transfer = transfer is not None
        """Whether the event is the transfer of a token."""
        self.data = (transfer or _data_of(self.details)) if counts else None
        self._plain: bytes | None = None
        self._detailed: bytes | None = None

    @property
    def terms(self) -> tuple[str, str]:
        """The names of the contract in filters: its address in lower case, and its name."""
        return self.details.address.lower(), self.details.contractName

    def is_delivered(self, start: int, *, reorg: bool) -> bool:
        """Whether the event is sent to a connection that started after row ``start``.

        Without ``reorg``, an event is sent once: neither its removal nor its return is sent. With
        ``reorg``, the removal of an announced event is sent, and its return after that too.
        """
        again_of, announced, gone = self.prior
        if self.op == ADDED:
            if again_of is None or again_of <= start:
                return True
            return reorg and gone is not None and gone > again_of
        return reorg and announced is not None and (gone is None or gone < announced)

    @property
    def plain(self) -> bytes:
        """The complete message for a plain connection."""
        if self._plain is None:
            self._plain = encode_json({"event": self.details.eventName, "data": self.data})
        return self._plain

    def detailed(self, id_: str) -> bytes:
        """Return the detailed message with the cursor ``id_``, a text without quotes."""
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
        return encode_json(message)[:-1] + b","


_decode: Callable[[str | bytes], Details] = msgspec.json.Decoder(Details).decode


def control(kind: str, data: Mapping[str, Any], id_: str) -> bytes:
    """Encode a control message, ``hello`` or ``reset``."""
    return encode_json({"event": kind, "data": data, "id": id_})


def _data_of(details: Details) -> Any:
    """Return an event's arguments as its ``data``.

    None for an event that couldn't be decoded; no message is sent for it.
    """
    return details.args if details.eventName else None


def _transfer_of(details: Details) -> dict[str, str] | None:
    """Return the ``data`` of the transfer of a token, None for any other event.

    Rows of earlier releases don't say whether a ``Transfer`` is that of a token: there its
    arguments decide alone.
    """
    if details.eventName != TRANSFER or details.tokenTransfer is False:
        return None
    return transfer(details.args) if isinstance(details.args, dict) else None


_SHAPES: Final = (frozenset({"from", "to", "tokenId"}), frozenset({"from", "to", "value"}))


def transfer(args: Mapping[str, Any]) -> dict[str, str] | None:
    """Return ``from``, ``to`` and ``tokenId`` (a decimal string) or ``value`` of a transfer.

    Contracts use many names for these arguments. None if these can't be those of a transfer.
    """
    if len(args) != 3:
        return None
    arguments: dict[str, str] = {}
    for name, value in args.items():
        key = _canonical_name(name)
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


def _canonical_name(name: str) -> str | None:
    plain = name.replace("_", "").lower()
    for key, names in (("from", _FROM), ("to", _TO), ("tokenId", _TOKEN), ("value", _VALUE)):
        if plain in names:
            return key
    return None
