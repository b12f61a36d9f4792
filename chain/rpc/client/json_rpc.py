"""JSON-RPC over HTTP to one address: calls, batches, and what their failures mean.

Responses of a batch are matched by their ids, since nodes may answer in any order. The bodies
are decoded straight into the requested types, which makes reading logs quick. Hexadecimal texts in
them are in lower case.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import chain as chained
from itertools import count
from math import inf
from time import monotonic, sleep
from typing import Any, Final

import msgspec

from backend.kernel.outgoing import Client, Response, TimedOut, TooLarge, Unreachable, retry_after
from chain.core.failures import (
    LogsRefused,
    NoAnswer,
    NodeFailure,
    RangeTooLarge,
    Refused,
    SlowDown,
    TryAgain,
)
from chain.core.ranges import WIDEST, Ranges
from chain.rpc.client.batches import Batches, Call, TooMuch, of_batch
from chain.rpc.client.budget import Budget
from chain.rpc.client.health import Health
from chain.rpc.client.refusals import LOGS, Barred, BatchRefused, meaning_of
from chain.rpc.client.response_sizes import largest
from chain.rpc.client.secret_address import Address
from chain.rpc.client.spelling import in_lower_case

_HEADERS: Final = {
    "Content-Type": "application/json",
    "User-Agent": "svc-backend",  # some providers turn away the names of libraries
}
_LARGEST_UNTYPED: Final = 32 * 1024  # bytes
_RECEIPT: Final = "eth_getTransactionReceipt"
_CONTRACTS_KEPT: Final = 3600.0  # seconds that a limit on contracts is remembered
_CONNECT: Final = 3.0  # seconds
_CONNECTIONS: Final = 16  # that stay open
_SHORT: Final = 1.0  # seconds; who isn't given longer is not to blame for no answer
_encode = msgspec.json.Encoder().encode
_ids: Final = count(random.randrange(1, 2**30))
"""Ids of requests. A late or second reply to another request has another id."""
_NO_JSON: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)  # or too deep a one


class _Error(msgspec.Struct, frozen=True):
    code: int | str | None = 0
    message: str | None = ""
    data: Any = None


class _Reply(msgspec.Struct, frozen=True):
    """An answer whose result is decoded later, when its type is known."""

    id: int | str | None = None
    result: msgspec.Raw = msgspec.Raw(b"")
    error: _Error | str | None = None


class _OutOfTime(NoAnswer):
    """There was too little time to judge the provider by it."""


_reply = msgspec.json.Decoder(_Reply)
_replies = msgspec.json.Decoder(list[_Reply])


class Endpoint:
    """One address of a node. Safe to be used by several threads; its text is never shown.

    ``health`` records the result of each request, ``budget`` is claimed before each.
    ``batch_size`` is how many calls go into one request: fewer when the node finds a batch too
    large.
    """

    def __init__(
        self,
        url: str,
        *,
        timeout: float,
        batch_size: int | None = None,
        health: Health | None = None,
        budget: Budget | None = None,
    ) -> None:
        self.timeout = timeout
        self._batches = Batches(batch_size)
        self._contracts = Ranges(WIDEST)
        self._contracts_until = 0.0
        self.health = health or Health()
        self._budget = budget
        self._waited = threading.local()
        self._address = Address(url)
        self._headers = {**_HEADERS, **self._address.headers}
        self._client = Client(
            idle=inf, per_origin=_CONNECTIONS, connect_seconds=_CONNECT, accepts_gzip=True
        )

    def __repr__(self) -> str:
        return "<Endpoint>"

    @property
    def reconnections(self) -> int:
        """How often a connection was lost: since then another node may answer at the address."""
        return self._client.lost

    @property
    def waited(self) -> float:
        """Seconds that this thread has waited for the node in all, without pauses for a budget."""
        return getattr(self._waited, "seconds", 0.0)

    @property
    def batch_size(self) -> int:
        return self._batches.size

    @property
    def contracts(self) -> Ranges:
        """How many contracts the node accepts in a filter, as far as it has refused more."""
        if monotonic() > self._contracts_until:
            self._contracts, self._contracts_until = Ranges(WIDEST), monotonic() + _CONTRACTS_KEPT
        return self._contracts

    def settled(self, refusal: NodeFailure) -> NodeFailure:
        """Return, and note, what the refusal of logs means that can't be divided."""
        if not isinstance(refusal, LogsRefused) or refusal.otherwise is None:
            return refusal
        self._note(refusal.otherwise)
        return refusal.otherwise

    def close(self) -> None:
        self._client.close()

    def call(self, call: Call, type_: Any = Any, *, seconds: float | None = None) -> Any:
        """The result of one call, as this type. Raises the ``NodeFailure`` that came instead."""
        with self._noted(1, seconds) as left:
            request = _request(call)
            reply = _decode(_reply, self._post(_encode(request), left, [call]))
            if not _is_reply_to(reply, request):
                raise self._foreign([reply], 1)
            return self._result(reply, type_, call[0], 1)

    def batch(
        self, calls: Sequence[Call], types: Sequence[Any], *, seconds: float | None = None
    ) -> list[Any]:
        """The results of calls, in their order, each of its type; a ``NodeFailure`` stands in the
        place of a result that is an error. Raises ``TryAgain`` if one is missing."""
        return [*chained.from_iterable(self.parts(calls, types, seconds=seconds))]

    def parts(
        self, calls: Sequence[Call], types: Sequence[Any], *, seconds: float | None = None
    ) -> Iterator[list[Any]]:
        """As ``batch``, request by request: for results that are too large to hold together."""
        return self._batches.parts(calls, types, self._batch, seconds)

    def _batch(
        self, calls: Sequence[Call], types: Sequence[Any], seconds: float | None
    ) -> list[Any]:
        if len(calls) == 1:
            try:
                return [self.call(calls[0], types[0], seconds=seconds)]
            except TryAgain:
                raise
            except NodeFailure as failure:
                return [failure]
        requests = [_request(call) for call in calls]
        with self._noted(len(calls), seconds) as left:
            body = self._post(_encode(requests), left, calls)
            if not body.lstrip().startswith(b"["):
                # One answer for all of them: the batch itself is refused.
                reply = _decode(_reply, body)
                problem = self._failure(reply, "", len(calls))
                if problem is None:
                    raise self._foreign([reply], len(calls))
                raise of_batch(problem)
            return self._parts(_decode(_replies, body), requests, calls, types)

    def _parts(
        self,
        replies: Sequence[_Reply],
        requests: Sequence[dict[str, Any]],
        calls: Sequence[Call],
        types: Sequence[Any],
    ) -> list[Any]:
        own = [reply for reply in replies if not _has_no_id(reply)]
        by_id = {str(reply.id): reply for reply in own}
        ids = [str(request["id"]) for request in requests]
        if by_id.keys() - ids or len(by_id) < len(own):
            raise self._foreign(replies, len(calls))
        parts: list[Any] = []
        for id_, call, type_ in zip(ids, calls, types, strict=True):
            part = by_id.get(id_)
            if part is None:
                problem = self._of_all(replies, len(calls))
                raise problem or TryAgain("an answer is missing from a batch")
            try:
                parts.append(self._result(part, type_, call[0], len(calls)))
            except (TryAgain, BatchRefused):
                raise
            except NodeFailure as failure:
                parts.append(failure)
        return parts

    def _foreign(self, replies: Sequence[_Reply], calls: int) -> NodeFailure:
        """Return the failure of replies that belong to other requests, or to none.

        Connections that are open may hold more of them, so no request uses them any more.
        """
        self._client.close()
        return self._of_all(replies, calls) or TryAgain("an answer to another request")

    def _of_all(self, replies: Sequence[_Reply], calls: int) -> NodeFailure | None:
        """Return what is wrong with all of a request: some providers say it only once."""
        for reply in replies:
            problem = self._failure(reply, "", calls)
            if isinstance(problem, BatchRefused | SlowDown | Barred):
                return problem
        return None

    @contextmanager
    def _noted(self, calls: int, seconds: float | None) -> Iterator[float]:
        """For one request: its turn, the seconds that are left then, and its outcome."""
        patience = self.timeout if seconds is None else min(self.timeout, seconds)
        if patience <= 0:
            raise _OutOfTime("no time left")
        if self._budget is not None and (wait := self._budget.take(calls, patience)):
            sleep(wait)
            patience = max(0.05, patience - (0.0 if seconds is None else wait))
        began = monotonic()
        try:
            yield patience
        except _OutOfTime:
            raise
        except TryAgain as failure:
            self._note(failure)
            raise
        except NodeFailure:
            self.health.answered(monotonic() - began)
            raise
        else:
            self.health.answered(monotonic() - began)
        finally:
            self._waited.seconds = self.waited + monotonic() - began

    def _note(self, failure: TryAgain) -> None:
        if isinstance(failure, SlowDown):
            self.health.slowed(str(failure), failure.after)
        else:
            self.health.failed(str(failure), for_good=isinstance(failure, Barred))

    def _post(self, body: bytes, patience: float, calls: Sequence[Call]) -> bytes:
        method = calls[0][0] if len(calls) == 1 else ""
        try:
            response = self._client.request(
                "POST",
                self._address.url,
                body=body,
                headers=self._headers,
                seconds=patience,
                most=largest(calls),
            )
        except TooLarge:
            raise _too_large(method) from None
        except Unreachable as error:
            if isinstance(error, TimedOut) and patience < _SHORT:
                raise _OutOfTime("no answer in the time that was left") from None
            raise NoAnswer(f"no answer: {error}") from None
        if response.status != 200:
            self._look_at(response, method, len(calls))
        return in_lower_case(response.body)

    def _look_at(self, response: Response, method: str, calls: int) -> None:
        """Raise what a status tells. An error of JSON-RPC that came with it tells more."""
        status, content = response.status, response.body
        after = _seconds(response.headers.get("retry-after"))
        if content.lstrip()[:1] == b"{" and status != 429:
            try:
                failure = self._failure(_reply.decode(content), method, calls)
            except _NO_JSON:
                failure = None
            if isinstance(failure, SlowDown) and after is not None:
                raise SlowDown(str(failure), after)
            if method == LOGS and failure is None:
                failure = LogsRefused(status, f"HTTP {status}")
            if failure is not None and calls > 1:
                raise of_batch(failure)
            is_outage = status >= 500 and isinstance(failure, Refused) and method != LOGS
            if failure is not None and not is_outage:
                raise failure
        if status == 429 or (status == 503 and after is not None):
            raise SlowDown(f"HTTP {status}", after)
        if status == 413:
            if calls > 1:
                raise BatchRefused
            if method == LOGS:
                raise RangeTooLarge("HTTP 413", is_structural=False)
        if status in (401, 402, 403, 404, 405, 410):
            raise Barred(f"HTTP {status}")
        if status >= 300 and content.lstrip()[:1] != b"[":
            raise TryAgain(f"HTTP {status}")

    def _result(self, reply: _Reply, type_: Any, method: str, calls: int) -> Any:
        failure = self._failure(reply, method, calls)
        if failure is not None:
            raise failure
        if not len(reply.result):
            raise TryAgain("an answer without a result")
        if type_ is Any and _is_large(reply.result):
            raise TryAgain("a result that is larger than any of its kind")
        try:
            return _decoder(type_).decode(reply.result)
        except _NO_JSON:
            raise TryAgain("a result that isn't what was asked for") from None

    def _failure(self, reply: _Reply, method: str, calls: int) -> NodeFailure | None:
        error = reply.error
        if error is None:
            return None
        if isinstance(error, str):
            error = _Error(message=error)
        code = error.code if isinstance(error.code, int) else 0
        text = self._address.without(error.message or "")
        return meaning_of(code, text, error.data, method=method, calls=calls)


def _too_large(method: str) -> NodeFailure:
    """What an answer is that has no end."""
    text = "too large an answer"
    if not method:
        return TooMuch(text)
    if method == LOGS:
        return RangeTooLarge(text, is_structural=False)
    if method == _RECEIPT:
        # Of one transaction that was perhaps made for this purpose: it mustn't delay others.
        return Refused(0, text)
    return TryAgain(text)


def _is_large(result: msgspec.Raw) -> bool:
    """Whether a result would take much memory as objects, which are up to 30 times as large as
    their JSON. Not a text, which is as large."""
    return len(result) > _LARGEST_UNTYPED and bytes(memoryview(result)[:1]) != b'"'


def _request(call: Call) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": next(_ids), "method": call[0], "params": call[1]}


def _is_reply_to(reply: _Reply, request: dict[str, Any]) -> bool:
    """Whether a reply is to this request. Some nodes return the id as a text."""
    return _has_no_id(reply) or str(reply.id) == str(request["id"])


def _has_no_id(reply: _Reply) -> bool:
    """Whether a reply is an error that names no request, as of one that can't be read."""
    return reply.id is None and reply.error is not None


def _decode(decoder: Any, body: bytes) -> Any:
    try:
        return decoder.decode(body)
    except _NO_JSON:
        raise TryAgain("the answer isn't JSON-RPC") from None


@lru_cache(maxsize=64)
def _decoder(type_: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(type_)


def _seconds(text: str | None) -> float | None:
    """The pause of a ``Retry-After``, however long: it has an upper limit in ``health``."""
    if text is not None and text.strip().isdecimal():
        return float(text)
    return retry_after(text)


__all__ = ["Call", "Endpoint", "Refused"]
