"""New connections: to an address that was checked, or through a proxy of the environment."""

from __future__ import annotations

import socket
import ssl
from base64 import b64encode
from collections.abc import Callable, Sequence
from functools import cache
from time import monotonic
from typing import Final, TypeAlias
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from backend.kernel.outgoing.addresses import Address, look_up
from backend.kernel.outgoing.connection import Connection, Headers, Origin
from backend.kernel.outgoing.urls import PORTS
from backend.settings.environment import LOOPBACK_HOSTS

_MAX_ADDRESSES: Final = 4  # addresses of a name that are tried

Resolve: TypeAlias = Callable[[Origin, float], Sequence[Address]]
"""Returns the addresses of an origin that may be connected to, within so many seconds."""


def every_address(origin: Origin, seconds: float) -> Sequence[Address]:
    """Return all addresses of an origin that an operator has named."""
    return look_up(origin.host, origin.port, seconds)


def connect(origin: Origin, resolve: Resolve, deadline: float) -> Connection:
    """Return a new connection to one of the addresses of an origin."""
    raw = _opened(origin, resolve(origin, deadline - monotonic()), deadline)
    return _ready(Connection(raw, origin), deadline)


def connect_through_proxy(origin: Origin, deadline: float) -> Connection | None:
    """Return a connection through the proxy that the environment names, or None without one.

    None as well for this machine, which no proxy reaches.
    """
    is_direct = origin.host in LOOPBACK_HOSTS or proxy_bypass(origin.host)
    proxy = None if is_direct else getproxies().get(origin.scheme)
    if not proxy:
        return None
    parts = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    if parts.scheme != "http" or not parts.hostname:
        raise ValueError("the proxy of the environment has to be http://host:port")
    place = Origin("http", parts.hostname, parts.port or PORTS["http"])
    connection = Connection(
        _opened(place, every_address(place, deadline - monotonic()), deadline), origin
    )
    try:
        target = f"{_bracketed(origin.host)}:{origin.port}"
        headers: list[tuple[str, str]] = [("Host", target)]
        if parts.username is not None:
            name = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            headers.append(
                ("Proxy-Authorization", f"Basic {b64encode(name.encode()).decode('ascii')}")
            )
        response = connection.send("CONNECT", target, headers, None, deadline)
        if not 200 <= response.status_code < 300:
            raise OSError("the proxy refuses the connection")
    except BaseException:
        connection.close()
        raise
    return _ready(connection, deadline)


def host_header(origin: Origin) -> Headers:
    """Return the header that names an origin."""
    host = origin.host if origin.host.isascii() else origin.host.encode("idna").decode("ascii")
    host = _bracketed(host)
    is_default = origin.port == PORTS[origin.scheme]
    return [("Host", host if is_default else f"{host}:{origin.port}")]


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _opened(origin: Origin, addresses: Sequence[Address], deadline: float) -> socket.socket:
    failure: OSError = OSError("no address")
    addresses = addresses[:_MAX_ADDRESSES]
    for place, address in enumerate(addresses):
        left = deadline - monotonic()
        if left <= 0:
            raise TimeoutError
        try:
            # A share for each: the others are tried if one doesn't respond.
            raw = socket.create_connection(
                (str(address), origin.port), left / (len(addresses) - place)
            )
        except OSError as error:
            failure = error
            continue
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return raw
    raise failure


def _ready(connection: Connection, deadline: float) -> Connection:
    if connection.origin.scheme == "https":
        try:
            connection.speak_tls(tls(), deadline)
        except BaseException:
            connection.close()
            raise
    return connection


@cache
def tls() -> ssl.SSLContext:
    """Return the context that verifies certificates and names."""
    return ssl.create_default_context()
