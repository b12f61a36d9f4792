"""Secrets that an earlier version has encrypted can be read: the names of keys never change."""

from __future__ import annotations

from typing import Any

import pytest

from backend.kernel.encryption import cipher
from chain.purposes import PROVIDER, WALLET
from objects import reencryption
from objects.idempotency import replays
from objects.users.accounts import second_factor

SECRET_KEY = "a key that never changes"
STORED = {
    second_factor.PURPOSE: (
        "gAAAAABrB6kQ_0mdvKCsrsaiT3MDFTXUrQ7enOXbhBcSFWT81atolAIDonzj"
        "B7KdX6eYP2a_WZ06OLY68ljox0EKoyTTwU-4lA=="
    ),
    replays._PURPOSE: (
        "gAAAAABrB6kQkHuOdxaVH4VSdxrrdFzTymIqKyReGOsd8GQHw5HTeombfP6X"
        "_RZScpi9EgRkFGeekm0MHSVp1HSq7cp0hEukSg=="
    ),
    PROVIDER: (
        "gAAAAABrB6kQeEbtuYD-W8vfokb8vOrQJPXkZy-rQjPhpeb6XUEwr3L2xW8V"
        "CPn50KcG8K7TZX9SXNg5iJS2fw4N5n60rijIqg=="
    ),
    WALLET: (
        "gAAAAABrB6kQLam7JCXaqAtrEh6BSV25mJs_Yflm1qSYCct90c7OqpYEOoE0"
        "48y3W4RoJFVf6Gx0BIPHGQCzpyKnGlgCIYzOZw=="
    ),
}


@pytest.mark.parametrize("purpose", STORED)
def test_what_an_earlier_version_encrypted_is_read(settings: Any, purpose: str) -> None:
    settings.SECRET_KEY = SECRET_KEY
    assert cipher(purpose).decrypt(STORED[purpose]) == b"stored"


def test_each_encrypted_column_is_among_them() -> None:
    assert {column.purpose for column in reencryption._columns} <= STORED.keys()
