"""The public keys that an issuer signs with, kept between requests.

They are read again after an hour, and sooner for a key that isn't known yet, because issuers
change them; but not more often than every ten seconds, so that no client makes the service
ask by inventing key ids. While the issuer is down, keys of the last day go on counting.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jwt

from objects.users.adapters.http import PATIENCE, Unreachable, fetch

FRESH = 3600.0  # seconds
USABLE = 86_400.0
PAUSE = 10.0
_MOST_KEYS = 100
# What a key may verify, by its type and curve. Nothing symmetric, and not "none".
_BY_TYPE: dict[tuple[object, object], tuple[str, ...]] = {
    ("RSA", None): ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    ("EC", "P-256"): ("ES256",),
    ("EC", "P-384"): ("ES384",),
    ("EC", "P-521"): ("ES512",),
    ("OKP", "Ed25519"): ("EdDSA",),
}
ALGORITHMS = frozenset(name for names in _BY_TYPE.values() for name in names)


@dataclass(frozen=True)
class Key:
    """A public key and the algorithms that it is for."""

    public: Any
    algorithms: frozenset[str]


class IssuerKeys:
    """The keys of one issuer; ``locate`` gives the address of its key list."""

    def __init__(self, locate: Callable[[], str]) -> None:
        self._locate = locate
        self._lock = threading.Lock()
        self._keys: dict[str | int, Key] = {}
        self._read_at = self._tried_at = float("-inf")

    def find(self, key_id: str | None) -> Key | None:
        """The key of this id; without an id, the only key that there is.

        ``Unreachable`` if it isn't known and the issuer can't be reached.
        """
        now = time.time()
        if not 0 <= now - self._read_at < FRESH:
            usable = 0 <= now - self._read_at < USABLE
            try:
                # No thread waits for another one's request while there are keys to go on with.
                self._read(now, 0 if usable else PATIENCE)
            except Unreachable:
                if not usable:
                    raise
        key = self._known(key_id)
        if key is None and not 0 <= now - self._tried_at < PAUSE:
            self._read(now, PATIENCE)
            key = self._known(key_id)
        return key

    def _known(self, key_id: str | None) -> Key | None:
        keys = self._keys
        if key_id is None:
            return next(iter(keys.values())) if len(keys) == 1 else None
        return keys.get(key_id)

    def _read(self, now: float, patience: float) -> None:
        if not self._lock.acquire(timeout=patience):
            raise Unreachable("it is being asked already")
        try:
            # Those who waited here take what the first one found, or fail as it did.
            if 0 <= now - self._tried_at < PAUSE or self._tried_at > now:
                if self._read_at < self._tried_at:
                    raise Unreachable("it could not be reached a moment ago")
                return
            self._tried_at = now
            answer = fetch(self._locate())
            if answer.status != 200:
                raise Unreachable(f"its key list was answered with {answer.status}")
            self._keys = _usable(answer.json())
            self._read_at = now
        finally:
            self._lock.release()


def _usable(document: Mapping[str, Any]) -> dict[str | int, Key]:
    listed = document.get("keys")
    if not isinstance(listed, list) or len(listed) > _MOST_KEYS:
        raise Unreachable("its key list has another form")
    keys: dict[str | int, Key] = {}
    for entry in listed:
        if isinstance(entry, dict) and (key := _key(entry)) is not None:
            key_id = entry.get("kid")
            keys[key_id if isinstance(key_id, str) else len(keys)] = key
    return keys


def _key(entry: dict[str, Any]) -> Key | None:
    """The key, or ``None`` for one that isn't for checking signatures of tokens."""
    if entry.get("use", "sig") != "sig" or "verify" not in (entry.get("key_ops") or ("verify",)):
        return None
    kind, curve, named = entry.get("kty"), entry.get("crv"), entry.get("alg")
    algorithms = _BY_TYPE.get((kind, curve if kind != "RSA" else None), ())
    if named is not None:
        algorithms = tuple(name for name in algorithms if name == named)
    if not algorithms:
        return None
    public_part = {name: value for name, value in entry.items() if name in _PUBLIC}
    try:
        key = jwt.PyJWK(public_part, algorithm=algorithms[0])
    except (jwt.PyJWTError, ValueError, TypeError, AttributeError):
        return None
    if key.Algorithm.check_key_length(key.key) is not None:
        return None  # RSA below 2,048 bits
    return Key(key.key, frozenset(algorithms))


_PUBLIC = frozenset(("kty", "crv", "n", "e", "x", "y", "kid", "use", "alg"))
