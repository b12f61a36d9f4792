"""What a proxy (``tests.evm.proxy``) can be made to do: the ways in which nodes and providers fail.

Functions here make hooks; how often one is used is said to ``Proxy.on``, ``on_request`` and
``on_reply``.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any, Final

from tests.evm.proxy import Call, Dropped, Hook, HttpAnswer, Proxy, ReplyHook, RequestHook, RpcError

Replies = list[dict[str, Any]]

# -- Of one call: Proxy.on -------------------------------------------------------------------------


def gives(result: Any) -> Hook:
    """This result in place of the node's."""
    return lambda call: result


def altered(change: Callable[[Any], Any]) -> Hook:
    """The node's result, changed."""
    return lambda call: change(call.forward())


def fails(code: int, message: str, data: Any = None) -> Hook:
    """An error of JSON-RPC."""

    def hook(call: Call) -> Any:
        raise RpcError(code, message, data)

    return hook


def before(action: Callable[[], Any]) -> Hook:
    """Something happens just before the node gets the request."""

    def hook(call: Call) -> Any:
        action()
        return call.forward()

    return hook


def after(action: Callable[[], Any]) -> Hook:
    """Something happens when the node has answered, before the answer comes."""

    def hook(call: Call) -> Any:
        result = call.forward()
        action()
        return result

    return hook


def late(seconds: float) -> Hook:
    """The answer comes this late."""
    return after(lambda: threading.Event().wait(seconds))


def only_if(expected: Callable[[Call], bool], hook: Hook) -> Hook:
    """``hook`` for calls that are ``wanted``; the others reach the node."""
    return lambda call: hook(call) if expected(call) else call.forward()


# -- Of one request: Proxy.on_request --------------------------------------------------------------


def too_many_requests(retry_after: int | None = None) -> RequestHook:
    """HTTP 429, as providers send it with and without a JSON body."""
    body = b'{"jsonrpc":"2.0","id":null,"error":{"code":429,"message":"Too Many Requests"}}'
    headers = {} if retry_after is None else {"Retry_After": str(retry_after)}
    return _whole(HttpAnswer(429, body, Content_Type="application/json", **headers))


def server_error(status: int = 503) -> RequestHook:
    return _whole(HttpAnswer(status, b"<html><h1>Service Unavailable</h1></html>"))


def page() -> RequestHook:
    """A page for people, with status 200."""
    return _whole(HttpAnswer(200, b"<!doctype html><title>Login</title>", Content_Type="text/html"))


def body(content: bytes) -> RequestHook:
    """Status 200 with any body."""
    return _whole(HttpAnswer(200, content, Content_Type="application/json"))


def dropped() -> RequestHook:
    """The connection ends without an answer."""
    return _whole(Dropped())


def broken_off() -> RequestHook:
    """The connection ends in the middle of the answer."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n"
    return _whole(Dropped(head + b'{"jsonrpc":"2.0","id":0,"resu'))


def hangs(until: threading.Event, seconds: float = 60) -> RequestHook:
    """No answer before ``until`` is set."""

    def hook(calls: Replies) -> None:
        until.wait(seconds)

    return hook


def _whole(answer: Exception) -> RequestHook:
    def hook(calls: Replies) -> None:
        raise answer

    return hook


# -- Of the answers of one request: Proxy.on_reply -------------------------------------------------


def backwards() -> ReplyHook:
    """A batch's answers in the opposite order, which JSON-RPC allows."""
    return lambda replies: replies[::-1]


def without(place: int = 0) -> ReplyHook:
    """A batch whose answers lack one."""
    return lambda replies: replies[:place] + replies[place + 1 :]


def empty() -> ReplyHook:
    """An empty list instead of a batch's answers."""
    return body_of([])


def one_error(code: int = -32600, message: str = "batch too large") -> ReplyHook:
    """One error instead of a batch's answers."""
    error = {"code": code, "message": message}
    return body_of({"jsonrpc": "2.0", "id": None, "error": error})


def one_failed(place: int, code: int, message: str) -> ReplyHook:
    """A batch in which one call has failed."""

    def hook(replies: Replies) -> Replies:
        failed = {"jsonrpc": "2.0", "id": replies[place]["id"]}
        failed["error"] = {"code": code, "message": message}
        return [*replies[:place], failed, *replies[place + 1 :]]

    return hook


def body_of(value: Any) -> ReplyHook:
    """This instead of the answers."""
    return lambda replies: json.dumps(value).encode()


def cut_short(share: float = 0.5) -> ReplyHook:
    """JSON that ends in the middle."""

    def hook(replies: Replies) -> bytes:
        encoded = json.dumps(replies).encode()
        return encoded[: int(len(encoded) * share)]

    return hook


# -- Of a node as a whole --------------------------------------------------------------------------


def stay_at(proxy: Proxy, height: int) -> None:
    """The provider knows nothing above this height: a node that is behind."""

    def block(call: Call) -> Any:
        which, *more = call.params
        if which in ("latest", "pending"):
            return call.forward(hex(height), *more)
        if which.startswith("0x") and int(which, 16) > height:
            return None
        return call.forward()

    def logs(call: Call) -> Any:
        query = dict(call.params[0])
        if "blockHash" in query:
            answer = call.forward()
            if any(int(log["blockNumber"], 16) > height for log in answer):
                raise RpcError(-32000, "unknown block")
            return answer
        for name in ("fromBlock", "toBlock"):
            if not str(query.get(name, "latest")).startswith("0x"):
                query[name] = hex(height)
        if int(query["fromBlock"], 16) > height:
            return []
        query["toBlock"] = hex(min(int(query["toBlock"], 16), height))
        return call.forward(query)

    def mined(call: Call) -> Any:
        results = call.forward()
        number = results and results.get("blockNumber")
        return None if number and int(number, 16) > height else results

    proxy.on("eth_blockNumber", gives(hex(height)))
    proxy.on("eth_getBlockByNumber", block)
    proxy.on("eth_getLogs", logs)
    proxy.on("eth_getTransactionReceipt", mined)
    proxy.on("eth_getTransactionByHash", mined)


PRUNED: Final = ("with an error", "with another error", "with null", "with no logs")
"""How nodes answer for blocks that they have pruned."""


def prune(proxy: Proxy, height: int, style: str) -> None:
    """The provider has no blocks below this height any more, or only their headers ("with no
    logs"). It has no old states either."""
    errors = {
        "with an error": RpcError(4444, "pruned history unavailable"),
        "with another error": RpcError(-32701, "order a dedicated full node for this block"),
    }

    def gone() -> Any:
        if style in errors:
            raise errors[style]

    def block(call: Call) -> Any:
        results = call.forward()
        is_gone = results and int(results["number"], 16) < height and style != "with no logs"
        return gone() if is_gone else results

    def receipts(call: Call) -> Any:
        results = call.forward()
        of_block = results[0] if isinstance(results, list) and results else results
        is_gone = of_block and int(of_block["blockNumber"], 16) < height
        return gone() if is_gone else results

    def logs(call: Call) -> Any:
        query = call.params[0]
        if "fromBlock" in query and int(query["fromBlock"], 16) < height:
            gone()
        return [log for log in call.forward() if int(log["blockNumber"], 16) >= height]

    def state(call: Call) -> Any:
        if call.params[-1].startswith("0x") and int(call.params[-1], 16) < height:
            raise RpcError(-32000, "missing trie node")
        return call.forward()

    proxy.on("eth_getBlockByNumber", block)
    proxy.on("eth_getBlockByHash", block)
    proxy.on("eth_getBlockReceipts", receipts)
    proxy.on("eth_getTransactionReceipt", receipts)
    proxy.on("eth_getLogs", logs)
    proxy.on("eth_getCode", state)


def without_logs() -> Hook:
    """For ``eth_getLogs``: nothing found, although the headers say otherwise."""
    return gives([])


def lying_about_blocks() -> Hook:
    """For ``eth_getLogs``: logs of a block that is not in the chain."""
    return altered(lambda logs: [{**log, "blockHash": "0x" + "ab" * 32} for log in logs])


def taken_back() -> Hook:
    """For ``eth_getLogs``: each log as one that a reorganisation has removed."""
    return altered(lambda logs: [{**log, "removed": True} for log in logs])


def doubled() -> Hook:
    """For ``eth_getLogs``: each log twice."""
    return altered(lambda logs: [log for log in logs for _ in range(2)])


def disordered() -> Hook:
    """For ``eth_getLogs``: the last log first."""
    return altered(lambda logs: logs[::-1])


def other_chain(chain_id: int) -> Hook:
    """For ``eth_chainId``."""
    return gives(hex(chain_id))


# -- Limits of eth_getLogs -------------------------------------------------------------------------

RANGE_LIMITS: dict[str, Callable[[int, int, int], RpcError]] = {
    # (first, last, limit): as providers word it when a range has too many blocks.
    "alchemy": lambda first, last, limit: RpcError(
        -32600,
        f"Under the Free tier plan, you can make eth_getLogs requests with up to a {limit} block "
        f"range. Based on your parameters, this block range should work: "
        f"[{hex(first)}, {hex(first + limit - 1)}]. Upgrade to PAYG for expanded block range.",
    ),
    "quicknode": lambda first, last, limit: RpcError(
        -32614, f"eth_getLogs is limited to a {limit:,} range"
    ),
    "infura": lambda first, last, limit: RpcError(
        -32602, f"block range exceeds the limit of {limit:,} blocks"
    ),
    "ankr": lambda first, last, limit: RpcError(-32600, "block range is too wide"),
    "chainstack": lambda first, last, limit: RpcError(
        -32000,
        "Block range limit exceeded. See more details at "
        "https://docs.chainstack.com/docs/limits#evm-range-limits",
    ),
    "blockpi": lambda first, last, limit: RpcError(
        -32602, f"eth_getLogs and eth_newFilter are limited to {limit} blocks range"
    ),
    "drpc": lambda first, last, limit: RpcError(
        35, f"ranges over {limit} blocks are not supported on freetier"
    ),
    "bor": lambda first, last, limit: RpcError(-32000, f"exceed maximum block range: {limit}"),
    "thirdweb": lambda first, last, limit: RpcError(
        -32602, f"Maximum allowed number of requested blocks is {limit}"
    ),
    "envio": lambda first, last, limit: RpcError(
        -32000, f"block range = {last - first + 1}, max {limit}"
    ),
}

RESULT_LIMITS: dict[str, Callable[[int, int, int], RpcError]] = {
    # The same for ranges with too many logs; ``limit`` is a number of logs.
    "infura": lambda first, last, limit: RpcError(
        -32005,
        f"query returned more than {limit} results. Try with this block range "
        f"[{hex(first)}, {hex((first + last) // 2)}].",
        {"from": hex(first), "to": hex((first + last) // 2), "limit": limit},
    ),
    "alchemy": lambda first, last, limit: RpcError(
        -32602,
        "Log response size exceeded. You can make eth_getLogs requests with up to a 2K block range "
        f"and no limit on the response size, or you can request any block range with a cap of "
        f"{limit} logs in the response. Based on your parameters and the response size limit, this "
        f"block range should work: [{hex(first)}, {hex((first + last) // 2)}]",
    ),
    "erpc": lambda first, last, limit: RpcError(
        -32602,
        f"query exceeds max results {limit}, retry with the range {first}-{(first + last) // 2}",
    ),
    "size": lambda first, last, limit: RpcError(-32008, "Response size is larger than 150MB limit"),
    "timeout": lambda first, last, limit: RpcError(-32002, "request timed out"),
}


def range_limit(style: str, limit: int) -> Hook:
    """For ``eth_getLogs``: ranges of more blocks are refused, as a provider would word it."""

    def hook(call: Call) -> Any:
        if (span := _span(call)) and span[1] - span[0] + 1 > limit:
            raise RANGE_LIMITS[style](*span, limit)
        return call.forward()

    return hook


def result_limit(style: str, limit: int) -> Hook:
    """For ``eth_getLogs``: ranges with more logs are refused, as a provider would word it. A
    single block is never refused."""

    def hook(call: Call) -> Any:
        answer = call.forward()
        if (span := _span(call)) and span[0] < span[1] and len(answer) > limit:
            raise RESULT_LIMITS[style](*span, limit)
        return answer

    return hook


def _span(call: Call) -> tuple[int, int] | None:
    query = call.params[0]
    if "blockHash" in query:
        return None
    return int(query["fromBlock"], 16), int(query["toBlock"], 16)
