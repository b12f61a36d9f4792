"""Rules of rate limits: the format of the setting ``RATE_LIMITS``.

Plain Python without settings or Redis. ``read`` takes the setting as text or as plain data and
raises ``ValueError`` for anything that it doesn't understand, naming the place.
``backend.limits.book`` finds the rules of a request.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

METHODS = ("GET", "POST", "PUT", "DELETE")
SCOPES = ("ip", "key", "session", "user", "account", "function", "global")

_LOG_IN = ["/login", "/verifyPassword"]
_MAIL = ["/requestPasswordReset", "/verificationEmailRequest"]
_PASSKEYS = ["/functions/registerInit", "/functions/passkeyLoginInit"]
GUESSES: tuple[dict[str, Any], ...] = (
    {"path": _LOG_IN, "per": "ip", "count": 20, "window": 60},
    # A stranger's guesses lock the stranger's address out of the account, not its owner's. The
    # account as a whole has more room, which only guesses from many addresses use up.
    {"path": _LOG_IN, "per": ["ip", "account"], "count": 10, "window": 60},
    {"path": _LOG_IN, "per": "account", "count": 100, "window": 60},
    # Apps sign in by other services here too, with each of their users behind an office's address.
    {
        "path": "/users",
        "methods": ["POST"],
        "byAuthData": False,
        "per": "ip",
        "count": 20,
        "window": 3600,
    },
    {
        "path": "/users",
        "methods": ["POST"],
        "byAuthData": True,
        "per": "ip",
        "count": 60,
        "window": 60,
    },
    {"path": "/challenge", "per": "ip", "count": 30, "window": 60},
    {"path": _PASSKEYS, "per": "ip", "count": 30, "window": 60},
    {"path": "/functions/registerComplete", "per": "ip", "count": 20, "window": 3600},
    {"path": "/functions/passkeyLoginComplete", "per": "ip", "count": 20, "window": 60},
    {"path": _MAIL, "per": "ip", "count": 5, "window": 3600},
    {"path": _MAIL, "per": "account", "count": 5, "window": 3600},
)
"""What guesses passwords or sends mail."""

SOCKETS = "/sockets"
"""The path under which handshakes of ``/ws`` and ``/livequery`` are counted, as GET."""
SUBSCRIPTIONS = "/subscriptions"
"""The path under which LiveQuery's ``subscribe``, ``update`` and ``query`` are counted, as GET."""
_WRITES = ["POST", "PUT", "DELETE"]


def _flood(per_address: int, per_user: int | None, **rule: Any) -> Iterator[dict[str, Any]]:
    """Rules for one kind of request, in a minute."""
    rule = {"window": 60, "approximate": True, **rule}
    yield {**rule, "per": "ip", "count": per_address}
    if per_user is not None:
        yield {**rule, "per": "user", "signedIn": True, "count": per_user}


FLOODS: tuple[dict[str, Any], ...] = (
    *_flood(60_000, 6_000, path="/*"),
    *_flood(30_000, 3_000, path="/*", methods=_WRITES),
    *_flood(600, 300, path="/files/*", methods=["POST", "DELETE"]),
    *_flood(600, None, path="/installations", methods=["POST"]),
    *_flood(3_000, None, path=SOCKETS),
)
"""What a flood meets and an app doesn't."""

DEFAULTS = (*GUESSES, *FLOODS)
_GROUPS = {"defaults": DEFAULTS, "guesses": GUESSES, "floods": FLOODS}

_WORDS = {
    "path": "a path such as /login, or a list of paths",
    "methods": f"a list of {', '.join(METHODS)}",
    "count": "a whole number from 1 to 1,000,000",
    "window": "seconds, more than 0 and at most 2,678,400 (31 days)",
    "per": f"one of {', '.join(SCOPES)}, or a list of them",
    "includeMaster": "true or false",
    "signedIn": "true or false",
    "byAuthData": "true or false",
    "approximate": "true or false",
    "refuseWithoutRedis": "true or false",
    "message": "a text",
}
MOST = 1_000_000
"""The largest limit."""
_LONGEST = 31 * 86_400
_SEGMENT = re.compile(r"[^/*\s?#%]+|\*").fullmatch


@dataclass(frozen=True, slots=True)
class Rule:
    """``count`` requests in any ``window`` milliseconds for each caller as ``per`` tells them
    apart. ``name`` is the same wherever a rule says the same.

    With ``signed_in`` it applies to requests of users alone. ``by_auth_data`` is true for requests
    alone that give ``authData`` and neither a password nor an address, false for all but those.
    With ``names_account`` it applies to requests alone that name an account; no setting says so.
    With ``approximate`` each process counts most requests in its memory
    (``backend.limits.approximate_counts``)."""

    name: str
    paths: tuple[str, ...]
    methods: frozenset[str]
    count: int
    window: int
    per: tuple[str, ...]
    include_master: bool = False
    refuse_without_redis: bool = False
    message: str | None = None
    signed_in: bool = False
    by_auth_data: bool | None = None
    approximate: bool = False
    names_account: bool = False


def read(setting: object) -> tuple[Rule, ...]:
    """The rules of a setting: ``"defaults"``, ``"off"``, or a list as data or as JSON text.

    Inside of a list ``"guesses"`` and ``"floods"`` stand for the two groups of default rules, and
    ``"defaults"`` for both.
    """
    if isinstance(setting, str):
        word = setting.strip()
        if word.lower() in ("off", "defaults"):
            return read([] if word.lower() == "off" else ["defaults"])
        try:
            setting = json.loads(word)
        except (ValueError, RecursionError):
            raise ValueError("must be off, defaults or a JSON list of rules") from None
    if not isinstance(setting, list | tuple):
        raise ValueError("must be off, defaults or a JSON list of rules")
    rules: dict[str, Rule] = {}
    for index, item in enumerate(setting):
        items = _GROUPS.get(item, (item,)) if isinstance(item, str) else (item,)
        for entry in items:
            rule = _rule(entry, f"[{index}]")
            if rule.name in rules:
                raise ValueError(f"[{index}] says what a rule before it says")
            rules[rule.name] = rule
    return tuple(rules.values())


def _rule(item: object, place: str) -> Rule:
    if not isinstance(item, Mapping):
        raise ValueError(f'{place} must be an object, "defaults", "guesses" or "floods"')
    unknown = item.keys() - _WORDS.keys()
    if unknown:
        raise ValueError(f"{place} has an unknown name: {', '.join(sorted(map(str, unknown)))}")
    for name in ("path", "count", "window", "per"):
        if name not in item:
            raise ValueError(f"{place}.{name} is missing: {_WORDS[name]}")

    def refused(name: str) -> ValueError:
        return ValueError(f"{place}.{name} must be {_WORDS[name]}")

    paths = _texts(item["path"])
    if not paths or not all(map(_is_path, paths)):
        raise refused("path")
    methods = _texts(item.get("methods", list(METHODS)))
    if not methods or not set(methods) <= set(METHODS):
        raise refused("methods")
    count = item["count"]
    if type(count) is not int or not 1 <= count <= MOST:
        raise refused("count")
    window = item["window"]
    if type(window) not in (int, float) or not 0.001 <= window <= _LONGEST:
        raise refused("window")
    per = _texts(item["per"])
    if not per or not set(per) <= set(SCOPES):
        raise refused("per")
    for name in ("includeMaster", "signedIn", "byAuthData", "approximate", "refuseWithoutRedis"):
        if type(item.get(name, False)) is not bool:
            raise refused(name)
    if item.get("approximate") and item.get("refuseWithoutRedis"):
        raise ValueError(f"{place}.approximate and refuseWithoutRedis exclude each other")
    message = item.get("message")
    if message is not None and not isinstance(message, str):
        raise refused("message")
    identity = [
        sorted(set(paths)),
        sorted(set(methods)),
        count,
        int(window * 1000),
        sorted(set(per)),
    ]
    identity += [name for name in ("signedIn", "approximate") if item.get(name)]
    if "byAuthData" in item:
        identity.append({"byAuthData": item["byAuthData"]})
    return Rule(
        name=blake2b(json.dumps(identity).encode(), digest_size=8).hexdigest(),
        paths=tuple(dict.fromkeys(paths)),
        methods=frozenset(methods),
        count=count,
        window=int(window * 1000),
        per=tuple(dict.fromkeys(per)),
        include_master=item.get("includeMaster", False),
        refuse_without_redis=item.get("refuseWithoutRedis", False),
        message=message,
        signed_in=item.get("signedIn", False),
        by_auth_data=item.get("byAuthData"),
        approximate=item.get("approximate", False),
    )


def _texts(value: object) -> list[str]:
    """A text or a list of texts, as a list; empty if it is something else."""
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
        return []
    return list(texts)


def _is_path(path: str) -> bool:
    return path.startswith("/") and all(map(_SEGMENT, path[1:].split("/")))
