"""A signer whose key is in an encrypted file (the keystore of Ethereum's tools, version 3)."""

from __future__ import annotations

import json
import threading
from pathlib import Path

from chain.rpc.web3_library import eth_account
from chain.sending.signers.local import LocalSigner
from chain.sending.signers.problems import CannotSign

_LARGEST = 64 * 1024  # bytes
_reading = threading.Lock()
_read: dict[tuple[Path, int, str], LocalSigner] = {}


def read_keystore(path: Path, password: str) -> LocalSigner:
    """The signer in this file. Decrypting takes a second on purpose, so it is kept until the file
    changes. Raises ``CannotSign``."""
    try:
        changed = path.stat().st_mtime_ns
    except OSError as error:
        raise CannotSign(f"the keystore can't be read: {error.strerror}") from None
    with _reading:
        cached = _read.get((path, changed, password))
        if cached is None:
            cached = _read[path, changed, password] = _decrypted(path, password)
        return cached


def _decrypted(path: Path, password: str) -> LocalSigner:
    try:
        with path.open("rb") as file:
            content = json.loads(file.read(_LARGEST))
    except OSError as error:
        raise CannotSign(f"the keystore can't be read: {error.strerror}") from None
    except ValueError:
        raise CannotSign("the keystore is no JSON") from None
    try:
        return LocalSigner(bytes(eth_account().Account.decrypt(content, password)))
    except CannotSign:
        raise
    except Exception:
        # The library's own message might repeat parts of the file.
        raise CannotSign(
            "the keystore can't be decrypted: wrong password, or no keystore"
        ) from None
