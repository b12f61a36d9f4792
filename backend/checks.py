"""What ``manage.py check --deploy`` says about this service's own settings."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.checks import CheckMessage, Warning

from backend.limits import rules_for
from backend.settings.conf import DEFAULTS, service_settings

_SHORT = 20  # characters


def deployment(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    messages: list[CheckMessage] = []
    if set(DEFAULTS["MASTER_KEY_IPS"]) & set(service_settings.MASTER_KEY_IPS):
        messages.append(
            Warning(
                "The master key is accepted from any address.",
                hint="List your servers' addresses in MASTER_KEY_IPS.",
                id="backend.W001",
            )
        )
    if service_settings.MAINTENANCE_KEY and {"0.0.0.0/0", "::/0"} & set(
        service_settings.MAINTENANCE_KEY_IPS
    ):
        messages.append(
            Warning(
                "The maintenance key is accepted from any address.",
                hint="List the addresses of imports and exports in MAINTENANCE_KEY_IPS.",
                id="backend.W007",
            )
        )
    address = urlsplit(settings.PUBLIC_URL)
    if address.scheme != "https" or address.hostname == "localhost":
        messages.append(
            Warning(
                "PUBLIC_URL isn't an https address: keys and tokens travel unencrypted.",
                hint="Set PUBLIC_URL, and SITE_ADDRESS for the proxy, to https://your.host.",
                id="backend.W002",
            )
        )
    for name in ("MASTER_KEY", "READ_ONLY_MASTER_KEY", "MAINTENANCE_KEY"):
        key = getattr(service_settings, name)
        if key and len(key) < _SHORT:
            messages.append(
                Warning(
                    f"{name} is short enough to be guessed.",
                    hint=f"Use at least {_SHORT} random characters.",
                    id="backend.W003",
                )
            )
    if all(rule.approximate for rule in rules_for("/login", "POST")):
        messages.append(
            Warning(
                "Passwords may be guessed as fast as the service answers: log in isn't limited.",
                hint='Set RATE_LIMITS to rules for /login, or put "guesses" into its list.',
                id="backend.W004",
            )
        )
    if settings.EMAIL_BACKEND == "django.core.mail.backends.console.EmailBackend":
        messages.append(
            Warning(
                "Mail is printed, not sent: users can't reset passwords or verify addresses.",
                hint="Set EMAIL_URL to your mail server.",
                id="backend.W005",
            )
        )
    if service_settings.WALLET_CUSTODIAN == "mock":
        messages.append(
            Warning(
                "Users get wallets without keys: what is sent to them is lost.",
                hint="Set WALLET_CUSTODIAN to local, http or none.",
                id="backend.W006",
            )
        )
    return messages
