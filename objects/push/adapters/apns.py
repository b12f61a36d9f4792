"""The adapter ``apns``: Apple's service over HTTP/2, with tokens signed by a key (ES256)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import sha256
from time import time
from typing import Final

import jwt
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from backend.kernel.texts.encoding import encode_json
from backend.settings.conf import service_settings
from objects.push.adapters import apple, tokens
from objects.push.adapters.base import (
    SENT,
    BadKey,
    BadMessage,
    Message,
    Outcome,
    failed,
    gone,
    later,
)
from objects.push.adapters.http2 import UNAVAILABLE_STATUSES, Http2Adapter, Http2Client, Response

_TOKEN: Final = re.compile(r"[0-9A-Fa-f]{16,400}")
_TOKEN_STEP: Final = 1800
"""Seconds between new tokens. Apple takes tokens of an hour, and no new ones within 20 minutes: so
all processes sign the same time."""
_REASON: Final = re.compile(r"[A-Za-z]{1,64}")
_REFUSED_TOKENS: Final = frozenset(
    {"ExpiredProviderToken", "InvalidProviderToken", "MissingProviderToken"}
)
_GONE_REASONS: Final = frozenset({"Unregistered", "ExpiredToken"})


class ApnsAdapter(Http2Adapter):
    """Sends to ``APNS_URL``."""

    service = "APNs"
    key = "the key for APNs"

    async def attempt(self, message: Message, client: Http2Client) -> Outcome:
        if not _TOKEN.fullmatch(message.device_token):
            raise BadMessage("the device token isn't one of APNs")
        url = f"{service_settings.APNS_URL}/3/device/{message.device_token}"
        headers, body = _headers(message), encode_json(apple.payload(message))
        token = provider_token()
        response = await client.post(url, body, headers | _authorization(token))
        if _reason(response) == "ExpiredProviderToken":
            tokens.forget(_cache_key(), token)
            headers |= _authorization(provider_token(exact=True))
            response = await client.post(url, body, headers)
        return _outcome(response)


def _authorization(token: str) -> dict[str, str]:
    return {"authorization": f"bearer {token}"}


def _headers(message: Message) -> dict[str, str]:
    extra = apple.headers(message)
    topics = service_settings.APNS_TOPICS
    if not topics:
        raise BadMessage("APNS_TOPICS isn't set")
    own = message.app_identifier
    return {
        "apns-topic": (own if own in topics else topics[0]) + extra.topic_suffix,
        "apns-id": str(message.key),
        "content-type": "application/json",
        **extra.by_name,
    }


def _outcome(response: Response) -> Outcome:
    if response.status == 200:
        return SENT
    reason = _reason(response)
    shown = f"APNs: {response.status} {reason}".rstrip()
    if response.status == 410 and (reason in _GONE_REASONS or not reason):
        return gone(shown)
    if response.status in UNAVAILABLE_STATUSES or reason in _REFUSED_TOKENS:
        return later(shown, response.retry_after)
    return failed(shown)


def _reason(response: Response) -> str:
    reason = response.json().get("reason")
    return reason if isinstance(reason, str) and _REASON.fullmatch(reason) else ""


def provider_token(*, exact: bool = False) -> str:
    """Return the token of the team, signed at most half an hour ago; now if ``exact``.

    Raises ``BadKey``.
    """

    def sign() -> str:
        now = int(time())
        issued_at = now if exact else now - now % _TOKEN_STEP
        return jwt.encode(
            {"iss": service_settings.APNS_TEAM_ID, "iat": issued_at},
            _private_key(),
            algorithm="ES256",
            headers={"kid": service_settings.APNS_KEY_ID},
        )

    seconds = _TOKEN_STEP - time() % _TOKEN_STEP
    return tokens.or_new(_cache_key(), seconds, sign)


def _private_key() -> EllipticCurvePrivateKey:
    text = service_settings.APNS_KEY.replace("\\n", "\n")
    try:
        key = load_pem_private_key(text.encode(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise BadKey("no private key") from None  # the text of the error may quote it
    if not isinstance(key, EllipticCurvePrivateKey) or not isinstance(key.curve, SECP256R1):
        raise BadKey("no key for ES256")
    return key


def _cache_key() -> str:
    parts = (
        *(service_settings.APNS_KEY, service_settings.APNS_KEY_ID),
        *(service_settings.APNS_TEAM_ID, service_settings.APNS_URL),
    )
    return f"apns {sha256(repr(parts).encode()).hexdigest()}"


def apns_problems() -> Iterator[str]:
    """Yield what the adapter lacks."""
    for name in ("APNS_KEY", "APNS_KEY_ID", "APNS_TEAM_ID", "APNS_TOPICS"):
        if not getattr(service_settings, name):
            yield f"{name} isn't set."
    if service_settings.APNS_KEY:
        try:
            _private_key()
        except BadKey:
            yield "APNS_KEY isn't a private key for ES256, as Apple's .p8 files are."
