"""How the size of a pattern's automaton is counted, and what is refused for it."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings

from objects.core.regex.automaton import MAX_TRANSITIONS, automaton_size
from objects.core.regex.parser import RegexError, parse
from tests.objects.core.regex_patterns import patterns

ORDINARY = {
    "email": r"^[a-zA-Z0-9.!#$%&'*+/=?^_`{|}~-]+@[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
    r"(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*$",
    "url": r"^https?:\/\/(www\.)?[-a-zA-Z0-9@:%._\+~#=]{1,255}\.[a-zA-Z0-9()]{1,6}\b"
    r"([-a-zA-Z0-9()@:%_\+.~#?&//=]*)$",
    "ipv6": r"(([0-9a-fA-F]{1,4}:){7,7}[0-9a-fA-F]{1,4}|([0-9a-fA-F]{1,4}:){1,7}:|"
    r"([0-9a-fA-F]{1,4}:){1,4}(:[0-9a-fA-F]{1,4}){1,3}|:((:[0-9a-fA-F]{1,4}){1,7}|:))",
    "date": r"^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T\d{2}:\d{2}(:\d{2}(\.\d{1,3})?)?Z$",
    "words": "(?i)\\b(" + "|".join(["apple", "banana", "cherry", "dates", "elder"] * 8) + ")\\b",
    "nearby words": r"\bfoo\W+(?:\w+\W+){1,60}?bar\b",
    "distance": ".{0,200}foo.{0,200}bar",
    "uuid": r"^[0-9a-f]{8}-[0-9a-f]{4}-[1-5][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$",
    "long text": "(?i)" + "lorem ipsum dolor " * 50,
}

TOO_LARGE = [
    "((a?){10}){100}",
    "(a?){255}",
    "(a*){255}",
    "((a*b*c*)*){100}",
    "(\\ba?){100}",
    "(?m)(^|$|a){20}",
    "(\\b|^|$|\\B|a){6}",
    "((\\b|^|$|\\B|a)*b?){6}",
    "b(?:(?:$(?:^)){8,}){0,223}",
    "(?:\\A$|(?m:$)){38}",
    "".join(f"[^{chr(0x400 + number)}]?" for number in range(120)),
    "((((a{200}){0}|(a?){255}){0}){0}){0}",
    "(((){200}){200}){200}",
    "(((a{100}){100}){100}){0}",
]


def size(pattern: str) -> int:
    return automaton_size(parse(pattern, ""))


@pytest.mark.parametrize("pattern", ORDINARY.values(), ids=ORDINARY)
def test_ordinary_patterns_are_accepted(pattern):
    assert size(pattern) <= MAX_TRANSITIONS


@pytest.mark.parametrize("pattern", TOO_LARGE)
def test_patterns_with_large_automatons_are_refused(pattern):
    with pytest.raises(RegexError, match="too large"):
        size(pattern)


@pytest.mark.parametrize(
    ("pattern", "transitions"),
    [("abc", 2), ("a*", 1), ("ab|cd", 2), ("a{4}", 3), ("a?b?c?", 3), ("(a|b)(c|d)", 4)],
)
def test_transitions_are_those_of_the_position_automaton(pattern, transitions):
    positions = ranges = sum(letter.isalpha() for letter in pattern.replace("a{4}", "aaaa"))
    assert transitions <= size(pattern) <= transitions + positions + ranges + 2


@settings(max_examples=500)
@given(patterns)
def test_repeating_a_pattern_never_makes_it_smaller(pattern):
    try:
        before = size(pattern)
    except RegexError:
        return
    with suppress(RegexError):
        assert size(f"(?:{pattern}|x){{3}}") >= before
