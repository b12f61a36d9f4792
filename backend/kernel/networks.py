"""IP addresses and networks of clients."""

from __future__ import annotations

from ipaddress import IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

from backend.kernel.texts.cache import short_cache

_LONGEST: Final = 64
"""Characters of an IPv6 address with the name of an interface."""


@short_cache(maxsize=4096, longest=_LONGEST)
def client_network(address: str) -> str:
    """Return what counts as one client: an IPv4 address, or the /64 network of an IPv6 address.

    A provider usually assigns a whole /64 to one customer. Text that isn't an address is returned
    as it is.
    """
    if ":" not in address:
        return address
    try:
        parsed = IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(IPv6Network((int(parsed), 64), strict=False))


@short_cache(maxsize=4096, longest=_LONGEST)
def parse_address(text: str) -> str | None:
    """Return the IP address in an entry of ``X-Forwarded-For``, without a port; None for others."""
    host = text.strip()
    if host.startswith("["):
        host = host[1:].partition("]")[0]
    elif host.count(":") == 1:
        host = host.partition(":")[0]
    try:
        return str(ip_address(host))
    except ValueError:
        return None


@short_cache(maxsize=4096, longest=_LONGEST)
def is_in_networks(address: str, networks: tuple[str, ...]) -> bool:
    """Whether an IP address is in one of the networks; False for text that isn't an address."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped is not None:
        parsed = parsed.ipv4_mapped
    return any(parsed in ip_network(network, strict=False) for network in networks)
