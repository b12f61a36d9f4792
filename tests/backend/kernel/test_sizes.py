"""Sizes as people read them."""

from __future__ import annotations

import pytest

from backend.kernel.texts.sizes import readable_size


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (1023, "1,023 bytes"),
        (1024, "1.0 KB"),
        (1024**2 - 1, "1.0 MB"),
        (5 * 1024**2 // 2, "2.5 MB"),
        (1024**5 - 1, "1.0 PB"),
        (5000 * 1024**5, "5,000.0 PB"),
    ],
)
def test_a_size_is_shown_in_the_unit_that_fits(size: int, text: str) -> None:
    assert readable_size(size) == text
