"""Calls in one request: as many as a node takes, learned from what it refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from time import monotonic
from typing import Any, Final

from chain.core.failures import NodeFailure, Refused, TryAgain
from chain.core.ranges import WIDEST, Ranges
from chain.rpc.client.refusals import Barred, BatchRefused

Call = tuple[str, Sequence[Any]]
Send = Callable[[Sequence[Call], Sequence[Any], float | None], list[Any]]
"""Send calls in one request, with the types of their results, within so many seconds."""

_USUAL: Final = 100  # calls in one request, until a provider refuses them


class TooMuch(NodeFailure):
    """The answer to a batch is too large, which says nothing of batches of as many calls."""


class Batches:
    """How many calls of one node go into a request. ``most`` is what staff have entered."""

    def __init__(self, most: int | None) -> None:
        self._most = most or _USUAL
        self._sizes = Ranges(WIDEST)

    @property
    def size(self) -> int:
        return min(self._most, self._sizes.width)

    def parts(
        self, calls: Sequence[Call], types: Sequence[Any], send: Send, seconds: float | None
    ) -> Iterator[list[Any]]:
        """The results of the calls, request by request, in smaller requests after a refusal.

        If a single call is refused just as a batch was, and none was answered since, the node
        refuses all of them: that is raised.
        """
        until = None if seconds is None else monotonic() + seconds
        at, most = 0, len(calls)
        refusal: NodeFailure | None = None
        while at < len(calls):
            size = min(most, self.size, len(calls) - at)
            end = at + size
            left = None if until is None else until - monotonic()
            try:
                part = send(calls[at:end], types[at:end], left)
            except TooMuch:
                most = size // 2
            except BatchRefused as refused:
                refusal = refused.refusal
                self._sizes.too_large(size, refused.most, is_structural=refused.most is not None)
            except TryAgain:
                if refusal is not None:
                    self._restore()
                raise
            else:
                if size == 1 and refusal is not None and _are_same(refusal, part[0]):
                    self._restore()
                    raise part[0]
                refusal = None
                self._sizes.succeeded(size, 0, 0.0)
                yield part
                at = end

    def _restore(self) -> None:
        """Undo the last refusals: it isn't the size."""
        self._sizes.too_large(1, is_structural=False)


def of_batch(failure: NodeFailure | None) -> NodeFailure:
    """What a single error in answer to a batch stands for. Unless it is about the rate, it may be
    about one of the calls."""
    if isinstance(failure, BatchRefused) or (
        isinstance(failure, TryAgain) and not isinstance(failure, Barred)
    ):
        return failure
    return BatchRefused(refusal=failure)


def _are_same(refusal: NodeFailure, answer: Any) -> bool:
    return isinstance(answer, Refused) and str(answer) == str(refusal)
