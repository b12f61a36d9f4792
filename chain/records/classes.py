"""The chain's records as the object store sees them (clarifications, section 4).

Everybody with a client key may read them; only the master key and the service write.
"""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models import Model

from chain.core.columns import camel_case
from chain.models import (
    SHOWN_EVENTS,
    Blockchain,
    ContractEvent,
    Identity,
    SmartContract,
    Transaction,
    finality_sql,
)
from chain.models.stored import EVENT, TRANSACTION
from chain.records.contracts import ContractRules, EventRules
from chain.records.rules import BlockchainRules, IdentityRules
from chain.records.transactions import TransactionRules
from objects.core.access.class_permissions import ACTIONS as _ACTIONS
from objects.core.access.class_permissions import ANYBODY, NOBODY, READ_ACTIONS, ClassPermissions
from objects.core.names import USER, check_class_name
from objects.core.schema.definition import FieldType
from objects.definitions import registry
from objects.rules import set_rules
from objects.triggers import refuse_on_writes

_STRING = FieldType("String")
_NUMBER = FieldType("Number")
_BOOLEAN = FieldType("Boolean")
_DATE = FieldType("Date")
_OBJECT = FieldType("Object")

_READ_BY_ALL = ClassPermissions(
    {action: ANYBODY if action in READ_ACTIONS else NOBODY for action in _ACTIONS}
)

_BLOCKCHAIN = {
    "networkId": _NUMBER,
    "name": _STRING,
    "symbol": _STRING,
    "rpcEndpoint": _STRING,
    "wssEndpoint": _STRING,
    "code": _STRING,
    "explorer": _STRING,
}
# How the service syncs a network: for the master key alone.
_BLOCKCHAIN_SETTINGS = {
    "active": _BOOLEAN,
    "confirmations": _NUMBER,
    "pollInterval": _NUMBER,
    "finalityDepth": _NUMBER,
    "verify": _STRING,
}
_CONTRACT = {
    "name": _STRING,
    "address": _STRING,
    "networkId": _NUMBER,
    "abi": FieldType("Array"),
    "startBlock": _NUMBER,
    "listening": _BOOLEAN,
    "viewRoles": FieldType("Array"),
    "callRoles": FieldType("Array"),
    "kind": _STRING,
}
_TRANSACTION = TRANSACTION.fields
_EVENT = EVENT.fields
_COMPUTED = {
    "Blockchain": {"finality": registry.Computed(_OBJECT, finality_sql.OF_NETWORK)},
    "ContractEvent": {
        "finality": registry.Computed(
            _STRING, finality_sql.OF_EVENT, finality_sql.is_one_of, finality_sql.LEVELS
        )
    },
}
_IDENTITY = {"walletAddress": _STRING, "user": FieldType("Pointer", USER)}

_EVENTS_WITHOUT_TRIGGERS = (
    "ContractEvent has no triggers around saving and deleting, since events are indexed without"
    " calling them. Use the event channel (/ws), a live query, or the table chain_outbox instead:"
    " see docs/chain-events.md, What subscribers receive."
)

_TRANSACTIONS_WITHOUT_TRIGGERS = (
    "Transaction has no triggers after saving, since its status changes without calling them. Use"
    ' a live query such as {"status": "confirmed"} instead, and before_save for what clients'
    " create: see docs/functions.md, Classes of the chain."
)

# Columns of the other models are called as their fields are.
_DECLARED = {"Transaction": TRANSACTION, "ContractEvent": EVENT}


def _columns(name: str, model: type[Model], fields: Iterable[str]) -> dict[str, str]:
    """The column of each field of a class that has another name."""
    if name in _DECLARED:
        return _DECLARED[name].columns_of_fields
    columns = {camel_case(field.column): field.column for field in model._meta.concrete_fields}
    return {field: columns[field] for field in fields if columns[field] != field}


def offer_classes() -> None:
    """Offer the chain's models as classes, with their rules."""
    for name, model, fields, rules in (
        ("Blockchain", Blockchain, _BLOCKCHAIN | _BLOCKCHAIN_SETTINGS, BlockchainRules()),
        ("SmartContract", SmartContract, _CONTRACT, ContractRules()),
        ("Transaction", Transaction, _TRANSACTION, TransactionRules()),
        ("ContractEvent", ContractEvent, _EVENT, EventRules()),
        ("Identity", Identity, _IDENTITY, IdentityRules()),
    ):
        class_name = check_class_name(name)
        registry.model_class(
            class_name,
            model,
            fields,
            columns=_columns(name, model, fields),
            permissions=_READ_BY_ALL,
            shown_by=SHOWN_EVENTS if model is ContractEvent else None,
            shown_if="canonical" if model is ContractEvent else None,
            hidden=_BLOCKCHAIN_SETTINGS if model is Blockchain else (),
            computed=_COMPUTED.get(name, {}),
        )
        set_rules(class_name, rules)
        if model is ContractEvent:
            refuse_on_writes(class_name, _EVENTS_WITHOUT_TRIGGERS)
        if model is Transaction:
            refuse_on_writes(class_name, _TRANSACTIONS_WITHOUT_TRIGGERS, ("saved", "after_save"))
