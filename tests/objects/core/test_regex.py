"""One meaning of regular expressions: what is accepted, what it finds, and that it can't hang."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.kernel.errors import InvalidQuery
from objects.core.regex.patterns import compile_regex


def matches(pattern: str, text: str, options: str = "") -> bool:
    return compile_regex(pattern, options).found_in(text)


@pytest.mark.parametrize(
    ("pattern", "options", "text", "expected"),
    [
        ("", "", "anything", True),
        ("b", "", "abc", True),
        ("^b", "", "abc", False),
        ("^\\Qa.b\\E", "", "a.bc", True),
        ("^\\Qa.b\\E", "", "axbc", False),
        ("\\Qa\\\\E\\Eb", "", "a\\\\Eb", False),
        ("\\Q(", "", "x(y", True),
        ("c$", "", "abc", True),
        ("c$", "", "abc\n", False),
        ("c$", "m", "abc\nd", True),
        ("^d", "m", "abc\nd", True),
        ("^d", "", "abc\nd", False),
        ("a.b", "", "a\nb", False),
        ("a.b", "s", "a\nb", True),
        ("ABC", "i", "xabcx", True),
        ("É", "i", "é", True),
        ("É", "", "é", False),
        ("[à-ý]", "i", "É", True),
        ("k", "i", "\N{KELVIN SIGN}", True),
        ("[^a]", "i", "A", False),
        ("a b # comment", "x", "ab", True),
        ("a\\ b", "x", "a b", True),
        ("[a b]", "x", " ", True),
        ("(?i)ab", "", "AB", True),
        ("a(?i)b", "", "AB", False),
        ("a(?i:b)c", "", "aBc", True),
        ("a(?i:b)c", "", "aBC", False),
        ("(?i)a(?-i)b", "", "AB", False),
        ("(?#note)a", "", "a", True),
        ("(?<name>a)(?P<other>b)", "", "ab", True),
        ("a{2,3}$", "", "xaaa", True),
        ("^a{2}$", "", "aaa", False),
        ("^a{2,}?$", "", "aaaa", True),
        ("a{x}", "", "a{x}", True),
        ("^(a|bc)*$", "", "abcbca", True),
        ("\\d\\D\\w\\W\\s\\S", "", "1x_- y", True),
        ("\\d", "", "\N{ARABIC-INDIC DIGIT ONE}", False),
        ("\\w", "", "é", False),
        ("\\bfoo\\b", "", "a foo.", True),
        ("\\bfoo\\b", "", "afoo", False),
        ("\\Bo", "", "foo", True),
        ("\\x41\\u0042\\u{43}\\x{1F600}", "", "ABC\U0001f600", True),
        ("\\ud83d\\ude00", "", "\U0001f600", True),
        ("^.$", "", "\U0001f600", True),
        ("[\\]\\-a]", "", "]", True),
        ("[]a]", "", "]", True),
        ("[a-]", "", "-", True),
        ("[\\w-]+", "", "-", True),
        ("[\\b]", "", "\b", True),
        ("\\/\\.", "", "/.", True),
        ("\\A^a\\z", "", "a", True),
        ("a|", "", "b", True),
        ("{", "", "{", True),
    ],
)
def test_a_pattern_is_found_or_not(pattern, options, text, expected):
    assert matches(pattern, text, options) is expected


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(", "missing )"),
        (")", "unbalanced parenthesis"),
        ("[a", "unexpected end"),
        ("*a", "nothing to repeat"),
        ("^*", "nothing to repeat"),
        ("a**", "multiple repeat"),
        ("a{3,2}", "bad repetition"),
        ("a{256}", "a repetition counts to 255 at most"),
        ("((a{100}){100}){100}", "too large"),
        ("(a)\\1", "back-references are not supported"),
        ("(?P=a)", "back-references are not supported"),
        ("(?=a)", "look-around is not supported"),
        ("(?<!a)b", "look-around is not supported"),
        ("(?>a)", "atomic groups are not supported"),
        ("a++", "possessive quantifiers are not supported"),
        ("\\p{L}", "unknown escape"),
        ("\\", "unexpected end"),
        ("\\x4", "bad escape"),
        ("\\u{110000}", "no text holds such a character"),
        ("\\x00", "no text holds such a character"),
        ("\\ud800", "no text holds such a character"),
        ("\\ud800\\uzzzz", "no text holds such a character"),
        ("[b-a]", "bad range"),
        ("[[:alpha:]]", "POSIX classes are not supported"),
        ("[^\\s\\S]", "a class without characters"),
        ("(?z)a", "unterminated group"),
        ("(?z:a)", "unknown kind of group"),
        ("(?<1>a)", "bad group name"),
        ("a{,3}", "write {0,n}"),
        ("(" * 60 + ")" * 60, "groups are nested too deep"),
    ],
)
def test_what_is_not_accepted_is_explained(pattern, reason):
    with pytest.raises(InvalidQuery) as caught:
        compile_regex(pattern)
    assert reason in caught.value.message


@pytest.mark.parametrize(
    ("pattern", "prefix", "literal"),
    [
        ("^\\Qab\\E", "ab", "ab"),
        ("^ab$", "ab", "ab"),
        ("^ab.*", "ab", None),
        ("^ab?", "a", None),
        ("ab", "", "ab"),
        ("^(ab)", "", None),
        ("^a|b", "", None),
    ],
)
def test_the_fixed_letters_at_the_start_are_known(pattern, prefix, literal):
    regex = compile_regex(pattern)
    assert (regex.prefix, regex.literal) == (prefix, literal)


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*b", "(.*)*x", "(a?){99}a{99}"])
def test_patterns_that_hang_other_engines_are_matched(pattern):
    # With backtracking this test would not end.
    assert matches(pattern, "a" * 20_000 + "!x") is (pattern not in ("(a+)+$", "(a|a)*b"))


pieces = st.sampled_from(
    ["a", "b", "A", ".", "\\d", "\\w", "\\s", "\\W", "[ab]", "[^ab]", "[a-c0-9]", "\\b", "^", "$",
     "é", "\U0001f600", "(a|b)", "(?:ab)", "(ab|)", "\\.", "\\n", "x y", "-"]
)  # fmt: skip
quantifiers = st.sampled_from(["", "", "", "*", "+", "?", "*?", "{2}", "{1,2}", "{0,1}?"])


def _join(parts: list[tuple[str, str]]) -> str:
    return "".join(
        piece if piece in ("^", "$", "\\b") else piece + quantifier for piece, quantifier in parts
    )


patterns = st.lists(st.tuples(pieces, quantifiers), max_size=5).map(_join) | st.lists(
    st.lists(st.tuples(pieces, quantifiers), max_size=3).map(_join), min_size=2, max_size=3
).map("|".join)
subjects = st.text(st.sampled_from("abABcé1_ .-\n\U0001f600xy"), max_size=8)


@given(patterns, st.sampled_from(["", "i", "m", "s", "ms"]), st.lists(subjects, max_size=5))
def test_the_meaning_is_that_of_pythons_engine_where_the_spelling_is_the_same(
    pattern, options, texts
):
    flags = re.ASCII
    for letter, flag in (("m", re.MULTILINE), ("s", re.DOTALL)):
        flags |= flag if letter in options else 0
    # Python's own words for: ASCII classes, but letters of any alphabet; and the very end.
    if "i" in options:
        pattern, texts = pattern.replace("é", "x"), [text.replace("é", "x") for text in texts]
        flags |= re.IGNORECASE
    spelled = pattern if "m" in options else pattern.replace("$", "\\Z")
    expected = re.compile(spelled, flags)
    for text in texts:
        assert matches(pattern, text, options) is (expected.search(text) is not None)
