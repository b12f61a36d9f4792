"""Headers that authenticate a webhook request to its receiver.

``X-Svc-Webhook-Key`` and ``X-Parse-Webhook-Key`` are ``WEBHOOK_KEY`` itself, as with Parse.
``webhook-id``, ``webhook-timestamp`` and ``webhook-signature`` follow Standard Webhooks: the
signature is HMAC-SHA256 with ``WEBHOOK_SECRET`` over all three parts, so that a body can't be
changed and an old request can't be replayed. The secret itself never leaves the service.
"""

from __future__ import annotations

import base64
import hmac
import secrets
import time

from backend.settings.areas.functions import SECRET_PREFIX
from backend.settings.conf import service_settings


def new_key() -> str:
    """Return a new id for a request, which its retries share."""
    return f"msg_{secrets.token_urlsafe(20)}"


def headers(key: str, body: bytes) -> dict[str, str]:
    """Return the headers of a request, signed with every configured secret."""
    now = str(int(time.time()))
    fields = {
        "Content-Type": "application/json",
        "Accept": "application/json",
        "User-Agent": "svc-backend",
        "webhook-id": key,
        "webhook-timestamp": now,
    }
    if known_secrets := service_settings.WEBHOOK_SECRET:
        fields["webhook-signature"] = " ".join(
            signature(secret, key, now, body) for secret in known_secrets.split(",")
        )
    if webhook_key := service_settings.WEBHOOK_KEY:
        fields |= {"X-Svc-Webhook-Key": webhook_key, "X-Parse-Webhook-Key": webhook_key}
    return fields


def signature(secret: str, key: str, timestamp: str, body: bytes) -> str:
    """Return the value for one secret in ``webhook-signature``, which may list several."""
    raw = base64.b64decode(secret.removeprefix(SECRET_PREFIX))
    signed = hmac.digest(raw, f"{key}.{timestamp}.".encode() + body, "sha256")
    return f"v1,{base64.b64encode(signed).decode()}"
