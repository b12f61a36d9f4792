"""Providers that users may sign in by.

``AUTH_ADAPTERS`` is JSON, ``{"google": {"clientIds": ["…"]}, …}``. The well-known providers have
settings of their own, which need no JSON; ``AUTH_ADAPTERS`` replaces what these say of one.
"""

from __future__ import annotations

import json
from typing import Any

from backend.settings import environment
from backend.settings.declaration import Area, Setting, flag, text, words
from backend.settings.environment import BadSetting


def _object(name: str, default: dict[str, Any]) -> dict[str, Any]:
    """Read a JSON object. No error repeats its text: it may hold secrets."""
    try:
        value = json.loads(environment.text(name) or "{}")
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise BadSetting(f"{name} must be a JSON object.")
    return value


def _adapters(name: str, default: dict[str, Any]) -> dict[str, Any]:
    """Return the options of each provider by its name in ``authData``."""
    adapters: dict[str, Any] = {}
    for provider in ("google", "apple", "microsoft"):
        if client_ids := environment.words(f"{provider.upper()}_CLIENT_IDS"):
            adapters[provider] = {"clientIds": client_ids}
    if "microsoft" in adapters:
        adapters["microsoft"]["tenants"] = list(Providers.MICROSOFT_TENANTS.read())
    if facebook := Providers.FACEBOOK_APP_ID.read():
        secret = Providers.FACEBOOK_APP_SECRET.read()
        adapters["facebook"] = {"appId": facebook} | ({"appSecret": secret} if secret else {})
    if github := Providers.GITHUB_CLIENT_ID.read():
        secret = environment.required("GITHUB_CLIENT_SECRET", "GITHUB_CLIENT_ID needs it.")
        adapters["github"] = {"clientId": github, "clientSecret": secret}
    if Providers.WALLET_SIGN_IN.read():
        adapters["wallet"] = {"rpcUrls": Providers.WALLET_RPC_URLS.read()}
    return adapters | _object(name, default)


class Providers(Area):
    """Settings of the well-known providers, which ``SignIn`` puts together."""

    title = "Signing in by other services"

    GOOGLE_CLIENT_IDS = words("client ids of your apps, separated by commas")
    APPLE_CLIENT_IDS = words("client ids of your apps, separated by commas")
    MICROSOFT_CLIENT_IDS = words("client ids of your apps, separated by commas")
    MICROSOFT_TENANTS = words("tenants as their ids", shown="any tenant")
    FACEBOOK_APP_ID = text("the id of your app")
    FACEBOOK_APP_SECRET = text("for access tokens; limited login needs none", secret=True)
    GITHUB_CLIENT_ID = text("of the OAuth app")
    GITHUB_CLIENT_SECRET = text("of the OAuth app", secret=True)
    WALLET_SIGN_IN = flag(False, "Sign-In with Ethereum")
    WALLET_RPC_URLS: Setting[dict[str, Any]] = Setting(
        {},
        "JSON, an RPC address for each chain id: contract wallets may sign in",
        _object,
        secret=True,
    )


class SignIn(Area):
    """All providers."""

    title = "Signing in by other services"

    AUTH_ADAPTERS: Setting[dict[str, Any]] = Setting(
        {},
        "JSON, options of providers by name; replaces what the other settings say of a provider",
        _adapters,
        secret=True,
    )
