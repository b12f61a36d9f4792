"""What a provider's error means.

Providers agree on little: the same number stands for a limit of the rate here and for too many
results there. So the text decides, and the number where the text says nothing. The wordings that
are understood are listed in ``tests/chain/rpc/test_refusals.py``, provider by provider. They only
save requests: what isn't understood is requested in smaller parts and from other providers
(``Refused``, ``LogsRefused``).
"""

from __future__ import annotations

import re
from typing import Any, Final

from chain.core.failures import (
    Halted,
    LogsRefused,
    MissingBlocks,
    NodeFailure,
    RangeTooLarge,
    Refused,
    SlowDown,
    TryAgain,
)

LOGS: Final = "eth_getLogs"
_OF_THE_SUBJECT: Final = frozenset({"eth_call", "eth_estimateGas", "eth_sendRawTransaction"})
"""Methods whose errors may be about the contract or the transaction that a client has named: they
never count as trouble of the provider."""
_SUBSTITUTED: Final = frozenset({"eth_getBlockReceipts", "eth_feeHistory"})
"""Methods that callers have a substitute for."""
_LONGEST_TEXT = 500
_QUOTA_PAUSE = 60.0  # seconds, when what is used up is of a day or a month


class Barred(TryAgain):
    """The provider doesn't let the service in: asking it once more is in vain."""


class BatchRefused(NodeFailure):
    """There are too many calls in one request, or too much comes of them. ``most`` is how many
    are allowed, if the text says so. ``refusal`` is an error that doesn't name the batch as its
    reason."""

    def __init__(self, most: int | None = None, refusal: NodeFailure | None = None) -> None:
        super().__init__("too many calls in one request")
        self.most = most
        self.refusal = refusal


def meaning_of(
    code: int, message: str, data: Any = None, *, method: str = "", calls: int = 1
) -> NodeFailure:
    """The failure that an error of JSON-RPC stands for, in answer to this method; ``calls`` is how
    many were in the request."""
    text = message[:_LONGEST_TEXT]
    full_text = f"{text} {_told(data)}"
    if method in _OF_THE_SUBJECT and (code == 3 or _HALT.search(text)):
        return Halted(code, text, _revert_data(data))
    if calls > 1 and _BATCH.search(full_text):
        return BatchRefused(_least(full_text))
    if calls > 1 and (code == -32003 or not method) and _TOO_LARGE.search(full_text):
        return BatchRefused()
    if method == LOGS:
        return _limit_of_logs(full_text) or _other_of_logs(code, text, full_text, data)
    return _other(code, text, full_text, data, method)


def is_unknown_block(failure: Refused) -> bool:
    """Whether the node doesn't have the block that was asked about by its hash."""
    return _UNKNOWN_BLOCK.search(failure.message) is not None


def _other(code: int, text: str, message: str, data: Any, method: str) -> NodeFailure:
    failure = _of_the_service(code, message)
    if failure is not None:
        return failure
    if code == -32005:
        return SlowDown("the provider limits the rate")
    is_trouble = code == -32603 or _BUSY.search(message)
    if is_trouble and method not in _OF_THE_SUBJECT | _SUBSTITUTED:
        return TryAgain(f"the provider is in trouble ({code})")
    return Refused(code, text, data)


def _other_of_logs(code: int, text: str, message: str, data: Any) -> NodeFailure:
    """Only a code that says so means a rate: texts about plans, requests and keys are used for
    ranges as well."""
    failure = _of_the_service(code, message)
    if failure is None and code == -32005:
        return RangeTooLarge("too many logs", is_structural=False)
    if failure is not None and code == 429:
        return failure
    return LogsRefused(code, text, data, otherwise=failure)


def _of_the_service(code: int, message: str) -> SlowDown | Barred | None:
    """What the provider has against all requests of the service, if the text is about that."""
    if code == 429 or _RATE.search(message):
        return SlowDown("the provider limits the rate", _pause(message))
    if code in (401, 403) or _BARRED.search(message):
        return Barred("the provider doesn't let the service in")
    return None


def _limit_of_logs(message: str) -> RangeTooLarge | MissingBlocks | None:
    results = _RESULTS.search(message)
    offered = _offered(message)
    if results and offered:
        return RangeTooLarge("too many logs", offered, is_structural=False)
    if _NOT_THERE.search(message):
        return MissingBlocks("the provider doesn't have all of these blocks")
    is_range = _RANGE.search(message)
    blocks = _blocks(message) if is_range else None
    if blocks:
        return RangeTooLarge("too many blocks", blocks, is_structural=True)
    if offered:
        return RangeTooLarge("too many logs", offered, is_structural=False)
    if results:
        return RangeTooLarge("too many logs", is_structural=False)
    if is_range:
        return RangeTooLarge("too many blocks", is_structural=True)
    return None


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE)


# A number of blocks as texts have it: 10000, 10,000, 10k, 0 - 50.
_N = (
    r"(?:0 ?- ?)?(?P<n>\d[\d,_]{0,12}(?:\.\d{1,3})? ?k?)\b(?! ?(?:results|logs|bytes|events|mb|kb))"
)
_NUMBERS: Final = tuple(
    re.compile(pattern + _N, re.IGNORECASE)
    for pattern in (
        r"max(?:imum)?(?: allowed)?(?: block)? ?range(?: allowed)?\s*(?:=|:|is|of)?\s*",
        r"(?:limited to|range limit|limit(?:ed)? (?:is|of|to|on)|up to|at most|max(?:imum)? is"
        r"|maximum is set to|maximum allowed is|of requested blocks is|not exceed"
        r"|exceeds the limit|limit:|max:?|\(maximum) (?:an? )?",
        r"(?:greater than|smaller than size|exceeds|over|distance:|larger than) ",
        r"\d+ > ",
    )
)
# A range that would do, which depends on what is in it.
_OFFER = re.compile(
    r"(?:range should work|with this block range|with the range|try)\D{0,12}?\[?\s*"
    r"(?P<first>0x[0-9a-f]{1,16}|\d{1,16})\s*(?:,|-|to)\s*(?P<last>0x[0-9a-f]{1,16}|\d{1,16})\b",
    re.IGNORECASE,
)
# Too much was found, or finding it took too long: fewer blocks may do.
_RESULTS = _any(
    r"more than [\d,]+k? (?:results|logs|events)|too many (?:results|logs|events)",
    r"max(?:imum)? (?:results|logs)|(?:results?|logs?)(?: size)? limit exceeded",
    r"logs? matched by (?:the )?query exceeds?|(?:result|query) set (?:is )?too large",
    r"response(?: body)?(?: is)? too (?:large|big)|response exceeds?",
    r"response size (?:exceed|should not|(?:is )?(?:too|larger))",
    r"query timeout|timeout exceeded|timed out|took too long|execution timeout",
)
_RANGE = _any(
    r"blocks? ?range|block (?:distance|span)|blocks distance|too many blocks|maxblockrange",
    r"range (?:is )?(?:too|exceed|limit|bigger)|ranges over|exceeds the range|max range",
    r"(?:limited to|exceeds?|\d) [\w ,.]{0,40}\brange\b|range [\d,]+ (?:exceeds|is bigger)",
    r"range limit|requested blocks|(?:at most|max is|up to|over) [\d,]+k? blocks",
    r"query must be smaller than size",
)
# What sounds alike and isn't a limit: blocks that this node doesn't have, or not yet.
_NOT_THERE = _any(
    r"invalid block range|beyond (?:current )?head|after last|not (?:yet )?(?:available|imported)",
    r"cannot be found|out ?of ?range|block height is \d+ but requested|begin block",
    r"not (?:yet )?been? indexed|pruned history",
)
_RATE = _any(
    r"rate[ -]?limit|too many requests|requests? (?:rate|limit)",
    r"requests? per (?:second|minute|day|month)",
    r"throughput|throttl|compute units|\bcredits?\b|(?:daily|monthly) request|quota|call rate",
    r"concurrent requests|limit of requests|capacity (?:limit|exceeded)|requests? count exceeded",
)
_QUOTA = _any(r"daily|monthly|per (?:day|month)|quota")
_RETRY = re.compile(r"(?:retry|try again) (?:after|in) (\d{1,4})(?:\.\d+)? ?(ms|m)?", re.IGNORECASE)
_BATCH = _any(
    r"\bbatch(?:es|ed|ing)?\b[^.]{0,60}(?:limit|size|large|more than|max|exceed|support|allow)",
    r"(?:limit|max\w*|too many|exceed\w*|support)[^.]{0,40}\bbatch",
)
_TOO_LARGE = _any(r"too (?:large|big)")
_BUSY = _any(
    r"internal (?:server )?error|server error|service unavailable|gateway|timed? ?out|deadline",
    r"unavailable|try again|temporar|upstream|connection|unhealthy|overloaded|syncing|too busy",
    r"no (?:backend|healthy|available)|not ready|header for hash not found",
)
_BARRED = _any(
    r"(?:api|access|project|auth\w*)[ -]?(?:key|token)\b|(?:invalid|missing|wrong|expired) key",
    r"must be authenticated|authenticat|unauthori[sz]ed|access denied|forbidden|project id",
    r"account (?:is )?(?:disabled|suspended|inactive)|payment required",
)
# By geth and erigon, nethermind, besu, reth, anvil and hardhat.
_HALT = _any(
    r"revert|vm execution error|vm exception|evm (?:error|halt)|evm: |out of ?gas",
    r"(?:invalid|undefined|illegal|bad) ?(?:opcode|instruction|jump)|opcode not defined",
    r"stack (?:under|over)flow|stack limit reached|write protection|state change during static",
    r"static call violation|return ?data out of bounds|call depth exceeded|gas uint64 overflow",
)
_UNKNOWN_BLOCK = _any(
    r"unknown block|(?:header|block)(?: \S+)? (?:was )?not found|cannot find (?:the )?block",
    r"hash .{0,80}not found|no such block|not canonical|resource not found|^not found",
    r"block .{0,80}cannot be found",
)


def _blocks(message: str) -> int | None:
    for pattern in _NUMBERS:
        numbers = [_number(match["n"]) for match in pattern.finditer(message)]
        if numbers and numbers[-1]:
            return numbers[-1]
    return None


def _number(text: str) -> int:
    digits = text.lower().replace(",", "").replace("_", "").replace(" ", "")
    return int(float(digits[:-1]) * 1000) if digits.endswith("k") else int(float(digits))


def _offered(message: str) -> int | None:
    offer = _OFFER.search(message)
    if offer is None:
        return None
    first, last = (
        int(text, 16 if text.lower().startswith("0x") else 10)
        for text in (offer["first"], offer["last"])
    )
    blocks = last - first + 1
    return blocks if blocks > 0 else None


def _pause(message: str) -> float | None:
    retry = _RETRY.search(message)
    if retry:
        return float(retry[1]) * {"ms": 0.001, "m": 60.0}.get((retry[2] or "").lower(), 1.0)
    return _QUOTA_PAUSE if _QUOTA.search(message) else None


def _least(message: str) -> int | None:
    numbers = [int(number) for number in re.findall(r"(?<![\w.-])\d{1,5}(?![\w.])", message)]
    return min((number for number in numbers if number > 0), default=None)


def _told(data: Any) -> str:
    """What the data of an error says in words: some providers put the reason there."""
    if isinstance(data, dict):
        data = " ".join(value for value in data.values() if isinstance(value, str))
    if isinstance(data, str) and not data.startswith(("0x", "Reverted 0x")):
        return data[:_LONGEST_TEXT]
    return ""


def _revert_data(data: Any) -> Any:
    """The bytes of a revert as 0x…, wherever the node puts them."""
    if isinstance(data, dict):
        data = data.get("data", data.get("result", data))
    if isinstance(data, str):
        match = re.search(r"0x[0-9a-fA-F]*\Z", data)
        return match[0] if match else data
    return data
