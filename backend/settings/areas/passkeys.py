"""Passkeys (WebAuthn) and wallets."""

from __future__ import annotations

import re
from typing import Any, Final
from urllib.parse import urlsplit

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from backend.settings import environment
from backend.settings.declaration import Area, Setting, address, choice, flag, items, text
from backend.settings.environment import BadSetting

_DOMAIN = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?").fullmatch
_NETWORK = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,63}").fullmatch
_NATIVE: Final = "android:apk-key-hash:"


def _rp_id(name: str, default: str) -> str:
    value = environment.text(name, default).lower()
    if value and not _DOMAIN(value):
        raise BadSetting(f"{name} must be a domain such as example.org, without a scheme.")
    return value


def _one_line(name: str, default: str) -> str:
    return " ".join(environment.text(name, default).split())


def _origin(value: str) -> str:
    """Return an origin as browsers and Android write it: scheme, host and port. Raises
    ``ValueError``."""
    if value.startswith(_NATIVE):
        if value == _NATIVE:
            raise ValueError(value)
        return value
    parts = urlsplit(value)
    host, port = parts.hostname or "", parts.port
    origin = f"{parts.scheme}://{f'[{host}]' if ':' in host else host}{f':{port}' if port else ''}"
    if parts.scheme not in ("http", "https") or not host or value != origin:
        raise ValueError(value)
    return value


def _wallet_network(value: str) -> str:
    if not _NETWORK(value):
        raise ValueError(value)
    return value


def _signing_key(name: str, default: str) -> str:
    """Read a private key in PEM, in a variable also with its lines joined by \\n."""
    value = environment.text(name, default).replace("\\n", "\n")
    if value:
        try:
            load_pem_private_key(value.encode(), None)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            raise BadSetting(f"{name} must be a private key in PEM.") from None
    return value


class Passkeys(Area):
    """The relying party of passkeys, and the custodian of wallets."""

    title = "Passkeys and wallets"

    WEBAUTHN_RP_ID = Setting(
        "",
        "the domain that passkeys belong to: that of the pages that request them, or one above it."
        " Another one makes all passkeys useless",
        _rp_id,
        shown="host of `PUBLIC_URL`",
    )
    WEBAUTHN_ORIGINS = items(
        "origins of the pages and apps that may request passkeys: `https://app.example.org`,"
        " `android:apk-key-hash:…`",
        _origin,
        f"origins such as https://app.example.org or {_NATIVE}…",
        shown="origin of `PUBLIC_URL`",
    )
    WEBAUTHN_RP_NAME = Setting("", "shown by authenticators", _one_line, shown="`APP_NAME`")
    WEBAUTHN_USER_VERIFICATION = choice(
        "required",
        ("required", "preferred", "discouraged"),
        "or `preferred`, `discouraged`: whether the authenticator asks for a PIN, a finger or a"
        " face",
    )
    WEBAUTHN_ATTESTATION = choice(
        "none",
        ("none", "indirect", "direct"),
        "or `indirect`, `direct`: the attestation that is requested of the authenticator; with"
        " `direct`, an authenticator without it is refused",
    )
    WALLET_CUSTODIAN = choice(
        "local",
        ("local", "http", "mock", "none"),
        "who holds the keys of wallets: `local` (here, encrypted), `http` (a service), `mock`"
        " (addresses without keys, for development), `none`",
    )
    WALLET_NETWORKS = items(
        "networks that each user gets a wallet on",
        _wallet_network,
        "names of networks",
        shown="active networks, else `local`",
    )
    WALLET_API_URL = address("the API of the custodian `http`")
    WALLET_API_TOKEN = text("sent to this API as `Bearer`", secret=True)
    WALLET_API_KEY = Setting(
        "",
        "private key (PEM) of the service account, where the API wants requests signed",
        _signing_key,
        secret=True,
    )
    WALLET_API_KEY_ID = text("credential id of this key")
    WALLET_API_DELEGATED = flag(
        False,
        "users are registered with the custodian too, and sign for their wallets with the same"
        " passkey",
    )

    @classmethod
    def check(cls, values: dict[str, Any]) -> None:
        """Refuse a custodian that lacks something."""
        needed = ("WALLET_API_URL", "WALLET_API_TOKEN", "WALLET_NETWORKS")
        if values["WALLET_CUSTODIAN"] == "http" and not all(values[name] for name in needed):
            raise BadSetting(
                "WALLET_CUSTODIAN=http needs WALLET_API_URL, WALLET_API_TOKEN and WALLET_NETWORKS."
            )
        if bool(values["WALLET_API_KEY"]) != bool(values["WALLET_API_KEY_ID"]):
            raise BadSetting("WALLET_API_KEY and WALLET_API_KEY_ID belong together.")
