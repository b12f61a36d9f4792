"""Patterns of clients: translated for RE2 and PostgreSQL within bounds, or refused."""

from __future__ import annotations

from objects.core.regex.patterns import compile_regex
from tests.security.fuzz.mutation import Mutator
from tests.security.fuzz.targets import (
    EXAMPLES,
    accepts,
    check_nothing_long_is_remembered,
    fuzz,
)

CORPUS = [
    "abc",
    "^abc$",
    "^a.*b+c?$",
    "(a|b|ab)*c",
    "(?:a{2,5}){3}",
    "[a-z0-9_]+@[^ ]+\\.(com|org)",
    "\\bword\\b",
    "\\d{4}-\\d{2}\\s\\S\\w\\W\\D",
    "(?i)straße|İ",
    "(?<name>a)(?P<other>b)",
    "\\Qa.b\\E|\\x41\\u0042\\u{1F600}",
    "[[:alpha:]][\\w-]",
    "(?s:.)(?-i:a)(?#note)b",
    "((a?){10}){10}",
    "\\A\\z|\\Z",
    "[^\\x01-\\x7f]",
]
OPTIONS = ["", "i", "m", "s", "x", "u", "imsx"]
TEXTS = ["", "abc", "aaaa\nbbb", "a@b.com", "STRASSE ß İ", "\U0001f600", "a" * 500]
_LARGEST = 200_000
"""Characters of a pattern of 1,000 characters after its translation."""


def use(value: tuple[str, str]) -> None:
    """Compile and search."""
    regex = compile_regex(*value)
    assert len(regex.postgres) <= _LARGEST
    for text in TEXTS:
        matches = regex.found_in(text)
        if matches and regex.prefix:
            assert text.startswith(regex.prefix)


def make(mutator: Mutator) -> tuple[str, str]:
    return mutator.text(mutator.sample())[:1_100], mutator.pick(OPTIONS)


def test_the_examples_are_valid():
    accepts(use, [(pattern, "") for pattern in CORPUS if "[:" not in pattern])


@EXAMPLES
def test_any_pattern_is_searched_for_or_refused(examples):
    fuzz(use, make, CORPUS, examples)


def test_nothing_long_is_remembered():
    check_nothing_long_is_remembered(use, lambda text: (text, ""))
