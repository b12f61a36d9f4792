"""The grammar of the patterns that ``objects.core.regex.patterns`` accepts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, NoReturn, TypeAlias

from objects.core.regex.character_sets import (
    DIGITS,
    SPACE,
    UNIVERSE,
    WORD,
    Ranges,
    complement,
    fold_case,
    union,
)

MAX_REPEAT: Final = 255
"""PostgreSQL's own limit."""
MAX_GROUP_DEPTH: Final = 50

_OPTIONS: Final = frozenset("imsxu")
_CONTROLS: Final = {"t": 9, "n": 10, "v": 11, "f": 12, "r": 13, "a": 7, "e": 27}
_SETS: Final = {"d": DIGITS, "w": WORD, "s": SPACE}
_HEX: Final = frozenset("0123456789abcdefABCDEF")
_LINE_FEED: Final[Ranges] = ((10, 10),)

AssertionKind: TypeAlias = Literal["start", "end", "line_start", "line_end", "word", "not_word"]


class RegexError(ValueError):
    """The pattern is not accepted; the text says why."""


@dataclass(frozen=True, slots=True)
class Characters:
    """One character of a set."""

    ranges: Ranges

    @property
    def is_single(self) -> bool:
        return len(self.ranges) == 1 and self.ranges[0][0] == self.ranges[0][1]


@dataclass(frozen=True, slots=True)
class Assertion:
    """A place in the text."""

    kind: AssertionKind


@dataclass(frozen=True, slots=True)
class Sequence:
    """One after the other."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Alternatives:
    """One of them."""

    branches: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """The item, ``least`` to ``most`` times; ``most`` None: without end."""

    item: Node
    least: int
    most: int | None


Node: TypeAlias = Characters | Assertion | Sequence | Alternatives | Repeat


def parse(pattern: str, options: str) -> Node:
    """Return the tree of a pattern, or ``RegexError``. ``automaton`` limits its size."""
    reader = _Reader(pattern)
    tree = reader.alternatives(frozenset(options) & _OPTIONS, 0)
    if reader.position < len(pattern):
        raise RegexError("unbalanced parenthesis")
    return tree


class _Reader:
    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.position = 0

    # Every method reads from ``position`` on and leaves it behind what was read.

    def peek(self, text: str) -> bool:
        return self.pattern.startswith(text, self.position)

    def take(self, text: str) -> bool:
        if not self.peek(text):
            return False
        self.position += len(text)
        return True

    def next(self) -> str:
        if self.position >= len(self.pattern):
            raise RegexError("unexpected end")
        self.position += 1
        return self.pattern[self.position - 1]

    def until(self, end: str, what: str) -> str:
        stop = self.pattern.find(end, self.position)
        if stop < 0:
            raise RegexError(f"unterminated {what}")
        text = self.pattern[self.position : stop]
        self.position = stop + len(end)
        return text

    def alternatives(self, options: frozenset[str], depth: int) -> Node:
        if depth > MAX_GROUP_DEPTH:
            raise RegexError("groups are nested too deep")
        branches: list[Node] = []
        items: list[Node] = []
        while self.position < len(self.pattern) and not self.peek(")"):
            if self.take("|"):
                branches.append(_sequence(items))
                items = []
            elif self.take("\\Q"):
                stop = self.pattern.find("\\E", self.position)
                stop = len(self.pattern) if stop < 0 else stop
                quoted = self.pattern[self.position : stop]
                self.position = min(stop + 2, len(self.pattern))
                items.extend(_character(ord(letter), options) for letter in quoted)
                self._repeat_last(items, options)
            elif self.peek("(?") and (changed := self._inline_options(options)) is not None:
                options = changed
            elif not self._skip_ignored(options):
                items.append(self._atom(options, depth))
                self._repeat_last(items, options)
        branches.append(_sequence(items))
        return branches[0] if len(branches) == 1 else Alternatives(tuple(branches))

    def _skip_ignored(self, options: frozenset[str]) -> bool:
        if self.take("\\E"):
            return True
        if self.take("(?#"):
            self.until(")", "comment")
            return True
        if "x" not in options:
            return False
        if self.peek("#"):
            stop = self.pattern.find("\n", self.position)
            self.position = len(self.pattern) if stop < 0 else stop + 1
            return True
        if self.pattern[self.position] in " \t\n\r\f\v":
            self.position += 1
            return True
        return False

    def _inline_options(self, options: frozenset[str]) -> frozenset[str] | None:
        """Return the options after ``(?i)``; None, with nothing read, if it's something else."""
        stop = self.position + 2
        while stop < len(self.pattern) and self.pattern[stop] in "imsxu-":
            stop += 1
        if stop == self.position + 2 or not self.pattern.startswith(")", stop):
            return None
        changed = _with_options(options, self.pattern[self.position + 2 : stop])
        self.position = stop + 1
        return changed

    def _atom(self, options: frozenset[str], depth: int) -> Node:
        letter = self.next()
        if letter == "(":
            return self._group(options, depth)
        if letter == "[":
            return self._bracket(options)
        if letter == ".":
            return Characters(UNIVERSE if "s" in options else complement(_LINE_FEED))
        if letter == "^":
            return Assertion("line_start" if "m" in options else "start")
        if letter == "$":
            return Assertion("line_end" if "m" in options else "end")
        if letter == "\\":
            return self._escape(options)
        if letter in "*+?" or (letter == "{" and self._bounds() is not None):
            raise RegexError("nothing to repeat")
        return _character(ord(letter), options)

    def _group(self, options: frozenset[str], depth: int) -> Node:
        if self.take("?"):
            if self.take("<=") or self.take("<!") or self.take("=") or self.take("!"):
                raise RegexError("look-around is not supported; $nor can say what must not match")
            if self.take(">"):
                raise RegexError("atomic groups are not supported")
            if self.take("P<") or self.take("<"):
                name = self.until(">", "group name")
                if not name.isidentifier():
                    raise RegexError("bad group name")
            elif self.take("P=") or self.take("P>") or self.take("&") or self.take("("):
                raise RegexError("back-references are not supported")
            elif not self.take(":"):
                options = _with_options(options, self.until(":", "group"))
        node = self.alternatives(options, depth + 1)
        if not self.take(")"):
            raise RegexError("missing )")
        # A group is one item, also when it holds several: a quantifier counts it as a whole.
        return node

    def _escape(self, options: frozenset[str]) -> Node:
        letter = self.next()
        if letter.lower() in _SETS:
            ranges = _SETS[letter.lower()]
            return Characters(complement(ranges) if letter.isupper() else ranges)
        if letter == "b":
            return Assertion("word")
        if letter == "B":
            return Assertion("not_word")
        if letter == "A":
            return Assertion("start")
        if letter in "zZ":
            return Assertion("end")
        if (letter.isdigit() and letter != "0") or letter in "kg":
            raise RegexError("back-references are not supported")
        return _character(self._escaped_code(letter), options)

    def _escaped_code(self, letter: str) -> int:
        if letter in _CONTROLS:
            return _CONTROLS[letter]
        if letter == "x" or letter == "u":
            if self.take("{"):
                digits = self.until("}", "escape")
            else:
                width = 2 if letter == "x" else 4
                digits = self.pattern[self.position : self.position + width]
                self.position += len(digits)
                if len(digits) != width:
                    raise RegexError("bad escape")
            if not digits or len(digits) > 6 or not set(digits) <= _HEX:
                raise RegexError("bad escape")
            return self._checked_code(int(digits, 16))
        if letter.isascii() and letter.isalnum():
            raise RegexError(f"unknown escape \\{letter}")
        return ord(letter)

    def _checked_code(self, code: int) -> int:
        if 0xD800 <= code < 0xDC00 and self.take("\\u"):
            digits = self.pattern[self.position : self.position + 4]
            low = int(digits, 16) if len(digits) == 4 and set(digits) <= _HEX else 0
            if 0xDC00 <= low < 0xE000:
                self.position += 4
                return 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)
        if not any(first <= code <= last for first, last in UNIVERSE):
            raise RegexError("no text holds such a character")
        return code

    def _bracket(self, options: frozenset[str]) -> Node:
        negated = self.take("^")
        parts: list[Ranges] = []
        first = True
        while first or not self.take("]"):
            first = False
            if self.peek("[:") or self.peek("[.") or self.peek("[="):
                raise RegexError("POSIX classes are not supported")
            low = self._bracket_item()
            is_range = self.peek("-") and not self.pattern.startswith("]", self.position + 1)
            if is_range and isinstance(low, int):
                self.position += 1
                high = self._bracket_item()
                if not isinstance(high, int) or high < low:
                    raise RegexError("bad range")
                parts.append(((low, high),))
            else:
                parts.append(((low, low),) if isinstance(low, int) else low)
        ranges = union(*parts)
        if "i" in options:
            ranges = fold_case(ranges)
        if negated:
            ranges = complement(ranges)
        if not ranges:
            raise RegexError("a class without characters")
        return Characters(ranges)

    def _bracket_item(self) -> int | Ranges:
        letter = self.next()
        if letter != "\\":
            return ord(letter)
        letter = self.next()
        if letter.lower() in _SETS:
            ranges = _SETS[letter.lower()]
            return complement(ranges) if letter.isupper() else ranges
        if letter == "b":
            return 8
        return self._escaped_code(letter)

    def _repeat_last(self, items: list[Node], options: frozenset[str]) -> None:
        while self.position < len(self.pattern) and self._skip_ignored(options):
            pass
        bounds = self._bounds()
        if bounds is None:
            return
        if not items or isinstance(items[-1], Assertion):
            raise RegexError("nothing to repeat")
        least, most = bounds
        if most is not None and most < least:
            raise RegexError("bad repetition")
        if max(least, most or 0) > MAX_REPEAT:
            raise RegexError(f"a repetition counts to {MAX_REPEAT} at most")
        if self.take("+"):
            raise RegexError("possessive quantifiers are not supported")
        self.take("?")
        if self._bounds() is not None:
            raise RegexError("multiple repeat")
        items[-1] = Repeat(items[-1], least, most)

    def _bounds(self) -> tuple[int, int | None] | None:
        """Return the quantifier here; None, with nothing read, if there is none."""
        for sign, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self.take(sign):
                return bounds
        if not self.peek("{"):
            return None
        stop = self.pattern.find("}", self.position)
        least, comma, most = self.pattern[self.position + 1 : stop].partition(",")
        if stop < 0 or not _is_count(least) or not (most == "" or _is_count(most)):
            if stop >= 0 and comma and not least and _is_count(most):
                raise RegexError("write {0,n} for {,n}")
            return None
        self.position = stop + 1
        return int(least), (int(most) if most else None) if comma else int(least)


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 6


def _sequence(items: list[Node]) -> Node:
    return items[0] if len(items) == 1 else Sequence(tuple(items))


def _character(code: int, options: frozenset[str]) -> Characters:
    ranges: Ranges = ((code, code),)
    return Characters(fold_case(ranges) if "i" in options else ranges)


def _with_options(options: frozenset[str], text: str) -> frozenset[str]:
    added, _, removed = text.partition("-")
    if not set(added) | set(removed) <= _OPTIONS:
        _unknown_group()
    return (options | set(added)) - set(removed)


def _unknown_group() -> NoReturn:
    raise RegexError("unknown kind of group")
