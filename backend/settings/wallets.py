"""The settings of passkeys (WebAuthn) and wallets, from the environment."""

from __future__ import annotations

import re
from typing import Any, Final
from urllib.parse import urlsplit

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from backend.settings import environment
from backend.settings.conf import DEFAULTS
from backend.settings.environment import BadSetting

VERIFICATION: Final = ("required", "preferred", "discouraged")
ATTESTATION: Final = ("none", "indirect", "direct")
CUSTODIANS: Final = ("local", "http", "mock", "none")

_DOMAIN = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?").fullmatch
_NETWORK = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,63}").fullmatch
_NATIVE = "android:apk-key-hash:"


def service_values() -> dict[str, Any]:
    """The part of ``settings.SERVICE`` that is about passkeys and wallets."""
    return {
        "WEBAUTHN_RP_ID": _rp_id(),
        "WEBAUTHN_RP_NAME": " ".join(environment.text("WEBAUTHN_RP_NAME").split()),
        "WEBAUTHN_ORIGINS": _origins(),
        "WEBAUTHN_USER_VERIFICATION": environment.choice(
            "WEBAUTHN_USER_VERIFICATION", DEFAULTS["WEBAUTHN_USER_VERIFICATION"], VERIFICATION
        ),
        "WEBAUTHN_ATTESTATION": environment.choice(
            "WEBAUTHN_ATTESTATION", DEFAULTS["WEBAUTHN_ATTESTATION"], ATTESTATION
        ),
        **_wallet_values(),
    }


def _rp_id() -> str:
    value = environment.text("WEBAUTHN_RP_ID").lower()
    if value and not _DOMAIN(value):
        raise BadSetting("WEBAUTHN_RP_ID must be a domain such as example.org, without a scheme.")
    return value


def _origins() -> tuple[str, ...]:
    found = environment.words("WEBAUTHN_ORIGINS")
    for item in found:
        if not is_origin(item):
            raise BadSetting(
                "WEBAUTHN_ORIGINS must list origins such as https://app.example.org or"
                f" {_NATIVE}…, not {item!r}."
            )
    return tuple(found)


def is_origin(value: str) -> bool:
    """Whether this is an origin as browsers and Android spell them: scheme, host and port."""
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


def _wallet_values() -> dict[str, Any]:
    custodian = environment.choice("WALLET_CUSTODIAN", DEFAULTS["WALLET_CUSTODIAN"], CUSTODIANS)
    networks = tuple(dict.fromkeys(environment.words("WALLET_NETWORKS")))
    for item in networks:
        if not _NETWORK(item):
            raise BadSetting(f"WALLET_NETWORKS must list names of networks, not {item!r}.")
    url = environment.address("WALLET_API_URL", "", ("http", "https")).rstrip("/")
    token = environment.text("WALLET_API_TOKEN")
    if custodian == "http" and not (url and token and networks):
        raise BadSetting(
            "WALLET_CUSTODIAN=http needs WALLET_API_URL, WALLET_API_TOKEN and WALLET_NETWORKS."
        )
    key, key_id = _signing_key(), environment.text("WALLET_API_KEY_ID")
    if bool(key) != bool(key_id):
        raise BadSetting("WALLET_API_KEY and WALLET_API_KEY_ID belong together.")
    return {
        "WALLET_API_DELEGATED": environment.flag("WALLET_API_DELEGATED", False),
        "WALLET_API_KEY": key,
        "WALLET_API_KEY_ID": key_id,
        "WALLET_CUSTODIAN": custodian,
        "WALLET_NETWORKS": networks,
        "WALLET_API_URL": url,
        "WALLET_API_TOKEN": token,
    }


def _signing_key() -> str:
    """A private key in PEM, in a variable also with its lines joined by \\n. Never repeated."""
    value = environment.text("WALLET_API_KEY").replace("\\n", "\n")
    if value:
        try:
            load_pem_private_key(value.encode(), None)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            raise BadSetting("WALLET_API_KEY must be a private key in PEM.") from None
    return value
