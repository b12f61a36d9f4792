"""Requests to other servers: one HTTP client, the addresses that it may connect to, and turns.

``Client`` sends requests, ``turn`` limits how many threads wait for responses at the same moment,
and ``parts_of`` says which URLs requests are sent to.
"""

from backend.kernel.outgoing.client import Client, Response, Stream
from backend.kernel.outgoing.failures import TimedOut, TooLarge, Unreachable
from backend.kernel.outgoing.turns import PATIENCE, spare_turn, turn
from backend.kernel.outgoing.urls import origin_of, parts_of, retry_after

__all__ = [
    "PATIENCE",
    "Client",
    "Response",
    "Stream",
    "TimedOut",
    "TooLarge",
    "Unreachable",
    "origin_of",
    "parts_of",
    "retry_after",
    "spare_turn",
    "turn",
]
