"""Which adapter sends to which devices, by the setting ``PUSH_ADAPTERS``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Final

from django.db.models import Q

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


def services() -> list[str]:
    """Return the names of the adapters that are in use; ``""`` if pushes are switched off."""
    return sorted({*service_settings.PUSH_ADAPTERS.values()}) or [""]


def is_of(service: str) -> Q:
    """Return the condition for targets that a service sends to.

    Those of a type without an adapter belong to the first service, which records their failure.
    """
    adapters = service_settings.PUSH_ADAPTERS
    named = {name: adapter for name, adapter in adapters.items() if name != EVERY_TYPE}
    own = Q(push_type__in=[name for name, adapter in named.items() if adapter == service])
    if service == adapters.get(EVERY_TYPE, services()[0]):
        own |= ~Q(push_type__in=[*named])
    return own


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
