"""The network addresses that requests may be sent to whose URL isn't the operator's.

Public addresses are allowed. Others (this machine, private networks, the cloud's own services) are
allowed only if ``WEBHOOK_ALLOW_PRIVATE`` names their network, and only these are called without
TLS. A request resolves a name once, and the connection uses that address: a second lookup may
return a different one.
"""

from __future__ import annotations

import ipaddress
import socket
import threading
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address
from typing import Final

from backend.kernel.outgoing.failures import Unreachable
from backend.settings.conf import service_settings

Address = IPv4Address | IPv6Address

# Globally routable, but used for internal services of cloud providers.
_NEVER: Final = tuple(map(ipaddress.ip_network, ("192.0.0.0/24", "168.63.129.16/32")))
# The IPv6 range that is assigned for global unicast.
_UNICAST: Final = ipaddress.ip_network("2000::/3")
_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")
_COMPATIBLE: Final = ipaddress.ip_network("::/96")
_FIRST_COMPATIBLE: Final = 2  # :: and ::1 embed no IPv4 address


class NotAllowed(Unreachable):
    """An address that isn't called. The message names the setting that allows it."""


def is_callable(scheme: str, address: Address) -> bool:
    """Whether a request with this scheme may be sent to this address."""
    return is_own(address) if scheme == "http" else is_allowed(address)


def is_allowed(address: Address) -> bool:
    """Whether a request may be sent to this address."""
    target = _embedded_ipv4(address)
    return is_own(target) or _is_public(target)


def is_own(address: Address) -> bool:
    """Whether the address is in a network of ``WEBHOOK_ALLOW_PRIVATE``."""
    target = _embedded_ipv4(address)
    networks = map(ipaddress.ip_network, service_settings.WEBHOOK_ALLOW_PRIVATE)
    return any(target in network for network in networks)


def _is_public(address: Address) -> bool:
    if not address.is_global or address.is_multicast:
        return False
    if isinstance(address, IPv6Address):
        return address in _UNICAST
    return not any(address in network for network in _NEVER)


def _embedded_ipv4(address: Address) -> Address:
    """Return the IPv4 address embedded in an IPv6 address, or the address itself."""
    if isinstance(address, IPv4Address) or int(address) < _FIRST_COMPATIBLE:
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    if address in _NAT64 or address in _COMPATIBLE:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def resolved(host: str, port: int, seconds: float, *, scheme: str = "https") -> list[Address]:
    """Return the addresses of a host that requests are sent to, in order of preference.

    Raises ``NotAllowed`` if there are only others, and ``Unreachable`` if there are none, or the
    lookup exceeds ``seconds``.
    """
    addresses = look_up(host, port, seconds)
    usable = [address for address in addresses if is_callable(scheme, address)]
    if usable:
        return usable
    if any(is_allowed(address) for address in addresses):
        raise NotAllowed(
            "its address is called by https only; http is for the networks that"
            " WEBHOOK_ALLOW_PRIVATE lists"
        )
    raise NotAllowed(
        "its address is in a network that isn't called; WEBHOOK_ALLOW_PRIVATE lists the private"
        " networks that are"
    )


def look_up(host: str, port: int, seconds: float) -> list[Address]:
    """Return all addresses of a host. Raises ``Unreachable``, also after so many seconds."""
    with suppress(ValueError):
        return [ipaddress.ip_address(host)]
    addresses: list[Address] = []
    failures: list[OSError | UnicodeError] = []

    def ask_resolver() -> None:
        try:
            for *_, place in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
                address = ipaddress.ip_address(str(place[0]).partition("%")[0])
                if address not in addresses:
                    addresses.append(address)
        except (OSError, UnicodeError) as error:
            failures.append(error)

    # The system's resolver has no timeout.
    thread = threading.Thread(target=ask_resolver, name="resolver", daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise Unreachable("its host name wasn't resolved in time")
    if failures or not addresses:
        raise Unreachable("its host name isn't known")
    return addresses
