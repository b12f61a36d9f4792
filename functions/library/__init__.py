"""The functions that the service itself brings."""

from functions.library import (  # noqa: F401 (they register)
    blockchains,
    contracts,
    diamonds,
    features,
    passkeys,
    registration,
    transactions,
    wallets,
)
