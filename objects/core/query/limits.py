"""Limits on the parts of a ``where`` that PostgreSQL's planning and execution time depends on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from backend.kernel.errors import InvalidQuery
from objects.core.regex.automaton import MAX_TRANSITIONS
from objects.core.regex.patterns import Regex

MAX_CONSTRAINTS: Final = 500
"""Keys and operators in the whole ``where``, including sub-queries."""
MAX_ALL_VALUES: Final = 1000
"""Values of ``$all`` in the whole ``where``: most become conditions of their own."""
MAX_SUBQUERIES: Final = 20
"""In the whole ``where``, at any depth. ``$relatedTo`` counts as one."""
MAX_SUBQUERY_DEPTH: Final = 5
"""Levels of nested sub-queries."""
MAX_PATTERNS: Final = 24
"""Different regular expressions in the whole ``where``, except plain texts and prefixes.

A PostgreSQL connection caches 32 compiled patterns. With more in a query, it compiles each of them
for every row.
"""
MAX_PATTERN_TRANSITIONS: Final = 2 * MAX_TRANSITIONS
"""Sum over the patterns of a ``where``."""


class QuerySize:
    """Counts the parts of one ``where``.

    Each method raises ``InvalidQuery`` at its limit; ``place`` is the path of the part.
    """

    def __init__(self) -> None:
        self._constraints = 0
        self._all_values = 0
        self._subqueries = 0
        self._depth = 0
        self._patterns: set[str] = set()
        self._transitions = 0

    def add_constraint(self, place: str) -> None:
        """Count a key or an operator."""
        self._constraints += 1
        if self._constraints > MAX_CONSTRAINTS:
            raise InvalidQuery(f"{place}: a query has at most {MAX_CONSTRAINTS} constraints")

    def add_all_values(self, number: int, place: str) -> None:
        """Count the values of a ``$all``."""
        self._all_values += number
        if self._all_values > MAX_ALL_VALUES:
            raise InvalidQuery(f"{place}: a query has at most {MAX_ALL_VALUES:,} values in $all")

    def add_subquery(self, place: str) -> None:
        """Count a sub-query, or a ``$relatedTo``."""
        self._subqueries += 1
        if self._subqueries > MAX_SUBQUERIES:
            raise InvalidQuery(f"{place}: a query has at most {MAX_SUBQUERIES} sub-queries")

    @contextmanager
    def inside_subquery(self, place: str) -> Iterator[None]:
        """Count a sub-query; inside the context the depth is one more."""
        self.add_subquery(place)
        if self._depth == MAX_SUBQUERY_DEPTH:
            raise InvalidQuery(
                f"{place}: sub-queries are nested at most {MAX_SUBQUERY_DEPTH} levels deep"
            )
        self._depth += 1
        yield
        self._depth -= 1

    def add_pattern(self, pattern: Regex, place: str) -> None:
        """Count a regular expression, unless it is compared as plain text."""
        if pattern.literal is not None or pattern.postgres in self._patterns:
            return
        self._patterns.add(pattern.postgres)
        self._transitions += pattern.size
        if len(self._patterns) > MAX_PATTERNS:
            raise InvalidQuery(f"{place}: a query has at most {MAX_PATTERNS} regular expressions")
        if self._transitions > MAX_PATTERN_TRANSITIONS:
            raise InvalidQuery(
                f"{place}: the automatons of a query's regular expressions have at most"
                f" {MAX_PATTERN_TRANSITIONS:,} transitions together"
            )
