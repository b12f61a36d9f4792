"""Tests of ``chain.core`` need no settings, which the fixture of the other tests changes."""

import pytest


@pytest.fixture(autouse=True)
def without_samples() -> None:
    """Replace the fixture of the folder above."""
