"""Sizes in bytes, for people."""

from __future__ import annotations

from typing import Final

from backend.kernel.texts.counted import counted

_STEP: Final = 1024
_UNITS: Final = ("KB", "MB", "GB", "TB", "PB")


def readable_size(size: int) -> str:
    """Return a number of bytes in a unit of a power of 1024: ``1 byte``, ``1.5 MB``."""
    if size < _STEP:
        return counted(size, "byte")
    value = size / _STEP
    for unit in _UNITS:
        # What is rounded up to a whole unit is shown in the next one.
        if round(value, 1) < _STEP or unit == _UNITS[-1]:
            break
        value /= _STEP
    return f"{value:,.1f} {unit}"
