"""Rows of a file in NDJSON, JSON or CSV, one at a time.

A row that can't be decoded is a row with a ``problem``, so that the rows after it can still be
read; only where a file can't be read on (a JSON array that is broken off, a line without an end,
bytes that aren't UTF-8) is ``UnusableFile`` raised.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Any, Literal, get_args

import msgspec

from objects.exchange.problems import UnusableFile

Format = Literal["ndjson", "json", "csv"]
FORMATS: tuple[Format, ...] = get_args(Format)
_ENDINGS: dict[str, Format] = {
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".json": "json",
    ".csv": "csv",
}
_CHUNK = 1 << 16
_LONGEST = 64 << 20  # characters of one element: more than any object may have
_SPACE = re.compile(r"[ \t\r\n]*")


@dataclass(slots=True)  # freezing triples what it costs to make one
class Row:
    """One row: the line it begins on, and its values or what is wrong with it.

    ``size`` is how many characters of the file it takes.
    """

    line: int
    values: dict[str, Any]
    problem: str | None = None
    size: int = field(default=0, compare=False)


def format_of(path: Path) -> Format | None:
    """Return the format that the file's name implies."""
    return _ENDINGS.get(path.suffix.lower())


def read_rows(file: IO[str], file_format: Format) -> Iterator[Row]:
    """Yield the rows of an open text file (``newline=""``, UTF-8)."""
    read = {"ndjson": _ndjson, "json": _json, "csv": _csv}[file_format]
    try:
        yield from read(file)
    except UnicodeDecodeError as error:
        raise UnusableFile(f"the file isn't UTF-8: {error.reason}") from error


def decode(text: str) -> Any:
    """JSON as the service takes it: whole numbers of any size, no NaN, no Infinity."""
    return _decoder.decode(text)


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")


_decoder = json.JSONDecoder(parse_constant=_refuse)
_msgspec_decode = msgspec.json.Decoder().decode


def _row(line: int, value: Any, size: int) -> Row:
    if isinstance(value, dict):
        return Row(line, value, size=size)
    return Row(line, {}, "an object is expected", size)


def _lines(file: IO[str]) -> Iterator[str]:
    for line, text in enumerate(iter(partial(file.readline, _LONGEST), ""), start=1):
        if len(text) == _LONGEST:
            raise UnusableFile(f"line {line} is longer than any object may be")
        yield text


def _ndjson(file: IO[str]) -> Iterator[Row]:
    for line, text in enumerate(_lines(file), start=1):
        if text.isspace():
            continue
        try:
            yield _row(line, _decode_quickly(text), len(text))
        except (ValueError, RecursionError) as error:
            yield Row(line, {}, f"malformed JSON: {error}", len(text))


def _decode_quickly(text: str) -> Any:
    """As ``decode``, in less than half of the time where msgspec takes the text."""
    try:
        return _msgspec_decode(text)
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError):
        # It refuses halves of surrogate pairs and very long numbers, which have messages of their
        # own later.
        return decode(text)


def _json(file: IO[str]) -> Iterator[Row]:
    """Yield the elements of one array, or the only object."""
    window = _Window(file)
    if window.peek() == "{":
        yield window.element()
        if window.peek():
            raise UnusableFile(
                f"line {window.line}: an array of objects is expected; for one object a line say "
                "--format ndjson"
            )
        return
    if window.peek() != "[":
        raise UnusableFile(f"line {window.line}: an array of objects is expected")
    window.take()
    if window.peek() == "]":
        return
    while True:
        yield window.element()
        mark = window.peek()
        if mark not in (",", "]"):
            what = f"{mark!r} instead" if mark else "the end of the file"
            raise UnusableFile(f"line {window.line}: expected ',' or ']' and found {what}")
        window.take()
        if mark == "]":
            return


class _Window:
    """The part of a JSON text that is being decoded, and the line that it begins on."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        self._text = ""
        self._at = 0
        self.line = 1

    def peek(self) -> str:
        """Return the next character that is no white space; empty at the end."""
        while True:
            space = _SPACE.match(self._text, self._at)
            assert space is not None
            self._advance(space.end())
            if self._at < len(self._text) or not self._more(_CHUNK):
                return self._text[self._at : self._at + 1]

    def take(self) -> None:
        self._advance(self._at + 1)

    def element(self) -> Row:
        """Decode one value."""
        self.peek()
        line, chunk = self.line, _CHUNK
        while True:
            try:
                value, end = _decoder.raw_decode(self._text, self._at)
            except RecursionError:
                raise UnusableFile(f"line {line}: nested too deeply") from None
            except ValueError as error:
                # Malformed, or not all of it is here yet.
                if len(self._text) - self._at > _LONGEST or not self._more(chunk):
                    raise UnusableFile(f"line {line}: malformed JSON: {error}") from error
                chunk *= 2
                continue
            # A number at the very end might go on.
            if end == len(self._text) and self._more(_CHUNK):
                continue
            size = end - self._at
            self._advance(end)
            return _row(line, value, size)

    def _advance(self, to: int) -> None:
        self.line += self._text.count("\n", self._at, to)
        self._at = to

    def _more(self, size: int) -> bool:
        chunk = self._file.read(size)
        self._text = self._text[self._at :] + chunk
        self._at = 0
        return bool(chunk)


def _csv(file: IO[str]) -> Iterator[Row]:
    """Yield the records below the line of names. An empty cell is no value."""
    records = csv.reader(_lines(file), strict=True)
    line = 1
    names: list[str] | None = None
    while True:
        try:
            record = next(records)
        except StopIteration:
            break
        except csv.Error as error:
            raise UnusableFile(f"line {line}: malformed CSV: {error}") from error
        if names is None:
            names = _names(record)
        elif record:
            yield _record(line, names, record)
        line = records.line_num + 1
    if names is None:
        raise UnusableFile("line 1: a line with the names of the columns is expected")


def _names(record: list[str]) -> list[str]:
    names = [name.strip() for name in record]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise UnusableFile(f"line 1: two columns have the name {sorted(twice)[0]!r}")
    return names


def _record(line: int, names: list[str], record: list[str]) -> Row:
    size = sum(map(len, record))
    if len(record) != len(names):
        problem = f"{len(record)} cells, but {len(names)} columns have names"
        return Row(line, {}, problem, size)
    values = {name: cell for name, cell in zip(names, record, strict=True) if cell != ""}
    return Row(line, values, size=size)
