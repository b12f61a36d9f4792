"""The adapters of this deployment, made from ``AUTH_ADAPTERS`` when one is first asked for.

A setting that can't work is an ``ImproperlyConfigured`` that names it; ``manage.py check`` and
``prepare``, which every start runs, report it before the first client does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from django.core.checks import CheckMessage, Error, register
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed
from django.utils.module_loading import import_string

from backend.kernel.errors import UnsupportedService
from backend.settings.conf import service_settings
from objects.users.adapters.base import Adapter
from objects.users.passkeys import PROVIDER as PASSKEY

# Short names of the classes here. A provider's own name comes first, then its option "adapter".
_BUILT_IN = {
    "anonymous": "objects.users.adapters.anonymous.Anonymous",
    "apple": "objects.users.adapters.presets.Apple",
    "facebook": "objects.users.adapters.facebook.Facebook",
    "github": "objects.users.adapters.github.GitHub",
    "google": "objects.users.adapters.presets.Google",
    "microsoft": "objects.users.adapters.presets.Microsoft",
    "oidc": "objects.users.adapters.openid.OpenId",
    "wallet": "objects.users.adapters.wallet.Wallet",
}
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,62}")
_RESERVED = {"mfa", PASSKEY}  # the second factor proves no identity, passkeys have their own way


def adapter_for(provider: str) -> Adapter:
    """Return the adapter of a provider. Errors don't reveal which names exist."""
    adapter = _adapters().get(provider) if isinstance(provider, str) else None
    if adapter is None:
        raise UnsupportedService()
    return adapter


def providers() -> frozenset[str]:
    """The names of the providers that are set up."""
    return frozenset(_adapters())


@cache
def _adapters() -> dict[str, Adapter]:
    configured = service_settings.AUTH_ADAPTERS
    if not isinstance(configured, Mapping):
        raise ImproperlyConfigured("AUTH_ADAPTERS must be an object of providers.")
    enabled = {
        name: options for name, options in configured.items() if options not in (None, False)
    }
    if service_settings.ALLOW_ANONYMOUS_USERS:
        enabled["anonymous"] = {}
    elif "anonymous" in enabled:
        raise ImproperlyConfigured("Anonymous users are allowed by ALLOW_ANONYMOUS_USERS alone.")
    return {name: _make(name, options) for name, options in enabled.items()}


def _make(name: str, options: Any) -> Adapter:
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name in _RESERVED:
        raise ImproperlyConfigured(f"AUTH_ADAPTERS: {name!r} can't be the name of a provider.")
    if options is True:
        options = {}
    if not isinstance(options, Mapping):
        raise ImproperlyConfigured(f"AUTH_ADAPTERS: {name} must be an object of options.")
    kind = options.get("adapter", name)
    path = _BUILT_IN.get(kind, kind) if isinstance(kind, str) else ""
    if "." not in path:
        raise ImproperlyConfigured(
            f"AUTH_ADAPTERS: {name} needs an adapter: {', '.join(sorted(_BUILT_IN))},"
            " or the dotted path of a class."
        )
    try:
        made = import_string(path)
    except ImportError as error:
        raise ImproperlyConfigured(f"AUTH_ADAPTERS: {name}: {error}") from error
    if not (isinstance(made, type) and issubclass(made, Adapter)):
        raise ImproperlyConfigured(f"AUTH_ADAPTERS: {name}: {path} is not an Adapter.")
    return made(name, options)


@register("settings")
def adapters_can_be_made(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """A wrong setting is found by the check and not by the first client."""
    try:
        _adapters()
    except ImproperlyConfigured as error:
        return [Error(str(error), id="objects.E001")]
    return []


def _forget(*, setting: str, **kwargs: Any) -> None:
    if setting == "SERVICE":
        _adapters.cache_clear()


setting_changed.connect(_forget)
