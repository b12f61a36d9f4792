"""How values of one word each, and tuples and lists of them, become JSON text.

The rules of the JSON are those of ``solidity``. A value has to be one of its type: neither
a 2 is a bool, nor what has more digits than its type a number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod
from typing import Final, NamedTuple

from chain.core.abi.types import WIDEST_NUMBER, Type, keys_of

WORD: Final = 32  # bytes
MOST_IN_PLACE: Final = 1024  # words of a value without texts and lists of any length

_NATIVE: Final = {1: "b", 2: "h", 4: "i", 8: "q"}  # bytes of a number, and what struct calls them


class Word(NamedTuple):
    """How a value stands in its word, as Python with the word's number for ``{n}``.

    ``code`` divides the word for ``struct`` into what ``names`` says: the value and the padding.
    ``fault`` is true of a word that is no value of the type, ``value`` is what the JSON has between
    ``opening`` and the quote that closes it. Without a ``code`` the value is made of the topic,
    ``t{n}``.
    """

    code: str
    names: str
    fault: str
    value: str
    opening: str = ""


Layout = list[str | Word]
"""The JSON of a value: its words, and the text between them."""


def is_dynamic(type_: Type) -> bool:
    """Whether values of the type stand behind an offset."""
    if None in type_.lengths or (type_.base in ("bytes", "string") and not type_.size):
        return True
    return any(is_dynamic(part.type) for part in type_.parts)


def is_hashed(type_: Type) -> bool:
    """Whether a topic holds the hash of such a value in place of it."""
    return bool(type_.lengths or type_.parts) or is_dynamic(type_)


def words_in_place(type_: Type) -> int:
    """How many words a value takes where it stands: all of them, or that of its offset."""
    if is_dynamic(type_):
        return 1
    own = sum(words_in_place(part.type) for part in type_.parts) or 1
    return own * prod(length or 0 for length in type_.lengths)


def is_readable(type_: Type) -> bool:
    """Whether a value can be read: what stands in place, in each item as well, has a limit."""
    if not is_dynamic(type_):
        return words_in_place(type_) <= MOST_IN_PLACE
    if type_.lengths:
        return is_readable(type_.item)
    return all(is_readable(part.type) for part in type_.parts)


# -- Layouts --------------------------------------------------------------------------------------


def layout_of(type_: Type) -> Layout:
    """For a type that isn't dynamic."""
    if type_.lengths:
        item = layout_of(type_.item)
        return ["[", *_between(",", [item] * (type_.lengths[-1] or 0)), "]"]
    if type_.parts:
        fields = zip(
            keys_of(type_.parts), (layout_of(part.type) for part in type_.parts), strict=True
        )
        return ["{", *layout_of_fields(fields), "}"]
    return [_word_of(type_)]


def layout_of_fields(fields: Iterable[tuple[str, Layout]]) -> Layout:
    """Values beside each other, each under its key, as they stand in an object."""
    return [*_between(",", ([f'"{key}":', *layout] for key, layout in fields))]


def topic_layout(type_: Type) -> Layout:
    """For a value in a topic."""
    if is_hashed(type_):
        return [_HASH]
    return [_TOPIC_ADDRESS if type_.base == "address" else _word_of(type_)]


def _between(separator: str, layouts: Iterable[Layout]) -> Iterator[str | Word]:
    for n, layout in enumerate(layouts):
        if n:
            yield separator
        yield from layout


_PADDED: Final = "p{n}, v{n}"
_HASH: Final = Word("32s0s", "v{n}, p{n}", "", "v{n}.hex()", '"0x')
_TOPIC_ADDRESS: Final = Word("", "", "", "topic_address(t{n})", '"')


def _word_of(type_: Type) -> Word:
    if type_.base == "address":
        return Word("12s20s", _PADDED, "p{n} != Z12", "address(v{n})", '"')
    if type_.base == "bool":
        return Word("31sB", _PADDED, "p{n} != Z31 or v{n} > 1", "BOOL[v{n}]")
    if type_.base in ("bytes", "function"):
        padding = WORD - type_.size
        fault = f"p{{n}} != Z{padding}" if padding else ""
        return Word(f"{type_.size}s{padding}s", "v{n}, p{n}", fault, "v{n}.hex()", '"0x')
    return _number(type_)


def _number(type_: Type) -> Word:
    size = type_.size // 8
    padding = WORD - size
    native = _NATIVE.get(size)
    opening = "" if type_.size <= WIDEST_NUMBER else '"'
    if type_.base == "uint":
        code = native.upper() if native else f"{size}s"
        value = "v{n}" if native else "number(v{n})"
        fault = f"p{{n}} != Z{padding}"
    else:
        code = native or f"{size}s"
        value = "v{n}" if native else "signed(v{n})"
        is_negative = "v{n} < 0" if native else "v{n}[0] > 127"
        fault = f"p{{n}} != (F{padding} if {is_negative} else Z{padding})"
    return Word(f"{padding}s{code}", _PADDED, fault if padding else "", value, opening)
