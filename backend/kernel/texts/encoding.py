"""Texts and JSON on their way out of the process: log lines, errors, statuses, frames, emails,
webhooks, pages.

Python texts can hold halves of surrogate pairs, as ``json.loads`` returns them for a text that was
cut in the middle of an emoji. UTF-8 can't. They are replaced here, and nowhere else.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final, TypeAlias

import msgspec

from backend.kernel.errors import InvalidJSON
from backend.kernel.interruptions import is_from_outside

REPLACING: Final = "service.replacing"
"""An error handler for ``encode`` and for streams: halves of surrogate pairs become U+FFFD, or
the character of their pair, and in other encodings a question mark."""
LONGEST_TEXT: Final = 10_000
"""Characters of an error's text, or a message of the deployment's code."""
_DEEPEST: Final = 200
# What msgspec raises, with those of generators, of sets in it and the like.
_REFUSALS: Final = (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError)


def _replace(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    part = error.object[error.start : error.end]
    if error.encoding.lower() not in ("utf-8", "utf8"):
        return "?" * len(part), error.end
    halves = part.encode("utf-16-le", "surrogatepass")
    return halves.decode("utf-16-le", "replace").encode(), error.end


codecs.register_error(REPLACING, _replace)


def encode_text(text: str) -> bytes:
    """Return a text as UTF-8. Never raises."""
    return text.encode("utf-8", REPLACING)


def clean_text(text: str) -> str:
    """Return a text that UTF-8 can hold."""
    return text if text.isascii() else encode_text(text).decode()


def shortened(text: str, longest: int = LONGEST_TEXT) -> str:
    """Return a text of at most ``longest`` characters; the last one of a longer text is "…"."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def describe(value: object) -> str:
    """Return ``str(value)``, or the value's type if it has no text. Never raises."""
    if type(value) is str:
        return value
    try:
        return str.__str__(str(value))
    except BaseException as error:
        if is_from_outside(error):
            raise
        return f"<{type(value).__name__} without a text: {type(error).__name__}>"


def presentable(text: object) -> str:
    """Return a value of the deployment's code as a text that clients and tables can hold."""
    # PostgreSQL can't store NUL.
    return clean_text(shortened(describe(text)).replace("\0", "\N{REPLACEMENT CHARACTER}"))


def json_encoder(**options: Any) -> Callable[[Any], bytes]:
    """Return a function that returns values as JSON; texts are encoded as by ``encode_text``.

    The function raises ``InvalidJSON``, which names the place, for values that JSON can't hold.
    ``options`` are those of ``msgspec.json.Encoder``.
    """
    encode: Callable[[Any], bytes] = msgspec.json.Encoder(**options).encode

    def encode_value(value: Any) -> bytes:
        try:
            return encode(value)
        except _REFUSALS:
            pass
        try:
            return encode(_encodable(value, None, 0))
        except _REFUSALS as error:
            raise InvalidJSON(f"The value can't be sent as JSON: {type(error).__name__}.") from None

    return encode_value


encode_json: Final = json_encoder()


_Place: TypeAlias = "tuple[_Place, Any] | None"
"""The last step to a value and the place before it. Texts are made for errors alone."""


def _encodable(value: Any, place: _Place, depth: int) -> Any:
    """Return the value with texts that can be encoded. Raises ``InvalidJSON``."""
    if depth > _DEEPEST:
        raise InvalidJSON(f"{_text(place)}: nested more than {_DEEPEST} levels deep.")
    if value is None or isinstance(value, bool | float | bytes | msgspec.Raw):
        return value
    if isinstance(value, str):
        return clean_text(str.__str__(value))
    if isinstance(value, dict):
        return {
            _key(name, place, depth): _encodable(item, (place, name), depth + 1)
            for name, item in value.items()
        }
    if isinstance(value, list | tuple | set | frozenset):
        return [_encodable(item, (place, number), depth + 1) for number, item in enumerate(value)]
    try:
        if isinstance(value, int | Decimal):
            str(value)
            return value
        plain = msgspec.to_builtins(value)
    except Exception as error:
        what = f"value of the type {type(value).__name__}"
        if isinstance(value, int):
            what = "number with so many digits"
        raise InvalidJSON(f"{_text(place)}: a {what} can't be sent as JSON.") from error
    return _encodable(plain, place, depth + 1)


def _key(name: Any, place: _Place, depth: int) -> Any:
    key = _encodable(name, place, depth)
    if isinstance(key, list | dict):
        raise InvalidJSON(
            f"{_text(place)}: a key of the type {type(name).__name__} can't be sent as JSON."
        )
    return key


def _text(place: _Place) -> str:
    """Return a place as errors show it: ``items[3].name``."""
    steps: list[str] = []
    while place is not None:
        place, step = place
        steps.append(f"[{step}]" if type(step) is int else f".{shortened(describe(step), 200)}")
    text = "".join(reversed(steps)).removeprefix(".")
    return clean_text(shortened(text, 200)) or "The value"
