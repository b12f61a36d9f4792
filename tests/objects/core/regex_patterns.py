"""Random patterns with repetitions inside of repetitions, for tests of their cost."""

from __future__ import annotations

from hypothesis import strategies as st

_ATOMS = [
    "a", "b", "c", ".", "\\w", "\\d", "\\s", "\\W", "[ab]", "[^a]", "[a-f]", "[^bc]",
    "[\\u0430-\\u044f]", "(?i:k)", "(?s:.)", "[^\\w]", "[^\\u0434]", "[^\\u0435]",
    "\\b(?:)", "\\B(?:)", "^(?:)", "$(?:)", "(?m:^(?:))", "(?m:$(?:))", "\\A(?:)",
]  # fmt: skip
_COUNTS = st.sampled_from([1, 2, 3, 5, 9, 20, 60, 150, 255])
_quantifiers = st.one_of(
    st.sampled_from(["", "", "?", "*", "+"]),
    _COUNTS.map("{{{}}}".format),
    _COUNTS.map("{{0,{}}}".format),
    _COUNTS.map("{{{},}}".format),
)


def _repeated(items: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    sequence = st.lists(st.tuples(items, _quantifiers), max_size=4).map(
        lambda parts: "".join(f"(?:{item}){quantifier}" for item, quantifier in parts)
    )
    return st.lists(sequence, min_size=1, max_size=3).map("|".join)


patterns = st.recursive(st.sampled_from(_ATOMS), _repeated, max_leaves=12)
