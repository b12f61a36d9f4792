"""Fixtures for tests of pure rooms: they replace those of the folders above, which need Django."""

import pytest

__all__ = ["fresh_registry", "own_registrations", "without_samples"]


@pytest.fixture(autouse=True)
def fresh_registry() -> None:
    """Leave class definitions alone."""


@pytest.fixture(autouse=True)
def own_registrations() -> None:
    """Leave server functions alone."""


@pytest.fixture(autouse=True)
def without_samples() -> None:
    """Leave settings alone."""
