"""Arithmetic of block ranges: what has been read, and what is missing.

A *span* is a pair of the first and the last block, both included. ``Spans`` are sorted, don't
overlap and don't touch: ``[(0, 4), (5, 9)]`` is ``[(0, 9)]``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise

Span = tuple[int, int]
Spans = list[Span]


def union(*parts: Iterable[Span]) -> Spans:
    """Every block that is in one of them. Spans may be in any order; empty ones are left out."""
    spans: Spans = []
    for first, last in sorted(span for part in parts for span in part if span[0] <= span[1]):
        if spans and first <= spans[-1][1] + 1:
            spans[-1] = (spans[-1][0], max(spans[-1][1], last))
        else:
            spans.append((first, last))
    return spans


def without(spans: Iterable[Span], taken: Iterable[Span]) -> Spans:
    """The blocks of ``spans`` that aren't in ``taken``."""
    remaining: Spans = []
    away = union(taken)
    for first, last in union(spans):
        for start, end in away:
            if end < first or start > last:
                continue
            if start > first:
                remaining.append((first, start - 1))
            first = end + 1
        if first <= last:
            remaining.append((first, last))
    return remaining


def up_to(spans: Iterable[Span], last: int) -> Spans:
    """The blocks that aren't above this one."""
    return union((first, min(end, last)) for first, end in spans)


def holds(spans: Iterable[Span], span: Span) -> bool:
    """Whether each block of ``span`` is among them."""
    return not without([span], spans)


def size(spans: Iterable[Span]) -> int:
    """How many blocks they are."""
    return sum(last - first + 1 for first, last in union(spans))


def segments(covered: Mapping[str, Iterable[Span]], span: Span) -> list[tuple[Span, list[str]]]:
    """The span in pieces that the same names cover as a whole, in order, each with those names.
    What no span covers is left out."""
    first, last = span
    parts = {name: up_to(spans, last) for name, spans in covered.items()}
    edges = {first, last + 1}
    for spans in parts.values():
        edges.update(edge for start, end in spans for edge in (start, end + 1))
    cuts = sorted(edge for edge in edges if first <= edge <= last + 1)
    segments: list[tuple[Span, list[str]]] = []
    for start, after in pairwise(cuts):
        piece = (start, after - 1)
        names = sorted(name for name, spans in parts.items() if holds(spans, piece))
        if names:
            segments.append((piece, names))
    return segments
