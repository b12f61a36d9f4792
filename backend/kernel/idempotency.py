"""Requests that carry an id, and the responses that are stored for them, apart from HTTP's
types."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec


class StoredResponse(msgspec.Struct, frozen=True):
    """Status, headers and the encoded body."""

    status: int
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class IdentifiedRequest:
    """A request with an id: what finds its answer, and what tells it from other requests.

    ``fingerprints`` are one for each secret key, the present one first.
    """

    key: str
    fingerprints: tuple[str, ...]
