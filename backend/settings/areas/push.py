"""Which services send push notifications, and what they need."""

from __future__ import annotations

import re
import ssl
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from backend.settings import environment
from backend.settings.declaration import Area, Setting, address, flag, text, whole, words
from backend.settings.environment import LOOPBACK_HOSTS, BadSetting

ADAPTERS: Final = ("apns", "fcm", "log")
EVERY_TYPE: Final = "*"
_TYPE = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,31}|\*")


def _adapters(name: str, default: dict[str, str]) -> dict[str, str]:
    """Return the adapter of each push type; none for ``off``."""
    items = environment.words(name)
    if not items:
        return default
    if items == ["off"]:
        return {}
    adapters = {}
    for item in items:
        push_type, _, adapter = item.partition("=")
        if not _TYPE.fullmatch(push_type) or adapter not in ADAPTERS:
            raise BadSetting(
                f"{name} must list push types with their adapters, ios=apns,android=fcm, or be"
                f" off. Adapters are {', '.join(ADAPTERS)}."
            )
        adapters[push_type] = adapter
    return adapters


def _certificates(name: str, default: str) -> str:
    path = environment.text(name, default)
    if path and not Path(path).is_file():
        raise BadSetting(f"{name} must name a file, and there is none.")
    if path:
        try:
            ssl.create_default_context(cafile=path)
        except OSError:
            raise BadSetting(f"{name} must name a file of certificates in PEM form.") from None
    return path


class Push(Area):
    """Push notifications and their services."""

    title = "Push notifications"

    PUSH_ADAPTERS: Setting[dict[str, str]] = Setting(
        {EVERY_TYPE: "log"},
        "which adapter sends to which type of device ([push.md](push.md)):"
        " `ios=apns,android=fcm,*=log`. `off`: pushes are refused",
        _adapters,
        shown="`*=log`",
    )
    PUSH_REMOVE_TOKENS = flag(
        True, "device tokens that a service reports as unregistered are removed"
    )
    PUSH_RETENTION = whole(
        7,
        "time that targets of a push and their errors are stored after its end",
        least=1,
        most=3650,
        unit="days",
    )
    FCM_SERVICE_ACCOUNT = text(
        "the JSON of the service account that sends by Firebase Cloud Messaging", secret=True
    )
    FCM_URL = address("where FCM is", default="https://fcm.googleapis.com")
    APNS_KEY = text("the key for APNs: the content of the `.p8` file", secret=True)
    APNS_KEY_ID = text("the id of the key")
    APNS_TEAM_ID = text("the id of your team at Apple")
    APNS_TOPICS = words(
        "bundle ids of your apps. Installations with another `appIdentifier`, or none, get the"
        " first"
    )
    APNS_URL = address(
        "where APNs is; `https://api.sandbox.push.apple.com` for development builds",
        schemes=("https",),
        default="https://api.push.apple.com",
    )
    PUSH_CA_FILE = Setting(
        "",
        "a file of certificates to trust instead of the system's when pushes are sent",
        _certificates,
    )

    @classmethod
    def check(cls, values: dict[str, Any]) -> None:
        parts = urlsplit(values["FCM_URL"])
        if parts.scheme != "https" and parts.hostname not in LOOPBACK_HOSTS:
            raise BadSetting("FCM_URL must be https.")
