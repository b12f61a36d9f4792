"""What can go wrong with a node, told apart by what has to be done about it.

The texts never hold an address of a node: it may have a key in it.
"""

from __future__ import annotations

from typing import Any, Final


class NodeFailure(Exception):
    """Base of all below. Nothing is known about the chain then: it is never an answer."""


class TryAgain(NodeFailure):
    """The node didn't answer, or with what can't be one: no connection, a timeout, 5xx, a body
    that isn't JSON-RPC, an answer missing from a batch. Another provider may answer."""


class NoAnswer(TryAgain):
    """No response has arrived, or not in time. It says nothing of what was requested."""


class EmptyPromise(TryAgain):
    """The node doesn't have a block that is below the newest one that it has just named. It may
    have dropped it since; or it names blocks that aren't there."""


class MissingReceipts(TryAgain):
    """The node doesn't have receipts that are needed. It may have pruned its history, and then not
    have the logs of these blocks either."""


class Contradiction(TryAgain):
    """The node contradicts itself: its logs or receipts can't be those of the block whose header
    it gave. Something of it is wrong, which no reorganisation explains."""


class SlowDown(TryAgain):
    """The provider limits the rate. ``after`` is the pause that it asks for, in seconds."""

    def __init__(self, text: str, after: float | None = None) -> None:
        super().__init__(text)
        self.after = after


class Unavailable(NodeFailure):
    """No provider of the network is available at the moment. ``refusal`` is the error of the last
    one, if it has refused the request."""

    def __init__(self, text: str, refusal: Refused | None = None) -> None:
        super().__init__(text)
        self.refusal = refusal


class RangeTooLarge(NodeFailure):
    """``eth_getLogs`` was asked for too much.

    ``blocks`` is how many blocks the provider's text says are allowed, or None if it doesn't say.
    ``is_structural`` tells a limit on blocks, which holds for ever, from too many results or too
    large an answer, which depends on the blocks.
    """

    def __init__(self, text: str, blocks: int | None = None, *, is_structural: bool) -> None:
        super().__init__(text)
        self.blocks = blocks
        self.is_structural = is_structural


class Refused(NodeFailure):
    """The node has answered with an error of JSON-RPC. Another provider may answer.

    ``data`` is what came with it, such as the data of a revert (0x…).
    """

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(f"{message} ({code})")
        self.code = code
        self.message = message
        self.data = data


class Halted(Refused):
    """The EVM has ended a call: a revert, or a halt such as an invalid opcode. That is the
    contract's own answer, which every provider gives."""


class LogsRefused(Refused):
    """``eth_getLogs`` was refused, and there may be too many blocks or too many contracts.

    ``otherwise`` is what the text means if that isn't it, as far as it is understood.
    """

    def __init__(
        self, code: int, message: str, data: Any = None, *, otherwise: TryAgain | None = None
    ) -> None:
        super().__init__(code, message, data)
        self.otherwise = otherwise


class Moved(NodeFailure):
    """Answers that don't fit together: the chain has changed between them, or providers differ.
    What was read is dropped, and read again later."""


class MissingBlocks(Moved):
    """The node doesn't have all blocks of a range of logs, as it says. Another provider may."""


class Undecided(Moved):
    """Providers differ, or another one doesn't have as many blocks yet, and nothing says which of
    them is right."""


REFUSALS_OF_LOGS: Final = (RangeTooLarge, LogsRefused, MissingBlocks)
"""Errors of ``eth_getLogs`` after which fewer blocks, or fewer contracts, may be answered."""
