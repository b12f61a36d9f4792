"""Logs into events, by the ABIs of their contract.

A log of an unknown event, or one that isn't what the ABI says of it, is an event as well: without a
name, and with its topics and data as they are.
"""

from __future__ import annotations

import re
from binascii import unhexlify
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

import msgspec

from chain.core.abi.contract import Event
from chain.core.abi.types import Type, keys_of
from chain.core.abi.values import Source, fields_reader
from chain.core.abi.word_readers import FAULTS, LogReader, log_reader
from chain.core.abi.words import is_dynamic, layout_of, topic_layout

UNKNOWN: Final = "unknown event"
MISMATCH: Final = "not what its ABI says"
AMBIGUOUS: Final = "several anonymous events"

_NOT_HEX = re.compile(r"[^0-9a-zA-Z]")


class _Candidate:
    """An event that a log may be. Its reader is made when it is needed: most events of an ABI are
    never seen."""

    __slots__ = ("is_token_transfer", "name", "read", "topic_count")

    def __init__(self, event: Event) -> None:
        self.name = event.name
        self.topic_count = event.topic_count
        self.is_token_transfer = event.is_token_transfer
        self.read: LogReader

        def first_read(topics: Sequence[str], data: str) -> str:
            self.read = _reader_of(event)
            return self.read(topics, data)

        self.read = first_read


class Vocabulary:
    """The events that a contract may log. Of several with the same topics in the same places the
    first one counts."""

    def __init__(self, events: Iterable[Event]) -> None:
        self._named: dict[str, list[_Candidate]] = {}
        self._anonymous: dict[int, list[_Candidate]] = {}
        signatures = set()
        for event in events:
            kind = (event.signature, event.indexed, event.is_anonymous)
            if kind in signatures:
                continue
            signatures.add(kind)
            if event.is_anonymous:
                self._anonymous.setdefault(event.topic_count, []).append(_Candidate(event))
            else:
                self._named.setdefault(event.topic, []).append(_Candidate(event))

    def read(self, topics: Sequence[str], data: str) -> tuple[str | None, str]:
        """The event's name, and its arguments as JSON text.

        What can't be decoded has no name, and ``raw_args``. Never raises for what is in a log.
        """
        count = len(topics)
        events = self._named.get(topics[0], ()) if count else ()
        for event in events:
            if event.topic_count == count:
                try:
                    return event.name, event.read(topics, data)
                except FAULTS:
                    continue
        if events:
            return None, raw_args(topics, data, MISMATCH)
        candidates = self._anonymous.get(count, ())
        if len(candidates) > 1:
            return None, raw_args(topics, data, AMBIGUOUS)
        for event in candidates:
            try:
                return event.name, event.read(topics, data)
            except FAULTS:
                break
        return None, raw_args(topics, data, UNKNOWN)

    def is_token_transfer(self, topics: Sequence[str]) -> bool:
        """Whether a log that was read is the ``Transfer`` of a token."""
        events = self._named.get(topics[0], ()) if topics else ()
        return any(event.is_token_transfer for event in events if event.topic_count == len(topics))


def raw_args(topics: Sequence[str], data: str, reason: str) -> str:
    """The arguments of a log that can't be decoded: ``{"topics", "data", "undecoded"}``, the last
    one being the reason."""
    shown = {
        "topics": [_NOT_HEX.sub("?", topic) for topic in topics],
        "data": _NOT_HEX.sub("?", data),
        "undecoded": reason,
    }
    return msgspec.json.encode(shown).decode()


@lru_cache(maxsize=4096)
def _reader_of(event: Event) -> LogReader:
    """What reads the arguments of logs that have the event's topic, and as many as it has."""
    in_topics: list[tuple[str, Type]] = []
    in_data: list[tuple[str, Type]] = []
    keys = keys_of(event.inputs)
    for key, part, is_indexed in zip(keys, event.inputs, event.indexed, strict=True):
        (in_topics if is_indexed else in_data).append((key, part.type))
    topics = [(key, topic_layout(type_)) for key, type_ in in_topics]
    if not any(is_dynamic(type_) for _, type_ in in_data):
        data = [(key, layout_of(type_)) for key, type_ in in_data]
        return log_reader(topics, data, is_anonymous=event.is_anonymous)
    read_topics = log_reader(topics, [], is_anonymous=event.is_anonymous)
    read_fields = fields_reader(in_data)

    def read(topics: Sequence[str], data: str) -> str:
        head = read_topics(topics, "")[:-1]
        tail = read_fields(Source(unhexlify(data[2:])), 0)
        return head + ("," if in_topics else "") + ",".join(tail) + "}"

    return read
