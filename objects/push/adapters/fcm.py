"""The adapter ``fcm``: Firebase Cloud Messaging, HTTP v1, with a service account (OAuth 2)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from time import time
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

import jwt
import msgspec

from backend.kernel.json_types import Wire
from backend.kernel.texts.encoding import encode_json
from backend.settings.conf import service_settings
from backend.settings.environment import LOOPBACK_HOSTS
from objects.core.values import wire_time
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
from objects.push.adapters.http2 import (
    UNAVAILABLE_STATUSES,
    Http2Adapter,
    Http2Client,
    NoResponse,
    Response,
)

_SCOPE: Final = "https://www.googleapis.com/auth/firebase.messaging"
_GRANT: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_APPLE_TYPES: Final = frozenset({"ios", "osx", "tvos", "watchos"})
_FIELDS_NOT_IN_DATA: Final = frozenset(
    {"badge", "content-available", "mutable-content", "priority", "expiration_time"}
)
_LONGEST_TTL: Final = 28 * 86_400  # seconds
_LONGEST_TOKEN: Final = 4096
_PROJECT: Final = re.compile(r"[a-z0-9][a-z0-9:.-]{0,62}")
_ACCESS_TOKEN: Final = re.compile(r"[\x21-\x7e]{1,4096}")
_ERROR_CODE: Final = re.compile(r"[A-Z_]{1,64}")


@dataclass(frozen=True, slots=True)
class ServiceAccount:
    """What is needed of the JSON that Firebase gives."""

    project_id: str
    client_email: str
    private_key: str
    token_uri: str

    @property
    def cache_key(self) -> str:
        text = repr((self.client_email, self.private_key, self.token_uri))
        return f"fcm {sha256(text.encode()).hexdigest()}"


class FcmAdapter(Http2Adapter):
    """Sends to ``FCM_URL``, one request for each message."""

    service = "FCM"
    key = "the service account for FCM"

    def __init__(self) -> None:
        super().__init__()
        self._token_lock = asyncio.Lock()

    async def attempt(self, message: Message, client: Http2Client) -> Outcome:
        if len(message.device_token) > _LONGEST_TOKEN:
            raise BadMessage("the device token isn't one of FCM")
        body = encode_json({"message": fcm_message(message)})
        account = service_account()
        token = await self._access_token(account, client)
        response = await _post(account, body, token, client)
        if response.status == 401:
            tokens.forget(account.cache_key, token)
            token = await self._access_token(account, client)
            response = await _post(account, body, token, client)
        return _outcome(response)

    async def _access_token(self, account: ServiceAccount, client: Http2Client) -> str:
        async with self._token_lock:
            token = tokens.cached(account.cache_key)
            if token is not None:
                return token
            form = urlencode({"grant_type": _GRANT, "assertion": _assertion(account)}).encode()
            headers = {"content-type": "application/x-www-form-urlencoded"}
            response = await client.post(account.token_uri, form, headers)
            values = response.json()
            token, seconds = values.get("access_token"), values.get("expires_in")
            if not (
                response.status == 200 and isinstance(token, str) and _ACCESS_TOKEN.fullmatch(token)
            ):
                raise NoResponse(f"no access token (status {response.status})")
            if not isinstance(seconds, int | float) or isinstance(seconds, bool):
                seconds = 300
            tokens.store(account.cache_key, token, min(max(seconds - 60, 0), 3600))
            return token


async def _post(account: ServiceAccount, body: bytes, token: str, client: Http2Client) -> Response:
    project = quote(account.project_id, safe="")
    url = f"{service_settings.FCM_URL}/v1/projects/{project}/messages:send"
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
    return await client.post(url, body, headers)


def _assertion(account: ServiceAccount) -> str:
    now = int(time())
    claims = {
        "iss": account.client_email,
        "scope": _SCOPE,
        "aud": account.token_uri,
        "iat": now,
        "exp": now + 3600,
    }
    try:
        return jwt.encode(claims, account.private_key, algorithm="RS256")
    except Exception:
        # The text of the error may quote the key.
        raise BadKey("no key for RS256") from None


def service_account() -> ServiceAccount:
    """Return the account of the settings. Raises ``BadKey``, without what it holds."""
    try:
        value = msgspec.json.decode(service_settings.FCM_SERVICE_ACCOUNT)
        account = msgspec.convert(value, ServiceAccount)
        token_uri = urlsplit(account.token_uri)
    except (msgspec.DecodeError, msgspec.ValidationError, ValueError):
        raise BadKey("no service account") from None
    if token_uri.scheme != "https" and token_uri.hostname not in LOOPBACK_HOSTS:
        raise BadKey("token_uri isn't https")
    if not _PROJECT.fullmatch(account.project_id):
        raise BadKey("no project")
    return account


def fcm_message(message: Message) -> dict[str, Any]:
    """Return the message as FCM takes it. Raises ``BadMessage``."""
    raw = message.body.get("rawPayload")
    if isinstance(raw, dict):
        content: dict[str, Any] = dict(raw)
    elif message.device_type in _APPLE_TYPES:
        content = {"apns": _apple(message)}
    else:
        content = {"android": _android(message)}
    return {**content, "token": message.device_token}


def _android(message: Message) -> Wire:
    data = {key: value for key, value in message.data.items() if key not in _FIELDS_NOT_IN_DATA}
    android: Wire = {
        "priority": "high",
        "data": {
            # Parse's Android SDK shows each id once, also if it is sent again.
            "push_id": message.push_id,
            "time": wire_time(datetime.fromtimestamp(message.sent_at, UTC)),
            "data": encode_json(data).decode(),
        },
    }
    notification = message.body.get("notification")
    if isinstance(notification, dict):
        android["notification"] = notification
    if message.expires_at is not None:
        seconds = min(max(0, int(message.expires_at - message.sent_at)), _LONGEST_TTL)
        android["ttl"] = f"{seconds}s"
    return android


def _apple(message: Message) -> Wire:
    return {"headers": {**apple.headers(message).by_name}, "payload": apple.payload(message)}


def _outcome(response: Response) -> Outcome:
    if response.status == 200:
        return SENT
    code = _error_code(response)
    shown = f"FCM: {response.status} {code}".rstrip()
    if code == "UNREGISTERED":
        return gone(shown)
    if response.status in UNAVAILABLE_STATUSES or response.status == 401 or code == "UNAVAILABLE":
        return later(shown, response.retry_after)
    return failed(shown)


def _error_code(response: Response) -> str:
    """Return FCM's code of an error, or the more general one of Google's services."""
    error = response.json().get("error")
    if not isinstance(error, dict):
        return ""
    details = error.get("details")
    entries = details if isinstance(details, list) else []
    codes = [entry.get("errorCode") for entry in entries if isinstance(entry, dict)]
    for code in (*codes, error.get("status")):
        if isinstance(code, str) and _ERROR_CODE.fullmatch(code):
            return code
    return ""


def fcm_problems() -> Iterator[str]:
    """Yield what the adapter lacks."""
    if not service_settings.FCM_SERVICE_ACCOUNT:
        yield "FCM_SERVICE_ACCOUNT isn't set."
        return
    try:
        _assertion(service_account())
    except BadKey:
        yield "FCM_SERVICE_ACCOUNT isn't the JSON of a service account, with its private key."
