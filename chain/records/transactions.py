"""What ``Transaction`` asks of its objects: one that is created is followed from then on.

The service keeps the fields of docs/chain-transactions.md. A new object is ``pending`` and has
nothing else of it; only one that is brought along from elsewhere with a final status may have the
rest, and is taken as it is. Nothing of it can be changed afterwards. Fields of one's own can.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from backend.kernel.errors import (
    DuplicateValue,
    IncorrectType,
    OperationForbidden,
    ValidationFailed,
)
from backend.kernel.json_types import Wire
from chain import monitor
from chain.core.names import address_of, hash_of, network_of, whole_number
from chain.core.transactions.states import (
    CONFIRMED,
    FAILED,
    FINALIZED,
    INCLUDED,
    ORPHANED,
    PENDING,
    SAFE,
    STALLED,
)
from objects.access.scope import Scope
from objects.core.names import ObjectId, check_class_name
from objects.core.query.tree import Everything
from objects.definitions import registry
from objects.rules import Change, Rules
from objects.storage import updates

_CLASS: Final = "Transaction"
_KEYS: Final = ("hash", "networkId")
_NOTHING: Final = (None, {"__op": "Delete"})
_DECIMAL: Final = re.compile(r"0|[1-9][0-9]{0,77}")
_Reader = Callable[[Any], Any]


def _one_of(*allowed: str) -> _Reader:
    def read(value: Any) -> str:
        if value not in allowed:
            raise ValueError(f"expected one of {', '.join(allowed)}")
        return str(value)

    return read


def _count(value: Any) -> int:
    number = whole_number(value)
    if number >= 2**31:
        raise ValueError("expected a smaller number")
    return number


def _decimal(value: Any) -> str:
    if not isinstance(value, str) or not _DECIMAL.fullmatch(value):
        raise ValueError("expected a whole number in decimal digits, as text")
    return value


def _same(value: Any) -> Any:
    return value


_KEPT: Final[dict[str, _Reader]] = {
    "status": _one_of(PENDING, CONFIRMED, FAILED, STALLED),
    "attempts": _count,
    "lastChecked": _same,
    "blockNumber": whole_number,
    "gasUsed": _decimal,
    "effectiveGasPrice": _decimal,
    "blockHash": hash_of,
    "transactionIndex": whole_number,
    "from": address_of,
    "to": address_of,
    "nonce": whole_number,
    "finality": _one_of(INCLUDED, SAFE, FINALIZED, ORPHANED),
    "reorgCount": _count,
    "pendingSince": _same,
    "replacedBy": hash_of,
    "replacedSuspected": _same,
    "lateReceipt": _same,
}
"""The fields that the service keeps, each with what its value has to be."""

_PLACE: Final = {"blockNumber", "blockHash"}
_BEGINNING: Final = {"status": PENDING, "attempts": 0}


class TransactionRules(Rules[Change]):
    """See the module."""

    def check_request(self, change: Change) -> None:
        # Triggers run before ``prepare`` and get the object as its schema has it: as text.
        if change.creating and isinstance(change.fields.get("networkId"), int | float):
            with suppress(ValueError):  # ``prepare`` refuses it
                change.fields["networkId"] = str(network_of(change.fields["networkId"]))

    def prepare(self, change: Change) -> None:
        fields = change.fields
        if not change.creating:
            return
        for name in (*_KEYS, *_KEPT):
            if name in fields and fields[name] in _NOTHING:
                del fields[name]
        for name in _KEYS:
            if name not in fields:
                raise ValidationFailed(f"{name} is required")
        _take(fields, "hash", hash_of)
        _take(fields, "networkId", lambda value: str(network_of(value)))
        for name, read in _KEPT.items():
            _take(fields, name, read)
        if fields.get("status", PENDING) == PENDING:
            for name in _KEPT:
                if name in fields and fields[name] != _BEGINNING.get(name):
                    raise OperationForbidden(
                        f"{name} is kept by the service; only a transaction that is"
                        f" {CONFIRMED}, {FAILED} or {STALLED} may bring it along"
                    )
            fields |= _BEGINNING
            return
        fields.setdefault("attempts", 0)
        if fields.get("finality") in (INCLUDED, SAFE) and not fields.keys() >= _PLACE:
            raise ValidationFailed("blockNumber and blockHash are required with this finality")

    def begin(self, change: Change) -> None:
        if change.creating:
            monitor.lock(change.fields["hash"])

    def before_create(self, change: Change) -> None:
        known_chain = _known(change)
        if known_chain is None:
            return
        if known_chain["networkId"] != change.fields["networkId"]:
            raise DuplicateValue(
                f"A transaction with this hash is followed on network {known_chain['networkId']}."
            )
        change.instead = known_chain
        for name in (*_KEYS, *_KEPT):
            change.fields.pop(name, None)

    def after_create(self, change: Change) -> None:
        if change.fields["status"] == PENDING:
            monitor.started(change.object_id, int(change.fields["networkId"]))

    def before_update(self, change: Change) -> None:
        assert change.before is not None
        for name in [*change.fields]:
            field = name.partition(".")[0]
            if field in _KEPT or field in _KEYS:
                if change.fields[name] != change.before.get(name):
                    raise OperationForbidden(f"{field} is kept by the service")
                del change.fields[name]


def _take(fields: dict[str, Any], name: str, read: _Reader) -> None:
    if name in fields:
        try:
            fields[name] = read(fields[name])
        except ValueError as error:
            raise IncorrectType(f"{name}: {error}") from None


def _known(change: Change) -> Wire | None:
    """The record of the same hash, locked."""
    object_id = monitor.id_of(change.fields["hash"])
    if object_id is None:
        return None
    table = registry.find(check_class_name(_CLASS))
    assert table is not None, "the class is offered by this application"
    record = updates.lock(table, ObjectId(object_id), Everything(), Scope(change.principal))
    return None if record is None else record.object()
