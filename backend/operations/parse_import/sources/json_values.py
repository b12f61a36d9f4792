"""JSON values of a file, read one after the other: no more of it is in memory than one of them.

A value takes some forty times as much memory as its text, so a file isn't decoded as a whole.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO, Final

from backend.operations.parse_import.formats.stored_objects import NESTED_TOO_DEEPLY
from backend.operations.parse_import.sources.base import Sized, SourceFailed

_PIECE: Final = 64 * 1024  # bytes
_LARGEST: Final = 16 * 1024 * 1024
"""Characters of one value: MongoDB's limit for a document."""
_READ_WHOLE: Final = 1024 * 1024
"""Characters up to which an API's response is read as one value, so that an object that has a field
``results`` is told from it."""
_RESULTS: Final = re.compile(r'\{\s*"results"\s*:\s*\[')
_SPACE: Final = re.compile(r"[ \t\r\n]*")
_AT_THE_END: Final = 16  # characters: the longest token that may be cut, besides texts
_decoder = json.JSONDecoder()


def rows(file: BinaryIO, place: str) -> Iterator[Sized]:
    """Return the values of a file: those that follow each other, or the elements of an array.

    Those of an API's response are its ``results``. Raises ``SourceFailed``, which names the line.
    """
    values = _Values(file, place)
    while start := values.peek():
        if start == "[":
            values.skip(1)
            yield from values.elements()
        elif values.is_long_response():
            yield from values.results()
        else:
            yield values.value()


def results(file: BinaryIO, place: str) -> Iterator[Sized] | None:
    """Return the ``results`` of an API's response, or None if it has no such list."""
    values = _Values(file, place)
    values.peek()
    if values.is_response():
        return values.results()
    size, response = values.value()
    items = response.get("results") if isinstance(response, dict) else None
    return parts_of(size, items) if isinstance(items, list) else None


def parts_of(size: int, items: Sequence[Any]) -> Iterator[Sized]:
    """Return the elements of a list that took so many characters."""
    return (Sized(size // len(items), item) for item in items)


class _Values:
    """A position in a file, with the text that follows it as far as it was read."""

    def __init__(self, file: BinaryIO, place: str) -> None:
        self._file = file
        self._place = place
        self._line = 1
        self._text = ""
        self._at = 0
        self._is_over = False
        self._bytes_to_text = codecs.getincrementaldecoder("utf-8-sig")("surrogatepass")

    def peek(self) -> str:
        """Skip spaces, and return the next character; empty at the end of the file."""
        while True:
            match = _SPACE.match(self._text, self._at)
            self._at = match.end() if match else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._read():
                return ""

    def skip(self, characters: int) -> None:
        self._at += characters

    def value(self) -> Sized:
        """Return the value that begins here."""
        while True:
            try:
                value, end = _decoder.raw_decode(self._text, self._at)
            except RecursionError:
                raise self._failure(NESTED_TOO_DEEPLY) from None
            except json.JSONDecodeError as error:
                is_cut = error.pos >= len(self._text) - _AT_THE_END
                if not is_cut and not error.msg.startswith("Unterminated string"):
                    raise self._failure(f"not JSON: {error.msg}") from None
                if not self._read():
                    raise self._failure(f"not JSON: {error.msg}") from None
                continue
            except ValueError:
                raise self._failure("a number of too many digits") from None
            if end == len(self._text) and self._read():
                continue  # a number may go on
            size, self._at = end - self._at, end
            return Sized(size, value)

    def elements(self) -> Iterator[Sized]:
        """Return the rest of an array, behind its bracket."""
        if self.peek() == "]":
            self.skip(1)
            return
        while True:
            self.peek()
            yield self.value()
            separator = self.peek()
            self.skip(1)
            if separator == "]":
                return
            if separator != ",":
                raise self._failure("not JSON: expected a comma or the end of the list")

    def is_response(self) -> bool:
        """Return whether an object begins here whose first key is a list ``results``."""
        while len(self._text) - self._at < _PIECE and self._read():
            pass
        return _RESULTS.match(self._text, self._at) is not None

    def is_long_response(self) -> bool:
        """Return whether it is one that is longer than an object."""
        if not self.is_response():
            return False
        while len(self._text) - self._at < _READ_WHOLE:
            if not self._read():
                return False
        try:
            _decoder.raw_decode(self._text[self._at : self._at + _READ_WHOLE])
        except (ValueError, RecursionError):
            return True
        return False

    def results(self) -> Iterator[Sized]:
        """Return the elements of ``results``, and pass the rest of the object."""
        match = _RESULTS.match(self._text, self._at)
        assert match is not None
        self._at = match.end()
        yield from self.elements()
        while (separator := self.peek()) == ",":
            self.skip(1)
            self.peek()
            self.value()
            if self.peek() != ":":
                raise self._failure("not JSON: expected a colon")
            self.skip(1)
            self.peek()
            self.value()
        if separator != "}":
            raise self._failure("not JSON: expected a comma or the end of the object")
        self.skip(1)

    def _read(self) -> bool:
        """Read more text, as much again as there is; return whether there was any."""
        if self._is_over:
            return False
        rest = self._text[self._at :]
        if len(rest) > _LARGEST:
            raise self._failure(f"a value of more than {_LARGEST:,} characters")
        self._line += self._text.count("\n", 0, self._at)
        data = self._file.read(max(_PIECE, len(rest)))
        self._is_over = not data
        try:
            more = self._bytes_to_text.decode(data, self._is_over)
        except UnicodeDecodeError as error:
            raise self._failure(f"not JSON: {error.reason}") from None
        self._text, self._at = rest + more, 0
        return bool(more) or not self._is_over

    def _failure(self, reason: str) -> SourceFailed:
        line = self._line + self._text.count("\n", 0, self._at)
        return SourceFailed(f"{self._place}:{line}: {reason}")
