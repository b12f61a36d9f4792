"""The tables of the chain app: ``records`` are classes as well; ``indexing`` and ``signing``
aren't."""

from chain.models.indexing import (
    Backfill,
    Block,
    Coverage,
    Cursor,
    OutboxEntry,
    OutboxEpoch,
    ProvedBlock,
    Recheck,
    Reorganisation,
)
from chain.models.records import (
    SHOWN_EVENTS,
    VERIFY_ALL,
    VERIFY_SAMPLE,
    Blockchain,
    ContractEvent,
    Identity,
    Provider,
    SmartContract,
    Transaction,
)
from chain.models.signing import Sending, SigningAccount, Wallet

__all__ = [
    "SHOWN_EVENTS",
    "VERIFY_ALL",
    "VERIFY_SAMPLE",
    "Backfill",
    "Block",
    "Blockchain",
    "ContractEvent",
    "Coverage",
    "Cursor",
    "Identity",
    "OutboxEntry",
    "OutboxEpoch",
    "ProvedBlock",
    "Provider",
    "Recheck",
    "Reorganisation",
    "Sending",
    "SigningAccount",
    "SmartContract",
    "Transaction",
    "Wallet",
]
