"""Passkeys (WebAuthn) and wallets."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import urlsplit

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from backend.settings import environment
from backend.settings.declaration import Area, Setting, address, choice, flag, text
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


def _origins(name: str, default: Iterable[str]) -> tuple[str, ...]:
    origins = environment.words(name, default)
    for origin in origins:
        if not _is_origin(origin):
            raise BadSetting(
                f"{name} must list origins such as https://app.example.org or"
                f" {_NATIVE}…, not {origin!r}."
            )
    return tuple(origins)


def _is_origin(value: str) -> bool:
    """Return whether this is an origin as browsers and Android write it: scheme, host and port."""
    if value.startswith(_NATIVE):
        return len(value) > len(_NATIVE)
    try:
        parts = urlsplit(value)
        port = parts.port
    except ValueError:
        return False
    host = parts.hostname or ""
    whole = f"{parts.scheme}://{f'[{host}]' if ':' in host else host}{f':{port}' if port else ''}"
    return parts.scheme in ("http", "https") and bool(host) and value == whole


def _wallet_networks(name: str, default: Iterable[str]) -> tuple[str, ...]:
    networks = tuple(dict.fromkeys(environment.words(name, default)))
    for network in networks:
        if not _NETWORK(network):
            raise BadSetting(f"{name} must list names of networks, not {network!r}.")
    return networks


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
    WEBAUTHN_ORIGINS: Setting[tuple[str, ...]] = Setting(
        (),
        "origins of the pages and apps that may request passkeys: `https://app.example.org`,"
        " `android:apk-key-hash:…`",
        _origins,
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
    WALLET_NETWORKS: Setting[tuple[str, ...]] = Setting(
        (),
        "networks that each user gets a wallet on",
        _wallet_networks,
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
