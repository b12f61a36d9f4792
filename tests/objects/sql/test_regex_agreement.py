"""PostgreSQL finds a pattern exactly where the engine in memory does."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from backend.kernel.errors import InvalidQuery
from objects.core.regex.patterns import compile_regex
from objects.sql.regex import found_in
from tests.objects.sql.strategies import OPTIONS
from tests.objects.sql.world import World

ATOMS = [
    "a", "b", "A", "z", ".", "\\d", "\\D", "\\w", "\\W", "\\s", "\\S", "[ab]", "[^ab]", "[a-c0-9]",
    "[à-ÿ]", "[^\\w\\s]", "[\\]^-]", "é", "ß", "k", "\U0001f600", "[\u0400-\U0010ffff]", "(a|b)",
    "(?:ab)", "(ab|)", "(?i:k)", "\\.", "\\n", "\\t", " ", "\\Q.*\\E", "\\x41", "\\u{1F600}", "'",
    "%s", "$$", "\\b", "\\B", "^", "$", "\\A", "\\z", "#", "{", "}", "(^a|b$)", "(a*|b+)*",
]  # fmt: skip
patterns = st.lists(
    st.tuples(
        st.sampled_from(ATOMS),
        st.sampled_from(["", "", "", "", "*", "+", "?", "+?", "{2}", "{1,2}", "{0}", "{2,}", "|"]),
    ),
    max_size=6,
).map(lambda parts: "".join(atom + quantifier for atom, quantifier in parts))
subjects = st.text(
    st.sampled_from("abABzkK\N{KELVIN SIGN}éÉß\u017f09_ .*-^]'%\n\t\r\U0001f600Я"), max_size=9
)


@settings(deadline=None, max_examples=300)
@given(patterns, st.sampled_from(OPTIONS), st.lists(subjects, min_size=1, max_size=8))
def test_patterns_are_found_alike(world: World, pattern, options, texts):
    try:
        regex = compile_regex(pattern, options)
    except InvalidQuery:
        return
    test = found_in('(s COLLATE "C")', pattern, options)
    rows = world.connection.execute(
        f'SELECT s, {test.text}, s COLLATE "C" ~ %s FROM unnest(%s::text[]) AS s',  # type: ignore[arg-type]
        [*test.params, regex.postgres, texts],
    ).fetchall()
    expected = [(text, regex.found_in(text), regex.found_in(text)) for text in texts]
    assert rows == expected, regex.postgres


def test_large_patterns_are_within_the_limits_of_postgresql(world: World):
    for pattern in (
        "(a?){99}a{99}",
        "([a-z]{1,30}x){30}",
        "(.*a.*b){40}",
        "(\\w+\\s*){250}$",
        "(" * 49 + "a" + ")" * 49,
        "[^a]{255}" * 7,
        "|".join(f"word{number}" for number in range(120)),
    ):
        regex = compile_regex(pattern)
        text = "a b" * 100
        row = world.connection.execute("SELECT %s ~ %s", [text, regex.postgres]).fetchone()
        assert row == (regex.found_in(text),)
