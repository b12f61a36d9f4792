"""The parameters of a find or a get, checked and in the words of the tree.

Parameters come as text (a query string) or as JSON values (a body with ``_method: "GET"``).
A parameter that isn't known, and a value that isn't what the parameter takes, are refused:
nothing is guessed and nothing ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import msgspec

from backend.kernel.errors import InvalidJSON, InvalidQuery
from backend.kernel.texts.shown import shown
from objects.core.names import check_key_path
from objects.core.query.brackets import nested
from objects.core.query.parser import parse_order, parse_where
from objects.core.query.tree import Everything, FindOptions, OrderKey, Path

# Replicas, hints and comments are advice, which may be left without an effect.
_ADVICE: Final = frozenset(
    {
        "readPreference",
        "includeReadPreference",
        "subqueryReadPreference",
        "hint",
        "comment",
        "className",
    }
)
_FIND: Final = _ADVICE | {
    "where",
    "limit",
    "skip",
    "count",
    "order",
    "keys",
    "excludeKeys",
    "include",
    "includeAll",
    "redirectClassNameForKey",
    "explain",
}
_GET: Final = _ADVICE - {"hint", "comment"} | {"keys", "excludeKeys", "include", "includeAll"}
INTERNAL_FIELDS: Final = frozenset(
    {
        "_email_verify_token",
        "_email_verify_token_expires_at",
        "_perishable_token",
        "_perishable_token_expires_at",
        "_failed_login_count",
        "_account_lockout_expires_at",
        "_password_changed_at",
        "_password_history",
        "_session_token",
        "_tombstone",
    }
)
"""Parse Server's fields of users that the master key may query. No object has them here."""
_NO_ADVICE: Final[Mapping[str, Any]] = MappingProxyType({})
_MAX_SKIP: Final = 2**31 - 1
_MOST_NAMES: Final = 2_000
"""Names of one parameter: as many as a class can have fields."""
_SCORE: Final = "$score"
_PLAIN_GET: Final = FindOptions(where=Everything(), limit=1)
_FLAGS: Final = {"1": True, "true": True, "0": False, "false": False, "": False}


@dataclass(frozen=True, slots=True)
class FindLimits:
    """How much one query may ask for."""

    default_limit: int = 100
    max_limit: int = 10_000
    include_depth: int = 10
    include_count: int = 100


def parse_find_options(
    params: Mapping[str, Any], limits: FindLimits, *, is_master: bool = False
) -> FindOptions:
    """Return the options of a find. With the master key, a ``where`` may name internal fields.

    Raises ``InvalidQuery`` (102) for unknown parameters and bad numbers, ``InvalidKeyName`` (105)
    for names, ``InvalidJSON`` (107) for a ``where`` that is not JSON, and what ``parse_where``
    raises. ``limit`` is capped silently.
    """
    params = nested(params)
    for name in params:
        if name not in _FIND:
            raise InvalidQuery(f"Invalid parameter for query: {shown(name)}")
    sent = _sent(params, limits)
    redirect_key = params.get("redirectClassNameForKey")
    if redirect_key is not None:
        redirect_key = check_key_path(_text("redirectClassNameForKey", redirect_key))[0]
    where = _json_where(params.get("where"))
    internal_fields = INTERNAL_FIELDS if is_master else frozenset()
    return FindOptions(
        where=Everything()
        if where is None
        else parse_where(where, internal_fields=internal_fields),
        limit=min(_whole("limit", params.get("limit"), limits.default_limit), limits.max_limit),
        skip=_whole("skip", params.get("skip"), 0),
        order=_order(params.get("order")),
        keys=sent.keys,
        exclude_keys=sent.exclude_keys,
        include=sent.include,
        include_all=sent.include_all,
        count=_flag("count", params.get("count")),
        redirect_key=redirect_key,
        explain=is_explained(params),
        score=sent.score,
        raw_where=where,
        advice=_advice(params),
    )


def _advice(params: Mapping[str, Any]) -> Mapping[str, Any]:
    if _ADVICE.isdisjoint(params):
        return _NO_ADVICE
    return {name: params[name] for name in params if name in _ADVICE and name != "className"}


def parse_get_options(params: Mapping[str, Any], limits: FindLimits) -> FindOptions:
    """Return the options of a get by id: only what shapes the one object is allowed."""
    if not params:
        return _PLAIN_GET
    params = nested(params)
    for name in params:
        if name not in _GET:
            raise InvalidQuery(f"Improper encode of parameter: {shown(name)}")
    sent = _sent(params, limits)
    return FindOptions(
        where=Everything(),
        limit=1,
        keys=sent.keys,
        exclude_keys=sent.exclude_keys,
        include=sent.include,
        include_all=sent.include_all,
        advice=_advice(params),
    )


def _json_where(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if not value:
        return None
    try:
        return msgspec.json.decode(value)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        raise InvalidJSON("where parameter is not valid JSON") from None


def _whole(name: str, value: Any, default: int) -> int:
    if value is None or value == "":
        return default
    if isinstance(value, str):
        text = value.removeprefix("-")
        if not (text.isascii() and text.isdecimal() and len(text) <= 12):
            raise InvalidQuery(f"{name}: expected a whole number")
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidQuery(f"{name}: expected a whole number")
    if not 0 <= value <= _MAX_SKIP:
        raise InvalidQuery(f"{name}: expected a number from 0 to {_MAX_SKIP}")
    return value


def _flag(name: str, value: Any) -> bool:
    if value is None or isinstance(value, bool):
        return bool(value)
    flag = _FLAGS.get(str(value).lower()) if isinstance(value, str | int) else None
    if flag is None:
        raise InvalidQuery(f"{name}: expected true or false")
    return flag


def is_explained(params: Mapping[str, Any]) -> bool:
    """Whether a plan is requested: ``explain`` is a flag, or one of MongoDB's verbosities."""
    return params.get("explain") not in (None, False, 0, "", "0", "false")


def _order(value: Any) -> tuple[OrderKey, ...]:
    words = _words("order", value)
    return parse_order(",".join(words)) if words else ()


class _Sent(NamedTuple):
    """What is sent of each object, as ``FindOptions`` has it."""

    keys: frozenset[Path] | None
    exclude_keys: frozenset[Path]
    include: tuple[Path, ...]
    include_all: bool
    score: bool


def _sent(params: Mapping[str, Any], limits: FindLimits) -> _Sent:
    words = None if params.get("keys") is None else _words("keys", params["keys"])
    keys = None if words is None else _paths(word for word in words if word != _SCORE)
    exclude_keys = _paths(_words("excludeKeys", params.get("excludeKeys")))
    included = _words("include", params.get("include"), max(_MOST_NAMES, limits.include_count))
    include_all = _flag("includeAll", params.get("includeAll")) or "*" in included
    requested = {check_key_path(word) for word in included if word != "*"}
    # Of a dotted key the way to it has to be included as well.
    requested |= {
        (path[0], *path[1 : len(path) - 1])
        for path in (*(keys or ()), *exclude_keys)
        if len(path) > 1
    }
    include: set[Path] = {
        (path[0], *path[1:depth]) for path in requested for depth in range(1, len(path) + 1)
    }
    if len(include) > limits.include_count:
        raise InvalidQuery(f"include: more than {limits.include_count} paths")
    if any(len(path) > limits.include_depth for path in include):
        raise InvalidQuery(f"include: deeper than {limits.include_depth} levels")
    return _Sent(keys, exclude_keys, tuple(sorted(include)), include_all, _SCORE in (words or ()))


def _paths(words: Iterable[str]) -> frozenset[Path]:
    return frozenset(map(check_key_path, words))


def _words(name: str, value: Any, most: int = _MOST_NAMES) -> list[str]:
    """Return the names of a comma list; SDKs send some of them as arrays.

    Raises ``InvalidQuery`` if there are more than ``most``.
    """
    if value is None:
        return []
    if isinstance(value, str) and value.startswith("["):
        try:
            value = msgspec.json.decode(value)
        except (msgspec.DecodeError, RecursionError, UnicodeError):
            raise InvalidJSON(f"{name}: not valid JSON") from None
    if isinstance(value, list):
        value = ",".join(_text(name, word) for word in value)
    text = _text(name, value)
    # Counted first: to read a hundred thousand names takes a second.
    if text.count(",") >= most:
        raise InvalidQuery(f"{name}: more than {most:,} names")
    return [word.strip() for word in text.split(",") if word.strip()]


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidQuery(f"{name}: expected text")
    return value
