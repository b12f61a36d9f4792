"""Carrying out a request once for each id that its sender gives it, and keeping the answer.

Two requests with one id at the same moment wait for each other under an advisory lock of
PostgreSQL, which a process that dies gives back at once: no id stays blocked. There are two ways:

``in_transaction``  the work and the answer are one transaction, so both are there or neither
``afterwards``      the answer is kept when the work is done; if the process dies between the two,
                    a repeated request is carried out again

Answers are encrypted: those to a sign-up hold a session token. They count for ``IDEMPOTENCY_TTL``
seconds.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Final

import msgspec
from cryptography.fernet import InvalidToken
from django.db.models.functions import Now

from backend.kernel.connections import advisory_locks
from backend.kernel.encryption import cipher, secret_keys
from backend.kernel.errors import DuplicateRequest, Timeout
from backend.kernel.idempotency import IdentifiedRequest, StoredResponse
from backend.settings.conf import service_settings
from objects.database import locks
from objects.database.orm import delete_in_batches, orm_queries
from objects.database.statements import fetch
from objects.database.transactions import all_or_nothing
from objects.idempotency.models import KeptAnswer
from objects.rules import NoRules

MOST_BYTES: Final = 64 * 1024
"""Of an answer's body. Of a larger one only is kept that it was given."""

_PURPOSE: Final = "objects.replays.answer"  # of stored answers: the name of keys in use
_AT_ONCE: Final = 1000
# SQL: the ORM's upsert opens a transaction, two round trips more for each request.
_KEEP: Final = """
INSERT INTO objects_kept_answer (key, fingerprint, answer, expires_at)
VALUES (%(key)s, %(fingerprint)s, %(answer)s,
        statement_timestamp() + make_interval(secs => %(seconds)s))
ON CONFLICT (key) DO UPDATE SET fingerprint = excluded.fingerprint,
    answer = excluded.answer, expires_at = excluded.expires_at
"""


class StillRunning(DuplicateRequest):
    """The first request isn't answered yet."""

    def __init__(self) -> None:
        super().__init__("Duplicate request: the first one is still being carried out; try again.")
        self.headers = {"Retry-After": "1"}


def identify(caller: Sequence[str], request_id: str, request: bytes) -> IdentifiedRequest:
    """The request ``request`` (all that it asks) that this caller sends under this id.

    What it asks may hold a password, so the fingerprint can't be guessed at without a secret key.
    """
    identity = msgspec.json.encode([*caller, request_id])
    return IdentifiedRequest(
        hashlib.sha256(identity).hexdigest(),
        tuple(hmac.digest(key.encode(), request, "sha256").hex() for key in secret_keys()),
    )


def in_transaction(
    request: IdentifiedRequest, carry_out: Callable[[], StoredResponse]
) -> tuple[StoredResponse, bool]:
    """The answer, and whether it is a former one. What ``carry_out`` raises undoes all of it, and
    nothing is kept."""

    def once() -> tuple[StoredResponse, bool]:
        try:
            locks.lock_transaction(advisory_locks.request(request.key))
        except Timeout:
            raise StillRunning from None
        return _once(request, carry_out)

    return all_or_nothing(once)


def afterwards(
    request: IdentifiedRequest, carry_out: Callable[[], StoredResponse]
) -> tuple[StoredResponse, bool]:
    """The answer, and whether it is a former one. Nothing is kept of what ``carry_out`` raises."""
    with ExitStack() as stack:
        try:
            stack.enter_context(locks.held(advisory_locks.request(request.key)))
        except Timeout:
            raise StillRunning from None
        return _once(request, carry_out)


def _once(
    request: IdentifiedRequest, carry_out: Callable[[], StoredResponse]
) -> tuple[StoredResponse, bool]:
    former = _find(request)
    if former is not None:
        return former, True
    answered = carry_out()
    _keep(request, answered)
    return answered, False


def _find(request: IdentifiedRequest) -> StoredResponse | None:
    with orm_queries():
        answers = KeptAnswer.objects.filter(key=request.key, expires_at__gt=Now())
        row = answers.values_list("fingerprint", "answer").first()
    if row is None:
        return None
    if service_settings.IDEMPOTENCY_MODE == "reject":
        raise DuplicateRequest
    fingerprint, answer = row
    if not any(hmac.compare_digest(fingerprint, candidate) for candidate in request.fingerprints):
        raise DuplicateRequest  # another request has this id
    if answer is None:
        raise DuplicateRequest("Duplicate request: it was carried out, but its answer wasn't kept.")
    return _opened(answer)


def _opened(answer: str) -> StoredResponse:
    try:
        return msgspec.json.decode(cipher(_PURPOSE).decrypt(answer), type=StoredResponse)
    except InvalidToken:
        raise DuplicateRequest(
            "Duplicate request: it was carried out, but its answer can't be read any more."
        ) from None


def _keep(request: IdentifiedRequest, answered: StoredResponse) -> None:
    sealed = None
    if service_settings.IDEMPOTENCY_MODE == "replay" and len(answered.body) <= MOST_BYTES:
        sealed = cipher(_PURPOSE).encrypt(msgspec.json.encode(answered)).decode()
    params = {
        "key": request.key,
        "fingerprint": request.fingerprints[0],
        "answer": sealed,
        "seconds": service_settings.IDEMPOTENCY_TTL,
    }
    fetch(_KEEP, params, prepare=True)


def remove_expired_answers() -> int:
    """Remove the answers that count no longer; how many that were. It may run twice at once."""
    return delete_in_batches(KeptAnswer.objects.filter(expires_at__lt=Now()), _AT_ONCE)


class IdempotencyRules(NoRules):
    """The rules of ``_Idempotency``, which is the name that Parse gives to stored request ids."""

    @orm_queries()
    def after_purge(self) -> None:
        KeptAnswer.objects.all().delete()
