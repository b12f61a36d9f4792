"""Which adapter sends to which devices, by the setting ``PUSH_ADAPTERS``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Final

from backend.kernel.errors import PushMisconfigured
from backend.settings.areas.push import EVERY_TYPE
from backend.settings.conf import service_settings
from objects.push.adapters.apns import ApnsAdapter, apns_problems
from objects.push.adapters.base import Adapter
from objects.push.adapters.fcm import FcmAdapter, fcm_problems
from objects.push.adapters.http2 import BAD_CA_FILE, trusted_certificates
from objects.push.adapters.log import LogAdapter

FACTORIES: Final[dict[str, Callable[[], Adapter]]] = {
    "log": LogAdapter,
    "fcm": FcmAdapter,
    "apns": ApnsAdapter,
}
"""Adapters by the names that ``PUSH_ADAPTERS`` takes."""
_PROBLEMS: Final[dict[str, Callable[[], Iterator[str]]]] = {
    "fcm": fcm_problems,
    "apns": apns_problems,
}


def check_configured() -> None:
    """Raise ``PushMisconfigured`` if pushes are switched off."""
    if not service_settings.PUSH_ADAPTERS:
        raise PushMisconfigured("Missing push configuration")


def type_of(push_type: str, device_type: str) -> str:
    """Return the type that an installation is sent to by: its ``pushType``, or ``deviceType``."""
    return push_type if push_type in service_settings.PUSH_ADAPTERS else device_type


def adapter_of(push_type: str) -> str | None:
    """Return the name of the adapter for a type of device, or None."""
    adapters = service_settings.PUSH_ADAPTERS
    return adapters.get(push_type) or adapters.get(EVERY_TYPE)


def make(name: str) -> Adapter:
    """Return a new adapter."""
    return FACTORIES[name]()


def problems() -> Iterator[str]:
    """Yield what is missing in the settings of the adapters that are in use, without secrets."""
    names = set(service_settings.PUSH_ADAPTERS.values())
    if names & _PROBLEMS.keys() and not (find_spec("httpx") and find_spec("h2")):
        yield "The packages of requirements-push.txt aren't installed."
    if names & _PROBLEMS.keys():
        try:
            trusted_certificates(service_settings.PUSH_CA_FILE)
        except OSError:
            yield f"{BAD_CA_FILE}."
    for name in sorted(names & _PROBLEMS.keys()):
        yield from _PROBLEMS[name]()
