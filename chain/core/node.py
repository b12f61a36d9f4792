"""Requests to a node, and the shape of its responses.

``Node`` is the face of ``chain.rpc`` to the rest of the chain app. A ``Node`` talks to a
single provider until done, since two providers may be on two forks. Numbers stay the node's
hexadecimal text until they are needed: most never are.

Every method may raise the ``failures`` of this package and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Annotated, Any, Final, Literal, Protocol

import msgspec

from chain.core.failures import TryAgain

Tag = Literal["latest", "safe", "finalized", "earliest", "pending"]

# Any other response of a node is no block, no receipt and no transaction. Logs are too many for
# that; who reads them looks.
Number = Annotated[str, msgspec.Meta(pattern=r"^0x[0-9a-fA-F]{1,64}\Z")]
Height = Annotated[str, msgspec.Meta(pattern=r"^0x0{0,64}[0-9a-fA-F]{1,13}\Z")]
"""A number of a block, which JavaScript has to hold as well."""
Moment = Annotated[str, msgspec.Meta(pattern=r"^0x0{0,64}[0-7]?[0-9a-fA-F]{1,15}\Z")]
"""A time as tables hold it: there are networks that don't count seconds."""
Hash = Annotated[str, msgspec.Meta(pattern=r"^0x[0-9a-f]{64}\Z")]
"""In lower case, as all hexadecimal texts of a node are when they come here (``chain.rpc``)."""
Seal = Annotated[str, msgspec.Meta(max_length=4096)] | int | None
"""A field of a header that only its hash is made of: nothing nested, and nothing long."""
Address = Annotated[str, msgspec.Meta(pattern=r"^0x[0-9a-fA-F]{40}\Z")]


def _on_the_wire(name: str) -> str:
    """The node's name of an attribute: ``from`` is a word of Python's."""
    first, *others_words = name.split("_")
    return "from" if name == "from_address" else first + "".join(map(str.capitalize, others_words))


class Header(msgspec.Struct, frozen=True, gc=False, rename=_on_the_wire):
    """A block without its transactions' contents. ``transactions`` are their hashes; None where
    they are too many to hold with those of other blocks (see ``Node.transactions_in``).

    The fields from ``sha3_uncles`` on serve ``chain.core.blocks.hashes`` alone, which checks them:
    some networks have none of them, or something else under their names.
    """

    number: Height
    hash: Hash
    parent_hash: Hash
    timestamp: Moment = "0x0"
    logs_bloom: str | None = "0x"
    transactions: list[Hash] | None = []
    base_fee_per_gas: Number | None = None
    receipts_root: Seal = None
    sha3_uncles: Seal = None
    miner: Seal = None
    state_root: Seal = None
    transactions_root: Seal = None
    difficulty: Seal = None
    gas_limit: Seal = None
    gas_used: Seal = None
    extra_data: Seal = None
    mix_hash: Seal = None
    nonce: Seal = None
    withdrawals_root: Seal = None
    blob_gas_used: Seal = None
    excess_blob_gas: Seal = None
    parent_beacon_block_root: Seal = None
    requests_hash: Seal = None
    block_access_list_hash: Seal = None
    slot_number: Seal = None

    @property
    def height(self) -> int:
        return int(self.number, 16)

    @property
    def time(self) -> int:
        """Seconds since the epoch."""
        return int(self.timestamp, 16)


_headers: Final[msgspec.json.Decoder[Header | None]] = msgspec.json.Decoder(Header | None)


def header_in(result: msgspec.Raw) -> Header | None:
    """The block of a result that isn't decoded yet; None for null. Raises ``TryAgain``."""
    try:
        return _headers.decode(result)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise TryAgain("a result that isn't a block") from None


class Log(msgspec.Struct, frozen=True, gc=False, rename=_on_the_wire):
    """A log that is in a block."""

    address: str
    topics: list[str]
    data: str
    block_number: str
    block_hash: str
    transaction_hash: str
    transaction_index: str
    log_index: str
    removed: bool | None = False
    block_timestamp: str | int | float | None = None  # what isn't a ``Moment`` is ignored

    @property
    def height(self) -> int:
        return int(self.block_number, 16)

    @property
    def index(self) -> int:
        return int(self.log_index, 16)


class Receipt(msgspec.Struct, frozen=True, gc=False, rename=_on_the_wire):
    """What became of a mined transaction. ``status`` is 0x1 or 0x0."""

    transaction_hash: Hash
    block_hash: Hash
    block_number: Height
    transaction_index: Number
    gas_used: Number
    from_address: Address
    to: Address | None = None
    contract_address: Address | None = None
    status: Number | None = None
    effective_gas_price: Number | None = None

    @property
    def height(self) -> int:
        return int(self.block_number, 16)


class LoggedReceipt(msgspec.Struct, frozen=True, gc=False, rename=_on_the_wire):
    """A receipt with everything that the root of its block's receipts is made of.

    What isn't of these forms is a receipt that nothing can be proved with.
    """

    transaction_hash: Hash
    block_hash: Hash
    block_number: Height
    logs: list[Log]
    cumulative_gas_used: Number
    type: Number | None = None
    status: Number | None = None
    root: Hash | None = None
    deposit_nonce: Number | None = None
    deposit_receipt_version: Number | None = None


Receipts = Sequence[LoggedReceipt]


class SentTransaction(msgspec.Struct, frozen=True, gc=False, rename=_on_the_wire):
    """A transaction as the node knows it; without a block while it is pending."""

    hash: Hash
    nonce: Number
    from_address: Address
    to: Address | None = None
    block_hash: Hash | None = None
    block_number: Number | None = None
    gas_price: Number | None = None


class LogFilter(msgspec.Struct, frozen=True):
    """Which logs: of these contracts, with one of these first topics; empty stands for any."""

    addresses: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()

    def matching(self, logs: Iterable[Log]) -> list[Log]:
        """Those of the logs that are wanted."""
        return [*filter(self.predicate(), logs)]

    def predicate(self) -> Callable[[Log], bool]:
        """Whether a log is wanted."""
        addresses = {address.lower() for address in self.addresses}
        topics = {topic.lower() for topic in self.topics}
        return lambda log: (
            (not addresses or log.address.lower() in addresses)
            and (not topics or (bool(log.topics) and log.topics[0].lower() in topics))
        )


class Node(Protocol):
    """One provider of one network, for a while."""

    network_id: int
    provider: str
    """What the provider is called; never its address."""

    def call(self, method: str, *params: Any) -> Any:
        """The result of one call, as JSON; of blocks, transactions and receipts not decoded
        (``msgspec.Raw``), since they are large and little of them is wanted. Of other results only
        texts may be large. Raises ``Refused`` for an error that the node returns."""

    def batch(self, calls: Sequence[tuple[str, Sequence[Any]]]) -> list[Any]:
        """The results of calls in their order, as of ``call``, in as few requests as the provider
        allows; a ``Refused`` or ``RangeTooLarge`` stands in the place of a result that is an error.
        """

    def confirm_network(self) -> None:
        """Request the chain id again: for responses that contradict what is stored. Raises
        ``TryAgain`` unless it is the network's."""

    def header(self, block: int | str) -> Header | None:
        """A block by its height, its hash or a tag; None if the node doesn't have it."""

    def headers(self, blocks: Sequence[int | str]) -> list[Header | None]:
        """Blocks by height, hash or tag, in one request where the provider allows it. Those with
        very many transactions may come without their hashes."""

    def transactions_in(self, header: Header) -> list[str]:
        """The hashes of a block's transactions, requested if the header came without them.
        ``Moved`` for an orphaned block."""

    def logs(self, log_filter: LogFilter, first: int, last: int) -> list[Log]:
        """The logs of these blocks, both ends included, in their order. ``RangeTooLarge``."""

    def logs_of(self, log_filter: LogFilter, block_hashes: Sequence[str]) -> list[list[Log]]:
        """The logs of single blocks, by hash, in one request; ``Moved`` for an orphaned block."""

    def headers_and_logs(
        self, heights: Sequence[int], log_filter: LogFilter, first: int | None = None
    ) -> tuple[list[Header | None], list[Log]]:
        """Blocks, and the logs from the first to the last of them (from ``first``, if it's given),
        in one request where the provider allows it. ``RangeTooLarge``."""

    def logs_and_receipts(
        self, log_filter: LogFilter, block_hash: str, hashes: Sequence[str]
    ) -> tuple[list[Log], list[Receipt | None]]:
        """The logs of a block, by its hash, and the receipts of these transactions, in one
        request; ``Moved`` for an orphaned block."""

    def block_receipts(self, headers: Sequence[Header]) -> Iterator[Receipts | None]:
        """All receipts of each of these blocks, with their logs, in the order of the block; None
        if the node doesn't have them. ``Moved`` for an orphaned block. They may be large: let go
        of those of one block before the next."""

    def receipts(self, hashes: Sequence[str]) -> list[Receipt | None]:
        """The receipts of these transactions; None for one that isn't mined."""

    def transactions(self, hashes: Sequence[str]) -> list[SentTransaction | None]:
        """These transactions, mined or pending; None for one that the node doesn't know."""
