"""Inputs that are nearly right: texts, bytes and JSON values, changed at random in a few places."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random
from typing import Any

from tests.security.hostile import TEXTS

SCALARS: list[Any] = [
    *(None, True, False, 0, -1, 1, 0.5, -0.0, 1e308, 2**31, 2**53 + 1, 2**63, -(2**63) - 1),
    *(10**400, "", " ", "a", "objectId", "1", "-1", "\u0000", "\ud7ff", "\U0010ffff", "\u202e"),
    *("é", "e\u0301", "İ", "ß", "\ufb01", "0x1", "1e3", "NaN", "null", "[", '{"a":1}'),
]
PIECES = [
    *(text for text in TEXTS if len(text) < 100),
    *("\x00", "\n", "\r\n", "\t", "%00", "%2e%2e", "%", "%zz", "%c0%af", "+", "&", "=", ";", "#"),
    *("?", "/", "//", "/../", "\\", '"', "'", ",", ":", ".", "..", "$", "*", "(", ")", "[", "]"),
    *("{", "}", "{1,9}", "|", "^", "-", "~", "@", "<", ">", "\ufeff", "\u2028", "\U0001f600", "²"),
]
_MOST = 4_000
"""Characters beyond which a text isn't made longer."""


class Mutator:
    """Changes to inputs, the same for the same seed.

    ``corpus`` are valid inputs; their parts replace each other.
    """

    def __init__(self, seed: int, corpus: Sequence[Any]) -> None:
        self.random = Random(seed)
        self.corpus = corpus
        values, words = _parts(corpus)
        self.values = [*values, *SCALARS]
        self.words = [*words, "__type", "__op", "objectId", "createdAt", "ACL", "a.b", "$x", "_x"]

    def below(self, number: int) -> int:
        """A number from 0 to ``number`` - 1."""
        return int(self.random.random() * number)

    def pick(self, items: Sequence[Any]) -> Any:
        return items[int(self.random.random() * len(items))]

    def sample(self) -> Any:
        """One of the valid inputs."""
        return self.pick(self.corpus)

    def often(self) -> range:
        """How many changes an input gets."""
        return range(1 + self.below(3))

    # -- texts --------------------------------------------------------------------------------

    def text(self, text: str) -> str:
        """The text with a few changes."""
        for _ in self.often():
            text = self._edit_text(text)
        return text

    def _edit_text(self, text: str) -> str:
        at = self.below(len(text) + 1)
        end = min(len(text), at + self.below(8))
        kind = self.below(9)
        if kind == 0:
            return text[:at] + text[end:]
        if len(text) > _MOST:
            return text[:at]
        if kind == 1:
            return text[:at] + text[at:end] * (2 + self.below(30)) + text[end:]
        if kind == 2:
            return text[:at] + self.pick(self.words) + text[end:]
        if kind == 3:
            return text[:at] + chr(self._character()) + text[at:]
        if kind == 4:
            return text[:at].swapcase() + text[at:]
        if kind == 5:
            return text[end:] + text[:at]
        return text[:at] + self.pick(PIECES) + text[at if kind == 6 else end :]

    def _character(self) -> int:
        code = self.below(256) if self.below(3) else self.below(0x110000)
        return code if not 0xD800 <= code < 0xE000 else 0xFFFD

    def data(self, data: bytes) -> bytes:
        """The bytes with a few changes."""
        for _ in self.often():
            at = self.below(len(data) + 1)
            end = min(len(data), at + self.below(16))
            kind = self.below(6)
            if kind == 0:
                data = data[:at] + data[end:]
            elif kind == 1 and len(data) < _MOST:
                data = data[:at] + data[at:end] * (2 + self.below(30)) + data[end:]
            elif kind == 2:
                data = data[:at] + bytes([self.below(256)]) + data[at + 1 :]
            elif kind == 3:
                data = data[:at]
            else:
                data = data[:at] + self.pick(PIECES).encode() + data[at if kind == 4 else end :]
        return data

    # -- JSON ---------------------------------------------------------------------------------

    def json(self, value: Any) -> Any:
        """The value with a few changes; the given one is left as it is."""
        for _ in self.often():
            value = self._edit(value)
        return value

    def _edit(self, value: Any) -> Any:
        if value and isinstance(value, dict | list) and self.below(4):
            key = self.pick(list(value)) if isinstance(value, dict) else self.below(len(value))
            changed = value.copy()
            changed[key] = self._edit(value[key])
            return changed
        kind = self.below(12)
        if kind < 3:
            return self.pick(self.values)
        if kind == 3:
            return [value]
        if kind == 4:
            return {self.pick(self.words): value}
        if kind == 5:
            return self._nested(value)
        if isinstance(value, dict):
            return self._edit_object(value)
        if isinstance(value, list):
            return self._edit_list(value)
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return self.pick((-value, value + 1, value * 1_000_000_007, str(value)))
        return self.pick(self.values)

    def _nested(self, value: Any) -> Any:
        name = None if self.below(2) else self.pick(self.words)
        for _ in range(self.below(40)):
            value = [value] if name is None else {name: value}
        return value

    def _edit_object(self, value: dict[str, Any]) -> Any:
        changed = dict(value)
        name = self.pick(list(value)) if value else None
        kind = self.below(5)
        if kind == 0 and name is not None:
            del changed[name]
        elif kind == 1 and name is not None:
            changed[self.pick(self.words)] = changed.pop(name)
        elif kind == 2 and name is not None:
            changed[self.text(name)] = changed.pop(name)
        elif kind == 3:
            other = self.pick(self.values)
            changed.update(other if isinstance(other, dict) else {self.pick(self.words): other})
        else:
            changed[self.pick(self.words)] = self.pick(self.values)
        return changed

    def _edit_list(self, value: list[Any]) -> Any:
        at = self.below(len(value) + 1)
        kind = self.below(4)
        if kind == 0:
            return value[:at] + value[at + 1 :]
        if kind == 1 and len(value) < 200:
            return value * (2 + self.below(9))
        return [*value[:at], self.pick(self.values), *value[at:]]


def _parts(values: Iterable[Any]) -> tuple[list[Any], list[str]]:
    """Everything inside of these values, and the names of keys and the texts in them."""
    parts: list[Any] = []
    words: dict[str, None] = {}
    waiting = list(values)
    while waiting:
        value = waiting.pop()
        if isinstance(value, bytes):
            continue
        parts.append(value)
        if isinstance(value, dict):
            words.update(dict.fromkeys(value))
            waiting += value.values()
        elif isinstance(value, list | tuple):
            waiting += value
        elif isinstance(value, str) and len(value) < 50:
            words[value] = None
    return parts, list(words)
