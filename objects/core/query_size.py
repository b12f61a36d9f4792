"""How large a ``where`` may be, whatever its shape: what PostgreSQL's time for it depends on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from backend.errors import InvalidQuery

from .regex import Regex
from .regex_size import MAX_TRANSITIONS

MAX_CONSTRAINTS: Final = 500
"""In the whole ``where``, sub-queries included."""
MAX_SUBQUERIES: Final = 20
"""In the whole ``where``, at any depth; ``$relatedTo`` is one too."""
MAX_SUBQUERY_DEPTH: Final = 5
"""Of sub-queries inside of each other."""
MAX_PATTERNS: Final = 24
"""Different regular expressions in the whole ``where``, without plain texts and prefixes.

PostgreSQL keeps the last 32 that a connection used; with more, it compiles each again for each row.
"""
MAX_PATTERN_TRANSITIONS: Final = 2 * MAX_TRANSITIONS
"""Of all of them together."""


class QuerySize:
    """Counts the parts of one ``where``. Raises ``InvalidQuery`` with the place of the part that is
    one too many."""

    def __init__(self) -> None:
        self._constraints = 0
        self._subqueries = 0
        self._depth = 0
        self._patterns: set[str] = set()
        self._transitions = 0

    def add_constraint(self, place: str) -> None:
        """Count a key or an operator."""
        self._constraints += 1
        if self._constraints > MAX_CONSTRAINTS:
            raise InvalidQuery(f"{place}: a query has at most {MAX_CONSTRAINTS} constraints")

    def add_subquery(self, place: str) -> None:
        """Count a sub-query, or a ``$relatedTo``."""
        self._subqueries += 1
        if self._subqueries > MAX_SUBQUERIES:
            raise InvalidQuery(f"{place}: a query has at most {MAX_SUBQUERIES} sub-queries")

    @contextmanager
    def inside_subquery(self, place: str) -> Iterator[None]:
        """Count a sub-query, and what is in it as one level deeper."""
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
