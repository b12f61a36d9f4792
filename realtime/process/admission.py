"""Admission of connections: origins, keys and limits, checked before the handshake is accepted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from backend.http.authentication import Credentials, authenticate, from_headers
from backend.http.context import client_address
from backend.kernel.errors import InvalidClientKey, ServiceError
from backend.kernel.networks import client_network
from backend.kernel.principal import CLIENT, Authority
from backend.kernel.texts.encoding import encode_json
from backend.limits import Request, decide_here, rules_for
from backend.settings.conf import service_settings
from backend.settings.rate_limits import SOCKETS

# For browsers, whose pages can't set headers. Without the master key: URLs are logged.
QUERY_KEYS: Final = {
    "applicationId": "application_id",
    "restApiKey": "rest_key",
    "javascriptKey": "javascript_key",
    "clientKey": "client_key",
}
"""The query parameters of a handshake that are keys, with their attribute of ``Credentials``."""

_FORBIDDEN: Final = 119
_TOO_MANY: Final = 155
_UNAVAILABLE: Final = 1
_RETRY_AFTER: Final = 10  # seconds
_LONGEST_ORIGIN: Final = 300
"""Characters: a scheme, a host of at most 253, and a port."""


class Refusal(Exception):
    """A rejected handshake: HTTP's status, the error's code and text."""

    def __init__(self, status: int, code: int, error: str) -> None:
        super().__init__(error)
        self.status = status
        self.code = code
        self.error = error


class Admission:
    """The connections of one process, by address."""

    def __init__(self) -> None:
        self.total = 0
        self.refused: Counter[int] = Counter()
        self.is_closed = False
        self._by_address: Counter[str] = Counter()

    def admit(
        self,
        address: str,
        headers: Mapping[str, str],
        query: Mapping[str, list[str]],
        requires_key: bool,
    ) -> None:
        """Count one more connection, until ``release``. Raises ``Refusal``, and counts nothing."""
        try:
            self._check_room(address)
            _check_rate(address)
            _check_origin(headers.get("origin"))
            if requires_key and service_settings.WS_REQUIRE_KEY:
                _check_key(address, headers, query)
        except Refusal as refusal:
            self.refused[refusal.status] += 1
            raise
        self.total += 1
        self._by_address[client_network(address)] += 1

    def release(self, address: str) -> None:
        """Remove an admitted connection."""
        self.total -= 1
        network = client_network(address)
        self._by_address[network] -= 1
        if self._by_address[network] <= 0:
            del self._by_address[network]

    def _check_room(self, address: str) -> None:
        limit, limit_per_address = (
            service_settings.WS_MAX_CONNECTIONS,
            service_settings.WS_MAX_PER_ADDRESS,
        )
        if self.is_closed or (limit and self.total >= limit):
            raise Refusal(503, _UNAVAILABLE, "there is no room for more connections")
        # Without an address clients can't be distinguished: the proxy doesn't send it.
        if (
            address
            and limit_per_address
            and self._by_address[client_network(address)] >= limit_per_address
        ):
            raise Refusal(429, _TOO_MANY, "there are too many connections from this address")


def _check_rate(address: str) -> None:
    rules = rules_for(SOCKETS, "GET")
    if rules and decide_here(Request(rules, SOCKETS, address, CLIENT)).refusal is not None:
        raise Refusal(429, _TOO_MANY, "there are too many new connections from this address")


def _check_origin(origin: str | None) -> None:
    """Browsers always send the origin of their page; other clients send none."""
    allowed = service_settings.WS_ALLOWED_ORIGINS
    if (
        origin is None
        or not allowed
        or any(_matches_origin(origin, pattern) for pattern in allowed)
    ):
        return
    raise Refusal(403, _FORBIDDEN, "connections from this origin are not allowed")


def _matches_origin(origin: str, allowed: str) -> bool:
    if len(origin) > _LONGEST_ORIGIN:
        # ``urlsplit`` caches its arguments.
        return False
    origin = origin.lower()
    scheme, star, domain = allowed.partition("://*.")
    if not star:
        return origin == allowed
    try:
        address = urlsplit(origin)
    except ValueError:
        return False
    host = address.netloc
    return address.scheme == scheme and host.endswith(f".{domain}") and address.path == ""


def _check_key(address: str, headers: Mapping[str, str], query: Mapping[str, list[str]]) -> None:
    meta = {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in headers.items()}
    credentials = from_headers(meta)
    if credentials.application_id is None:
        keys = {
            attribute: query[name][-1] for name, attribute in QUERY_KEYS.items() if name in query
        }
        credentials = Credentials(**keys)
    try:
        principal = authenticate(credentials, address, with_session=False)
        if principal.authority is Authority.APPLICATION:
            raise InvalidClientKey
    except ServiceError as error:
        raise Refusal(error.status, error.code, error.message) from None


# -- parts of a handshake ------------------------------------------------------------------------


def headers_of(scope: Mapping[str, Any]) -> dict[str, str]:
    """Return the headers of a handshake, names in lower case; repeated ones joined by commas.

    Names with underscores are left out, as the proxy does with requests: in WSGI's form of names
    they would replace the header with hyphens, which the proxy may have set.
    """
    headers: dict[str, str] = {}
    for raw_name, raw_value in scope["headers"]:
        if b"_" in raw_name:
            continue
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        headers[name] = f"{headers[name]},{value}" if name in headers else value
    return headers


def address_of(scope: Mapping[str, Any], headers: Mapping[str, str]) -> str:
    """Return the client's IP address as for REST, from the trusted proxy. Empty if unknown."""
    peer = scope.get("client")
    meta = {
        "REMOTE_ADDR": peer[0] if peer else "",
        "HTTP_X_FORWARDED_FOR": headers.get("x-forwarded-for", ""),
    }
    return client_address(meta)


async def reject(
    scope: Mapping[str, Any],
    send: Callable[[dict[str, Any]], Awaitable[None]],
    refusal: Refusal,
) -> None:
    """Reject a handshake with the JSON error of REST, or with a plain 403 if the server can't."""
    if "websocket.http.response" not in scope.get("extensions", {}):
        await send({"type": "websocket.close", "code": 4000 + refusal.status})
        return
    body = encode_json({"code": refusal.code, "error": refusal.error})
    headers = [(b"content-type", b"application/json")]
    if refusal.status in (429, 503):
        headers.append((b"retry-after", b"%d" % _RETRY_AFTER))
    await send(
        {"type": "websocket.http.response.start", "status": refusal.status, "headers": headers}
    )
    await send({"type": "websocket.http.response.body", "body": body})
