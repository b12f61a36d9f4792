"""Long numbers are written with exponents, and no value changes."""

from __future__ import annotations

import json
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from backend.kernel.texts.numbers import ZEROS, with_exponents

LONG = "0" * 120


def test_only_long_doubles_are_written_with_an_exponent():
    for text in (
        f'["1{LONG}", "\\"1{LONG}", {{"1{LONG}": null}}]',
        f"[{'1' * 18}{LONG}]",
        f"[1{'0' * 77}]",
        f"[0.{LONG}{'123456789' * 3}]",
        "[0, true, false, null]",
    ):
        assert with_exponents(text) == text
    assert with_exponents(f"[12{LONG},-3{LONG}]") == "[1.2e+121,-3e+120]"
    assert with_exponents(f"[0.{LONG}12]") == "[1.2e-121]"


@given(
    st.recursive(
        st.none()
        | st.text(alphabet='0123456789\\"eE.-+ ,:[]{}')
        | st.sampled_from([LONG, f'\\"1{LONG}', f"1{LONG}\\", "\\\\"])
        | st.sampled_from([10**120, -(10**308), 3 * 10**99, 2**400, 5, 1.5, 1e-300]),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(alphabet='0"\\1'), inner),
    )
)
def test_no_value_changes(value):
    text = json.dumps(value)
    shown = with_exponents(text)
    assert json.loads(shown, parse_float=Decimal, parse_int=Decimal) == json.loads(
        text, parse_float=Decimal, parse_int=Decimal
    )


@given(st.integers(1, 17), st.integers(61, 400))
def test_every_number_that_changes_has_the_mark_of_one(digits, zeros):
    text = "7" * digits + "0" * zeros
    assert with_exponents(text) == text or ZEROS in text
