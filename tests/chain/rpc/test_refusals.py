"""What the errors of common providers and nodes are taken for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chain.core.failures import (
    REFUSALS_OF_LOGS,
    Halted,
    LogsRefused,
    Moved,
    NodeFailure,
    RangeTooLarge,
    Refused,
    SlowDown,
    TryAgain,
)
from chain.rpc.client.refusals import LOGS, Barred, BatchRefused, is_unknown_block, meaning_of

# Provider, code, text, how many blocks it says are allowed.
BLOCK_LIMITS = [
    ("Alchemy", -32600, "You can make eth_getLogs requests with up to a 500 block range. Based on "
     "your parameters, this block range should work: [0x123c9b2, 0x123cba5]", 500),
    ("Alchemy, free", -32600, "Under the Free tier plan, you can make eth_getLogs requests with up "
     "to a 10 block range. Based on your parameters, this block range should work: [0x1, 0xa]. "
     "Upgrade to PAYG for expanded block range.", 10),
    ("Infura", -32602, "range 1000000 exceeds limit of 10000", 10_000),
    ("QuickNode", -32614, "eth_getLogs is limited to a 10,000 range", 10_000),
    ("QuickNode, trial", -32602, "eth_getLogs is limited to a 5 block range", 5),
    ("Ankr", -32600, "block range is too wide", None),
    ("Ankr, TAC", -32602, "maximum [from, to] blocks distance: 10000", 10_000),
    ("BlastAPI", -32600, "Your request exceeds the range allowed for your plan (5000 > 3000).",
     3000),
    ("Chainstack", -32000, "Block range limit exceeded. See more details at "
     "https://docs.chainstack.com/docs/limits#evm-range-limits", None),
    ("dRPC", 35, "ranges over 10000 blocks are not supported on free plan", 10_000),
    ("publicnode", -32701, "exceed maximum block range: 50000", 50_000),
    ("Cloudflare", -32047, "Invalid eth_getLogs request. 'fromBlock'-'toBlock' range too large. "
     "Max range: 800", 800),
    ("thirdweb", -32005, "Log response size exceeded. Maximum allowed number of requested blocks "
     "is 1000", 1000),
    ("Coinbase", -32602, "please limit the query to at most 1000 blocks", 1000),
    ("Merkle", -32000, "eth_getLogs range is too large, max is 10k blocks", 10_000),
    ("1RPC", -32602, "eth_getLogs is limited to 0 - 50 blocks range", 50),
    ("BlockPI", -32602, "Block range too large; currently limited to 100 blocks", 100),
    ("Tenderly", -32602, "invalid params range 9009594 is bigger than range limit 2000", 2000),
    ("SimplyVC", -32000, "too wide blocks range, the limit is 100", 100),
    ("LlamaRPC", -32000, "block span 4096 blocks exceeds the limit 1000", 1000),
    ("reth", -32602, "query exceeds max block range 100000", 100_000),
    ("erigon", -32000, "query block range exceeds server limit", None),
    ("coreth", -32000, "requested too many blocks from 0 to 16777216, maximum is set to 2048",
     2048),
    ("geth of BNB", -32000, "exceed maximum block range: 5000", 5000),
    ("geth of Morph", -32000, "block range is larger than max block range, block range = 5120, "
     "max block range = 5000", 5000),
    ("geth of Scroll", -32000, "block range is bigger than maxBlockRange", None),
    ("Moonbeam", -32600, "block range is too wide (maximum 1024)", 1024),
    ("Harmony", -32000, "query must be smaller than size 1024", 1024),
    ("Sei", -32000, "block range too large (2000), maximum allowed is 1000 blocks", 1000),
    ("Swell", -32000, "block range greater than 10000 max", 10_000),
    ("Somnia", -32000, "block range exceeds 1000", 1000),
    ("zkEVM", -32602, "logs are limited to a 10000 block range", 10_000),
    ("Arc", -32012, "requested range too large", None),
    ("Aurora", -32000, "you can request up to a 2,000 block range", 2000),
]  # fmt: skip

# Too many logs, or too slow: what blocks are offered, if any.
RESULT_LIMITS = [
    ("Infura", -32005, "query returned more than 10000 results. Try with this block range "
     "[0xCB3D, 0xCB40].", 4),
    ("Alchemy", -32602, "Log response size exceeded. You can make eth_getLogs requests with up to "
     "a 2K block range and no limit on the response size, or you can request any block range with "
     "a cap of 10K logs in the response. Based on your parameters and the response size limit, "
     "this block range should work: [0x10, 0x1f]", 16),
    ("reth", -32602, "query exceeds max results 20000, retry with the range 6000000-6000509", 510),
    ("reth, backwards", -32602, "query exceeds max results 20000, retry with the range 9-5", None),
    ("Alchemy, slow", -32000, "Query timeout exceeded. Consider reducing your block range.", None),
    ("Arbitrum", -32000, "logs matched by query exceeds limit of 10000", None),
    ("Optimism", -32020, "backend response too large", None),
    ("Soneium", -32000, "response is too big", None),
    ("1RPC", -32000, "response size should not greater than 10000000 bytes", None),
    ("Envio", -32000, "More than 50000 logs returned", None),
    ("nethermind", -32005, "Too many logs requested. Max logs per response is 20000.", None),
    ("Blockdaemon", -32002, "request timed out", None),
    ("geth", -32005, "limit exceeded", None),
    ("Etherscan", -32000, "query timeout occurred", None),
    ("Ankr", -32000, "result set too large", None),
]  # fmt: skip


@pytest.mark.parametrize(
    ("code", "text", "blocks"),
    [each[1:] for each in BLOCK_LIMITS],
    ids=[e[0] for e in BLOCK_LIMITS],
)
def test_a_limit_of_blocks_holds_for_ever(code: int, text: str, blocks: int | None) -> None:
    meaning = meaning_of(code, text, method=LOGS)
    assert isinstance(meaning, RangeTooLarge)
    assert (meaning.blocks, meaning.is_structural) == (blocks, True)


@pytest.mark.parametrize(
    ("code", "text", "blocks"),
    [each[1:] for each in RESULT_LIMITS],
    ids=[each[0] for each in RESULT_LIMITS],
)
def test_too_many_results_depend_on_the_blocks(code: int, text: str, blocks: int | None) -> None:
    meaning = meaning_of(code, text, method=LOGS)
    assert isinstance(meaning, RangeTooLarge)
    assert (meaning.blocks, meaning.is_structural) == (blocks, False)


def test_a_reason_in_the_data_is_read_too() -> None:
    data = {"error_id": "4ed94073", "payload": "range 9009594 is bigger than range limit 2000"}
    meaning = meaning_of(-32602, "invalid params", data, method=LOGS)
    assert isinstance(meaning, RangeTooLarge)
    assert meaning.is_structural


@pytest.mark.parametrize(
    ("code", "text", "pause"),
    [
        (429, "Your app has exceeded its compute units per second capacity.", None),
        (-32005, "daily request count exceeded, request rate limited", 60.0),
        (-32005, "limit exceeded", None),
        (-32029, "Too many requests, please retry after 3 seconds", 3.0),
        (-32007, "50/second request limit reached - reduce calls per second or upgrade", None),
        (-32000, "rate limit exceeded, retry in 250ms", 0.25),
        (-32097, "monthly quota exceeded", 60.0),
        (30, "Request throughput limit reached", None),
    ],
)
def test_a_limit_of_the_rate_asks_for_a_pause(code: int, text: str, pause: float | None) -> None:
    meaning = meaning_of(code, text, method="eth_call")
    assert isinstance(meaning, SlowDown)
    assert meaning.after == pause


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (-32603, "Internal error"),
        (-32000, "no backend is currently healthy to serve traffic"),
        (-32002, "request timed out"),
        (-32000, "context deadline exceeded"),
        (19, "Temporary internal error. Please retry"),
    ],
)
def test_trouble_of_the_provider_is_worth_another_try(code: int, text: str) -> None:
    meaning = meaning_of(code, text, method="eth_getTransactionReceipt")
    assert isinstance(meaning, TryAgain)
    assert not isinstance(meaning, SlowDown | Barred)


@pytest.mark.parametrize(
    "text",
    [
        "Must be authenticated!",
        "invalid api key",
        "Unauthorized: You must authenticate your request",
    ],
)
def test_a_refused_key_is_known(text: str) -> None:
    assert isinstance(meaning_of(-32000, text, method="eth_call"), Barred)


@pytest.mark.parametrize(
    ("text", "data", "most"),
    [
        ("batch too large", None, None),  # geth
        ("batch limit 100 exceeded (can increase by --rpc.batch.limit)", None, 100),  # erigon
        ("Batch size limit exceeded", None, None),  # nethermind
        ("Number of requests in batch exceeds --rpc-max-batch-size", None, None),  # besu
        ("The batch request was too large", "Exceeded max limit of 50", 50),  # reth
        ("Batch of more than 3 requests are not allowed on free plan", None, 3),  # dRPC
        ("batch requests are not supported", None, None),
    ],
)
def test_a_batch_that_is_too_large_is_known(text: str, data: str | None, most: int | None) -> None:
    meaning = meaning_of(-32600, text, data, method=LOGS, calls=200)
    assert isinstance(meaning, BatchRefused)
    assert meaning.most == most


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (-32602, "block range extends beyond current head block"),
        (-32014, "block not yet imported"),
        (-32602, "BlockOutOfRangeError: block height is 12 but requested was 20"),
        (-32000, "requested to block 20 after last accepted block 12"),
    ],
)
def test_blocks_that_the_node_lacks_are_no_limit(code: int, text: str) -> None:
    assert isinstance(meaning_of(code, text, method=LOGS), Moved)


@pytest.mark.parametrize(
    ("code", "text", "data", "expected"),
    [
        (3, "execution reverted: no", "0x08c379a0", "0x08c379a0"),  # geth
        (-32015, "VM execution error.", "Reverted 0x08c379a0", "0x08c379a0"),  # nethermind
        (-32000, "execution reverted", {"data": "0x1234"}, "0x1234"),
        (-32000, "execution reverted: batch limit exceeded", None, None),
    ],
)
def test_a_revert_keeps_its_data(code: int, text: str, data: object, expected: object) -> None:
    meaning = meaning_of(code, text, data, method="eth_call")
    assert isinstance(meaning, Refused)
    assert meaning.data == expected


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (-32000, "invalid opcode: INVALID"),  # geth
        (-32000, "stack underflow (0 <=> 1)"),
        (-32000, "out of gas: gas required exceeds allowance: 50000000"),
        (-32000, "invalid jump destination"),
        (-32603, "EVM error InvalidOperandOOG"),  # anvil
        (-32603, "EVM error InvalidFEOpcode"),
        (-32003, "EVM error: InvalidFEOpcode"),  # reth
        (-32003, "out of gas: gas required exceeds: 50000000"),
        (-32015, "VM execution error."),  # nethermind
        (-32000, "VM Exception while processing transaction: invalid opcode"),  # hardhat
        (-32603, "Internal error: EVM halted: OutOfGas"),
        (-32000, "INVALID_OPERATION: invalid instruction"),
    ],
)
def test_a_halt_of_the_evm_is_the_contract_s_answer(code: int, text: str) -> None:
    assert isinstance(meaning_of(code, text, method="eth_call"), Halted)
    # Of a call that runs no contract it is the provider's.
    assert not isinstance(meaning_of(code, text, method="eth_getBalance"), Halted)
    assert isinstance(meaning_of(code, text, method=LOGS), LogsRefused | RangeTooLarge)


@pytest.mark.parametrize("code", [-32603, -32000, -32701, 0, 12, 403])
@pytest.mark.parametrize(
    "text",
    [
        "History has been pruned for this block. To remove this limitation, order a full node",
        "Archive requests require a personal token",
        "getLogs request exceeded max allowed range",
        "specify less number of addresses",
        "Internal error",
        "invalid api key",
        "kolv",
        "",
    ],
)
def test_no_text_about_logs_forbids_a_smaller_request(code: int, text: str) -> None:
    meaning = meaning_of(code, text, method=LOGS)
    assert isinstance(meaning, REFUSALS_OF_LOGS)


@pytest.mark.parametrize(
    "text",
    ["unknown block", "header not found", "block 0xab12 was not found", "Resource not found."],
)
def test_an_orphaned_block_is_known_by_the_text(text: str) -> None:
    meaning = meaning_of(-32000, text, method=LOGS)
    assert isinstance(meaning, Refused)
    assert is_unknown_block(meaning)


def test_what_is_refused_for_good_comes_out_with_its_text() -> None:
    meaning = meaning_of(
        -32000, "nonce too low: next nonce 5, tx nonce 4", method="eth_sendRawTransaction"
    )
    assert isinstance(meaning, Refused)
    assert meaning.message.startswith("nonce too low")
    assert isinstance(meaning_of(-32601, "the method eth_foo does not exist"), Refused)
    assert isinstance(meaning_of(-32602, "invalid argument 0: hex string", method=LOGS), Refused)


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (-32000, "insufficient funds for gas * price + value: have 1 want 2"),
        (-32000, "already known"),
        (-32000, "replacement transaction underpriced"),
        (-32003, "max fee per gas less than block base fee"),
        (-32000, "intrinsic gas too low"),
        (-32000, "gas required exceeds allowance (21000)"),
        (-32000, "tx fee (1.20 ether) exceeds the configured cap (1.00 ether)"),
        (-32000, "exceeds block gas limit"),
        (-32000, "only replay-protected (EIP-155) transactions allowed over RPC"),
        (-32000, "max initcode size exceeded: code size 50000 limit 49152"),
        (-32603, "Nonce too low. Expected nonce to be 5 but got 4."),
        (-32603, "Internal error: insufficient funds"),
        (-32601, "the method eth_feeHistory does not exist/is not available"),
        (-32000, "invalid sender"),
        (-32000, "filter not found"),
    ],
)
def test_what_is_wrong_with_a_call_is_no_trouble_of_the_provider(code: int, text: str) -> None:
    meaning = meaning_of(code, text, method="eth_sendRawTransaction")
    assert isinstance(meaning, Refused)
    assert meaning.message == text


def test_long_texts_are_cut_short_and_cost_little() -> None:
    meaning = meaning_of(-32000, "exceeds the range " * 100_000, method=LOGS)
    assert len(str(meaning)) < 1000


WORDS = (
    *("block", "range", "limit", "exceeds", "max", "0x", "0xff", "007", "9" * 400, "1,,2", "10k"),
    *("try", "[", "]", "-", "retry with the range", "up to a", "batch", "results", "> ", "٣"),
    *("retry after", "reverted", "\x00", "\ud800", "Reverted 0x", "response too large"),
)


@given(
    st.integers(-40_000, 500),
    st.lists(st.sampled_from(WORDS) | st.text(max_size=5), max_size=30).map(" ".join),
    st.none() | st.text(max_size=20) | st.integers() | st.dictionaries(st.text(), st.text()),
    st.sampled_from((LOGS, "eth_call", "")),
    st.sampled_from((1, 100)),
)
def test_every_error_means_something(
    code: int, text: str, data: object, method: str, calls: int
) -> None:
    meaning = meaning_of(code, text, data, method=method, calls=calls)
    assert isinstance(meaning, NodeFailure)
    if isinstance(meaning, RangeTooLarge):
        assert meaning.blocks is None or meaning.blocks > 0
