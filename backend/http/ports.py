"""What the HTTP edge needs from the apps above it.

``objects.wiring`` connects both when Django has loaded the apps. Until then, requests that need
them fail with ``AttributeError``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from backend.kernel.idempotency import IdentifiedRequest, StoredResponse


class SessionProof(Protocol):
    """What a valid session token proves."""

    @property
    def session_id(self) -> str: ...

    @property
    def user_id(self) -> str: ...

    @property
    def roles(self) -> frozenset[str]: ...


class Idempotency(Protocol):
    """Carries out a request once for each id of its sender (see ``objects.idempotency``).

    Both ways return the response and whether it is the stored one of an earlier request.
    """

    def identify(
        self, caller: Sequence[str], request_id: str, request: bytes
    ) -> IdentifiedRequest: ...

    def in_transaction(
        self, request: IdentifiedRequest, carry_out: Callable[[], StoredResponse]
    ) -> tuple[StoredResponse, bool]: ...

    def afterwards(
        self, request: IdentifiedRequest, carry_out: Callable[[], StoredResponse]
    ) -> tuple[StoredResponse, bool]: ...


@dataclass(init=False)
class Ports:
    """``authenticate_session`` returns what a token proves, or raises ``InvalidSessionToken``."""

    authenticate_session: Callable[[str], SessionProof]
    idempotency: Idempotency


ports = Ports()
