"""Where a request comes from."""

from __future__ import annotations

import ipaddress
from functools import lru_cache

from django.http import HttpRequest

from backend.conf import service_settings


def client_address(request: HttpRequest) -> str:
    """The caller's IP address.

    ``X-Forwarded-For`` counts only when the connection comes from a proxy that is trusted
    (``TRUSTED_PROXIES``), and then its last entry that isn't one of them.
    """
    address: str = request.META.get("REMOTE_ADDR", "")
    trusted = service_settings.TRUSTED_PROXIES
    if not trusted:
        return address
    forwarded = request.META.get("HTTP_X_FORWARDED_FOR")
    if not forwarded:
        return address
    for hop in (address, *reversed(forwarded.split(","))):
        address = hop.strip()
        if not _is_trusted(address, tuple(trusted)):
            break
    return address


@lru_cache(maxsize=1024)
def _is_trusted(address: str, trusted: tuple[str, ...]) -> bool:
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        # A proxy on a UNIX socket has no address.
        return address == ""
    return any(found in ipaddress.ip_network(network, strict=False) for network in trusted)
