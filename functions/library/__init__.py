"""The functions that the service itself brings."""

from functions.library import features  # noqa: F401 (registers)
