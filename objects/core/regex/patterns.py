r"""Regular expressions with one meaning, in memory and in PostgreSQL.

Perl, JavaScript, Python and PostgreSQL spell and understand patterns differently. So a client's
pattern is parsed here, and each engine is given a pattern made from the parsed one, in which
nothing is left to the engine: case is folded here, and ``. \d \w \s ^ $`` have become sets of
characters and plain assertions.

Accepted: literals, ``. [] [^] | () (?:) (?<name>) (?P<name>) * + ? {m} {m,} {m,n}`` (greedy or
lazy: for the question *is it found* they mean the same), ``^ $ \A \z \Z \b \B``,
``\d \D \w \W \s \S`` (ASCII), ``\t \n \r \f \v \a \e \xHH \x{H…} \uHHHH \u{H…}``, ``\Q…\E``,
comments ``(?#…)``, and the options ``i m s x u``, also inline: ``(?i)``, ``(?i:…)``, ``(?-i:…)``.
``$`` is the very end of the text; ``.`` leaves out the line feed, unless ``s``.

Refused with ``InvalidQuery``: back-references, look-around, atomic groups and possessive
quantifiers. The first two make matching exponential, and the rest is never needed to find a
text. What is left is regular, so RE2 matches it in linear time and PostgreSQL by its automaton.
Compiling isn't linear, so ``automaton`` bounds the automaton before an engine sees the pattern.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import re2

from backend.kernel.errors import InvalidQuery
from objects.core.regex.automaton import automaton_size
from objects.core.regex.character_sets import UNIVERSE, Ranges, complement
from objects.core.regex.parser import (
    Alternatives,
    Assertion,
    Characters,
    Node,
    RegexError,
    Sequence,
    parse,
)

MAX_PATTERN_LENGTH: Final = 1000
_MAX_MEMORY: Final = 2 * 1024 * 1024
"""Of one pattern's automaton, in bytes."""


@dataclass(frozen=True, slots=True)
class Regex:
    """A pattern that was accepted.

    ``literal`` is set when the pattern is plain text, between an anchor at the start and one at the
    end if ``at_start`` and ``at_end``. ``prefix``: all texts found begin with it. ``size`` counts
    the transitions of its automaton.
    """

    postgres: str
    found_in: Callable[[str], bool]
    literal: str | None
    at_start: bool
    at_end: bool
    prefix: str
    size: int


@lru_cache(maxsize=256)
def compile_regex(pattern: str, options: str = "") -> Regex:
    """Read a pattern, or raise ``InvalidQuery`` with the reason (without a place)."""
    if len(pattern) > MAX_PATTERN_LENGTH:
        raise InvalidQuery(f"a pattern has at most {MAX_PATTERN_LENGTH} characters")
    try:
        tree = parse(pattern, options)
        size = automaton_size(tree)
    except RegexError as error:
        raise InvalidQuery(f"bad regular expression: {error}") from None
    items: list[Node] = list(tree.items) if isinstance(tree, Sequence) else [tree]
    at_start = bool(items) and items[0] == Assertion("start")
    at_end = bool(items) and items[-1] == Assertion("end")
    middle = items[at_start : len(items) - at_end]
    prefix = _leading_text(middle) if at_start else ""
    text = _leading_text(middle)
    literal = text if len(text) == len(middle) else None
    if literal is None:
        found_in = _re2_search(_render(tree, _RE2))
    else:
        found_in = _literal_search(literal, at_start, at_end)
    return Regex(_render(tree, _POSTGRES), found_in, literal, at_start, at_end, prefix, size)


def _leading_text(items: list[Node]) -> str:
    letters = []
    for item in items:
        if not isinstance(item, Characters) or not item.is_single:
            break
        letters.append(chr(item.ranges[0][0]))
    return "".join(letters)


def _literal_search(literal: str, at_start: bool, at_end: bool) -> Callable[[str], bool]:
    if at_start and at_end:
        return lambda text: text == literal
    if at_start:
        return lambda text: text.startswith(literal)
    if at_end:
        return lambda text: text.endswith(literal)
    return lambda text: literal in text


def _re2_search(pattern: str) -> Callable[[str], bool]:
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.max_mem = _MAX_MEMORY
    try:
        search = re2.compile(pattern, options).search
    except re2.error:
        raise InvalidQuery("bad regular expression: too large") from None
    return lambda text: search(text) is not None


# --- spelling for the engines --------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Dialect:
    character: Callable[[int], str]
    any_character: str
    assertions: dict[str, str]


_RE2 = _Dialect(
    character=lambda code: chr(code) if _is_plain(code) else f"\\x{{{code:x}}}",
    any_character="(?s:.)",
    assertions={
        "start": r"\A",
        "end": r"\z",
        "line_start": "(?m:^)",
        "line_end": "(?m:$)",
        "word": r"\b",
        "not_word": r"\B",
    },
)
_POSTGRES = _Dialect(
    character=lambda code: (
        chr(code) if _is_plain(code) else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
    ),
    any_character=".",
    assertions={
        "start": r"\A",
        "end": r"\Z",
        "line_start": r"(?:\A|(?<=\n))",
        "line_end": r"(?:\Z|(?=\n))",
        "word": r"\y",
        "not_word": r"\Y",
    },
)


def _is_plain(code: int) -> bool:
    return code < 0x80 and chr(code).isalnum()


def _render(node: Node, dialect: _Dialect) -> str:
    if isinstance(node, Characters):
        return _render_characters(node.ranges, dialect)
    if isinstance(node, Assertion):
        return dialect.assertions[node.kind]
    if isinstance(node, Sequence):
        return "".join(_render(item, dialect) for item in node.items)
    if isinstance(node, Alternatives):
        return "(?:" + "|".join(_render(branch, dialect) for branch in node.branches) + ")"
    item = _render(node.item, dialect)
    if node.most is None and node.least <= 1:
        return f"(?:{item})" + ("+" if node.least else "*")
    most = "" if node.most is None else str(node.most)
    return f"(?:{item}){{{node.least},{most}}}"


def _render_characters(ranges: Ranges, dialect: _Dialect) -> str:
    if ranges == UNIVERSE:
        return dialect.any_character
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return dialect.character(ranges[0][0])
    complementary = complement(ranges)
    negated = len(complementary) < len(ranges)
    parts = [
        dialect.character(low)
        if low == high
        else f"{dialect.character(low)}-{dialect.character(high)}"
        for low, high in (complementary if negated else ranges)
    ]
    return f"[{'^' if negated else ''}{''.join(parts)}]"
