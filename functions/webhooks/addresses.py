"""Which machines webhooks may be sent to.

An address on the internet; others (this machine, private networks, the cloud's own services) only
if ``WEBHOOK_ALLOW_PRIVATE`` names their network. A name is resolved once, and what it was resolved
to is what is connected to: asked again, a name may lead elsewhere.
"""

from __future__ import annotations

import ipaddress
import socket
import threading
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address
from typing import Final

from backend.kernel.outgoing import Unreachable
from backend.settings.conf import service_settings

Address = IPv4Address | IPv6Address

# Public by their numbers, and yet the machine rooms of clouds.
_NEVER: Final = tuple(map(ipaddress.ip_network, ("192.0.0.0/24", "168.63.129.16/32")))
# All that IPv6 has given away so far.
_UNICAST: Final = ipaddress.ip_network("2000::/3")
_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")
_COMPATIBLE: Final = ipaddress.ip_network("::/96")
_FIRST_COMPATIBLE: Final = 2  # :: and ::1 mean what they say


def is_allowed(address: Address) -> bool:
    """Whether a webhook may be sent there."""
    meant = _meant(address)
    return is_own(meant) or _is_public(meant)


def is_own(address: Address) -> bool:
    """Whether it is in a network that the settings name."""
    meant = _meant(address)
    networks = map(ipaddress.ip_network, service_settings.WEBHOOK_ALLOW_PRIVATE)
    return any(meant in network for network in networks)


def _is_public(address: Address) -> bool:
    if not address.is_global or address.is_multicast:
        return False
    if isinstance(address, IPv6Address):
        return address in _UNICAST
    return not any(address in network for network in _NEVER)


def _meant(address: Address) -> Address:
    """The IPv4 address that an IPv6 address stands for, if it does."""
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


def resolved(host: str, port: int, seconds: float) -> list[Address]:
    """The addresses of a host that may be called, in the order of preference.

    Raises ``Unreachable``: there is none, none may be called, or nobody knows in time.
    """
    try:
        found: Sequence[Address] = [ipaddress.ip_address(host)]
    except ValueError:
        found = _looked_up(host, port, seconds)
    allowed = [address for address in found if is_allowed(address)]
    if not allowed:
        raise Unreachable("its address is in a network that isn't called")
    return allowed


def _looked_up(host: str, port: int, seconds: float) -> list[Address]:
    found: list[Address] = []
    failures: list[OSError | UnicodeError] = []

    def look_up() -> None:
        try:
            for *_, place in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
                address = ipaddress.ip_address(str(place[0]).partition("%")[0])
                if address not in found:
                    found.append(address)
        except (OSError, UnicodeError) as error:
            failures.append(error)

    # The system's resolver takes no time limit.
    thread = threading.Thread(target=look_up, name="resolver", daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise Unreachable("its host name wasn't resolved in time")
    if failures or not found:
        raise Unreachable("its host name isn't known")
    return found
