"""Values whose size isn't known beforehand (texts, bytes, lists, what has them) into JSON text.

An offset that points nowhere, or to what another value has been read from, raises ``ValueError``:
without the second rule a short log could say that it holds more than the memory does. The padding
of texts and bytes doesn't matter, and a text has U+FFFD where it isn't UTF-8 or has a NUL, which
PostgreSQL refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from chain.core.abi.types import Part, Type, keys_of
from chain.core.abi.word_readers import words_reader
from chain.core.abi.words import WORD, is_dynamic, layout_of, words_in_place

_json = msgspec.json.Encoder().encode


class Source:
    """The bytes that values are read from, and how many words of them may still be read."""

    __slots__ = ("data", "left")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.left = len(data) // WORD + 1  # the last one may be cut off behind its value

    def take(self, at: int, size: int) -> bytes:
        """So many bytes from here on, which nothing else may be read from any more."""
        data = self.data[at : at + size]
        self.left -= (size + WORD - 1) // WORD
        if self.left < 0 or len(data) != size:
            raise ValueError("the data are shorter than what they say that they hold")
        return data

    def number(self, at: int) -> int:
        return int.from_bytes(self.take(at, WORD), "big")


Reader = Callable[[Source, int], str]
"""Reads the value that begins at this place, as JSON text."""

HeadReader = Callable[[Source, int, bytes], str]
"""Reads the value that has these words in place, among others that begin here."""


def fields_reader(fields: Sequence[tuple[str, Type]]) -> Callable[[Source, int], list[str]]:
    """What reads values that stand one after the other, each as a field of an object."""
    size = WORD * sum(words_in_place(type_) for _, type_ in fields)
    readers: list[tuple[str, int, int, HeadReader]] = []
    end = 0
    for key, type_ in fields:
        start, end = end, end + WORD * words_in_place(type_)
        readers.append((f'"{key}":', start, end, _head_reader(type_, size)))

    def read(source: Source, at: int) -> list[str]:
        head = source.take(at, size)
        return [key + value(source, at, head[start:end]) for key, start, end, value in readers]

    return read


def _head_reader(type_: Type, size: int) -> HeadReader:
    if is_dynamic(type_):
        read = _reader(type_)
        return lambda source, at, head: read(source, _behind(at, size, head))
    words = words_reader(layout_of(type_))
    return lambda source, at, head: words(head)


def _reader(type_: Type) -> Reader:
    """What reads values of a dynamic type."""
    if type_.lengths:
        return _list_reader(type_)
    if type_.parts:
        return _tuple_reader(type_.parts)
    return _text if type_.base == "string" else _bytes


def _tuple_reader(parts: Sequence[Part]) -> Reader:
    read = fields_reader([*zip(keys_of(parts), (part.type for part in parts), strict=True)])
    return lambda source, at: "{" + ",".join(read(source, at)) + "}"


def _list_reader(type_: Type) -> Reader:
    length = type_.lengths[-1]
    items = _items_reader(type_.item)

    def read(source: Source, at: int) -> str:
        if length is None:
            return "[" + ",".join(items(source, at + WORD, source.number(at))) + "]"
        return "[" + ",".join(items(source, at, length)) + "]"

    return read


def _items_reader(type_: Type) -> Callable[[Source, int, int], list[str]]:
    size = WORD * words_in_place(type_)
    if is_dynamic(type_):
        read = _reader(type_)

        def read_behind(source: Source, at: int, count: int) -> list[str]:
            head = source.take(at, count * size)
            end = len(head)
            offsets = range(0, end, WORD)
            return [read(source, _behind(at, end, head[n : n + WORD])) for n in offsets]

        return read_behind
    words = words_reader(layout_of(type_))

    def read_items(source: Source, at: int, count: int) -> list[str]:
        content = source.take(at, count * size)
        return [words(content[n : n + size]) for n in range(0, len(content), size)]

    return read_items


def _behind(at: int, size: int, offset: bytes) -> int:
    """Where the offset of a value points, which stands behind those that begin here."""
    position = int.from_bytes(offset, "big")
    if position < size:
        raise ValueError("an offset points to offsets")
    return at + position


def _text(source: Source, at: int) -> str:
    content = source.take(at + WORD, source.number(at))
    return _json(content.decode(errors="replace").replace("\x00", "\ufffd")).decode()


def _bytes(source: Source, at: int) -> str:
    return f'"0x{source.take(at + WORD, source.number(at)).hex()}"'
