"""Keys of the service and of its clients."""

from __future__ import annotations

from typing import Final

from backend.settings import environment, former_keys
from backend.settings.areas.http import Http, is_local
from backend.settings.areas.processes import data_dir
from backend.settings.declaration import Area, Setting, networks, text, words
from backend.settings.environment import BadSetting
from backend.settings.former_keys import Former

_MADE: Final = "made by `script/server`, required elsewhere"
_SHORTEST: Final = 12  # characters


def _key(name: str, default: str) -> str:
    hint = (
        f"script/server makes it at its first start and stores it in DATA_DIR ({data_dir()}), which"
        " has none. Correct DATA_DIR, or set the key in the environment."
    )
    return environment.required(name, hint)


def _secret_key(name: str, default: str) -> str:
    key = _key(name, default)
    if len(key) < _SHORTEST and not is_local(Http.PUBLIC_URL.read()):
        raise BadSetting(
            f"{name} has fewer than {_SHORTEST} characters, which can be guessed, and"
            " PUBLIC_URL isn't on this machine: set a longer one."
        )
    return key


def _maintenance_key(name: str, default: str) -> str:
    key = environment.text(name, default)
    if not key:
        return key
    if key == environment.text("MASTER_KEY", ""):
        raise BadSetting(f"{name} and MASTER_KEY must be different.")
    if len(key) < _SHORTEST and not is_local(Http.PUBLIC_URL.read()):
        raise BadSetting(
            f"{name} has fewer than {_SHORTEST} characters, which can be guessed, and"
            " PUBLIC_URL isn't on this machine: set a longer one."
        )
    return key


def _former_keys(name: str, default: Former) -> Former:
    try:
        return former_keys.parse(environment.words(name))
    except ValueError as error:
        raise BadSetting(f"{name}{error}.") from None


class Secrets(Area):
    """Keys that only Django's settings have."""

    title = "Keys"

    SECRET_KEY = Setting(
        "",
        f"signs and encrypts what the service stores; {_SHORTEST} characters or more where"
        " `PUBLIC_URL` isn't on this machine",
        _secret_key,
        secret=True,
        shown=_MADE,
    )
    SECRET_KEY_FALLBACKS = words(
        "former secret keys: what was signed or encrypted with them is still read", secret=True
    )


class Keys(Area):
    """Keys of clients."""

    title = "Keys"

    APP_ID = Setting("", "the application's id, which every request names", _key, shown=_MADE)
    REST_API_KEY = Setting("", "the key of REST clients", _key, secret=True, shown=_MADE)
    MASTER_KEY = Setting(
        "",
        f"may do everything; {_SHORTEST} characters or more where `PUBLIC_URL` isn't on this"
        " machine",
        _secret_key,
        secret=True,
        shown=_MADE,
    )
    JAVASCRIPT_KEY = text("a further client key", shown="made with the others", secret=True)
    CLIENT_KEY = text("a further client key", secret=True)
    READ_ONLY_MASTER_KEY = text("reads as master, writes nothing", secret=True)
    MAINTENANCE_KEY = Setting(
        "",
        "for imports and exports: as the master key for objects, and it sets and reads what the"
        " service alone writes otherwise ([rest.md](rest.md#the-maintenance-key))",
        _maintenance_key,
        secret=True,
        shown="made with the others",
    )
    FORMER_KEYS: Setting[Former] = Setting(
        {},
        "replaced keys that are still valid: `MASTER_KEY=OLD@2026-12-24T00:00:00Z,…`;"
        " `script/manage rotate_keys --grace` writes it",
        _former_keys,
        secret=True,
    )
    MASTER_KEY_IPS = networks(
        "addresses and networks that may use a master key",
        ("0.0.0.0/0", "::/0"),
        shown="any address",
    )
    MAINTENANCE_KEY_IPS = networks(
        "addresses and networks that may use the maintenance key",
        ("127.0.0.1/32", "::1/128"),
        shown="this machine",
    )
    TRUSTED_PROXIES = networks(
        "addresses and networks of your proxies, whose `X-Forwarded-…` headers count; from others"
        " they are dropped. Without your load balancer in it, all clients share its address and"
        " [its limits](rate-limits.md). See [server.md](server.md#your-own-proxy)"
    )
