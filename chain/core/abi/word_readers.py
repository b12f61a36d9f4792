"""What reads words into JSON, made once for each layout.

Nearly all logs hold nothing but words, and a history has millions of them. So their readers are
Python of a few lines, put together from the templates in ``words``, those here, and the positions
of the words. Nothing of an ABI's text gets into the program: keys are constants that it uses.

A reader raises one of ``FAULTS`` for words that are no values of their types.
"""

from __future__ import annotations

import struct
from binascii import unhexlify
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, Final

from chain.core.abi.words import WORD, Layout, Word, layout_of_fields
from chain.core.names import checksummed

FAULTS: Final = (ValueError, struct.error)

WordsReader = Callable[[bytes], str]
LogReader = Callable[[Sequence[str], str], str]
"""Topics and data of a log into the JSON text of its arguments."""

Fields = Sequence[tuple[str, Layout]]
"""Values that stand beside each other, with their keys."""


def words_reader(layout: Layout) -> WordsReader:
    """What reads a value from its words, of which there are just as many as it has."""
    program = _Program("found")
    program.unpack("found", layout)
    read: WordsReader = program.finished(layout)
    return read


def log_reader(topics: Fields, data: Fields, *, is_anonymous: bool) -> LogReader:
    """What reads the arguments of a log, those in the topics and those in the data.

    What follows in the data doesn't matter, unless nothing else tells the event from others.
    """
    program = _Program("topics", "data")
    names = [f"t{n}" for n in range(len(topics))]
    program.line(f"[{', '.join(names if is_anonymous else ['_', *names])}] = topics")
    for name, (_, layout) in zip(names, topics, strict=True):
        program.unpack(f"unhexlify({name}[2:])", layout)
    in_data = layout_of_fields(data)
    program.line("found = unhexlify(data[2:])")
    size = WORD * sum(isinstance(entry, Word) for entry in in_data)
    if is_anonymous:
        program.line(f"if len(found) != {size}: raise ValueError")
    else:
        program.line(f"if len(found) > {size}: found = found[:{size}]")
    program.unpack("found", in_data)
    read: LogReader = program.finished(["{", *layout_of_fields([*topics, *data]), "}"])
    return read


@lru_cache(maxsize=65_536)
def _address(content: bytes) -> str:
    return checksummed("0x" + content.hex())


@lru_cache(maxsize=65_536)
def _topic_address(topic: str) -> str:
    word = unhexlify(topic[2:])
    if len(word) != WORD or not word.startswith(bytes(12)):
        raise ValueError("no address")
    return _address(word[12:])


_NAMES: Final[dict[str, Any]] = {
    "address": _address,
    "topic_address": _topic_address,
    "number": int.from_bytes,  # big-endian is its default
    "signed": partial(int.from_bytes, byteorder="big", signed=True),
    "unhexlify": unhexlify,
    "BOOL": ("false", "true"),
    **{f"Z{size}": bytes(size) for size in range(1, WORD)},
    **{f"F{size}": b"\xff" * size for size in range(1, WORD)},
}


class _Program:
    """A function in the making. The words that are unpacked are counted, and so are those of the
    layout that it answers with: both in the same order."""

    def __init__(self, *parameters: str) -> None:
        self._lines = [f"def read({', '.join(parameters)}):"]
        self._names = dict(_NAMES)
        self._faults: list[str] = []
        self._count = 0

    def line(self, text: str) -> None:
        self._lines.append(f"    {text}")

    def unpack(self, source: str, layout: Layout) -> None:
        """Have the words of a layout taken from what stands in this variable."""
        names, code = [], ">"
        for entry in layout:
            if isinstance(entry, Word):
                names.append(entry.names.format(n=self._count))
                code += entry.code
                if entry.fault:
                    self._faults.append(entry.fault.format(n=self._count))
                self._count += 1
        if code != ">":
            unpack = self._constant(struct.Struct(code).unpack)
            self.line(f"[{', '.join(names)}] = {unpack}({source})")

    def finished(self, layout: Layout) -> Any:
        """The function, which answers with the JSON of the layout."""
        if self._faults:
            self.line(f"if {' or '.join(self._faults)}: raise ValueError")
        values, text, count = [], "", 0
        for entry in layout:
            if isinstance(entry, str):
                text += entry
                continue
            values += [self._constant(text + entry.opening), entry.value.format(n=count)]
            text = entry.opening[:1]
            count += 1
        values.append(self._constant(text))
        self.line(f'return f"{"".join(f"{{{value}}}" for value in values)}"')
        exec("\n".join(self._lines), self._names)
        return self._names["read"]

    def _constant(self, value: Any) -> str:
        name = f"k{len(self._names)}"
        self._names[name] = value
        return name
