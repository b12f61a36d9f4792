"""Search over everything that the admin shows: sources that the apps register, ranked together.

A source is a function with ``@search_source``. It yields what may match a text, and the search
filters, ranks and groups. The page ``/admin/search/`` and its dialog (Ctrl-K) show the groups.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

from django.http import HttpRequest

from backend.kernel.errors import ServiceError
from backend.logs.setup import get_logger

LONGEST: Final = 200
"""Characters of a text that is searched for."""
_MOST_CANDIDATES: Final = 5_000
_MOST_IN_GROUP: Final = 6
_SHORTEST_INSIDE: Final = 3
"""Characters of a text that is searched for inside of words."""
_WORDS: Final = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])|[^\W\d_]+|\d+")
_EXACT, _BEGINNING, _WORD, _INSIDE, _DETAIL = range(5)

log = get_logger("admin")


@dataclass(frozen=True, slots=True)
class Result:
    """Something with a page of its own.

    A result matches if all words of the text are in its title or its detail. ``is_match`` is for
    sources that have compared it themselves, such as with an index. ``keywords`` are searched as
    the detail is, and not shown. ``icon`` takes the place of the source's.
    """

    title: str
    link: str
    detail: str = ""
    keywords: str = ""
    icon: str = ""
    is_match: bool = False


@dataclass(frozen=True, slots=True)
class Note:
    """A sentence about what a source has not searched, shown below the results."""

    text: str


@dataclass(frozen=True, slots=True)
class Group:
    """The best results of a source."""

    title: str
    results: list[Result]


@dataclass(frozen=True, slots=True)
class Answer:
    """The groups of a search, the best one first."""

    groups: list[Group]
    notes: list[str]


_Search = Callable[[HttpRequest, str], Iterable[Result | Note]]


@dataclass(frozen=True, slots=True)
class _Source:
    title: str
    icon: str
    position: int
    permission: str | None
    search: _Search


_sources: list[_Source] = []


def search_source(
    title: str, *, icon: str, position: int, permission: str | None
) -> Callable[[_Search], _Search]:
    """Let the search of the admin find what the function yields, as a group with this title.

    The function gets a text without surrounding blanks, never an empty one. It bounds its own cost.
    It is called for staff with ``permission``; None leaves it to the function to check what the
    staff user may see. A ``ServiceError`` that it raises leaves out its group.
    ``position`` orders groups that match equally well.
    """

    def register(search: _Search) -> _Search:
        _sources.append(_Source(title, icon, position, permission, search))
        return search

    return register


def search(request: HttpRequest, q: str, group: str = "") -> Answer:
    """Return what matches the text and may be seen by the staff user; in one group, if it is
    named."""
    text = q.strip()[:LONGEST]
    if not text or not text.isprintable():
        return Answer([], [])
    groups: list[tuple[tuple[int, int], Group]] = []
    notes: list[str] = []
    for source in _sources:
        if group and source.title != group:
            continue
        if source.permission is not None and not request.user.has_perm(source.permission):
            continue
        try:
            candidates = list(islice(source.search(request, text), _MOST_CANDIDATES))
        except ServiceError as error:
            log.warning("a source of the search failed", source=source.title, reason=str(error))
            notes.append(f"{source.title} couldn't be searched: {error.message}")
            continue
        notes += [item.text for item in candidates if isinstance(item, Note)]
        results = [item for item in candidates if isinstance(item, Result)]
        ranked = sorted(_ranked(text, results), key=lambda pair: pair[0])[:_MOST_IN_GROUP]
        if ranked:
            best = min(ranked[0][0][0], _WORD)
            shown = [_with_icon(result, source.icon) for _, result in ranked]
            groups.append(((best, source.position), Group(source.title, shown)))
    groups.sort(key=lambda pair: pair[0])
    return Answer([group for _, group in groups], notes)


def _with_icon(result: Result, icon: str) -> Result:
    return Result(result.title, result.link, result.detail, icon=result.icon or icon)


def _ranked(text: str, results: Iterable[Result]) -> Iterator[tuple[tuple[int, int, str], Result]]:
    for result in results:
        closeness = _closeness(text, result)
        if closeness is not None:
            yield (closeness, len(result.title), result.title), result


def _closeness(text: str, result: Result) -> int | None:
    """Return how well a result matches, the smaller the better; None if it doesn't."""
    sought, title = text.casefold(), result.title.casefold()
    if title == sought:
        return _EXACT
    if title.startswith(sought) or result.is_match:
        return _BEGINNING
    words = [word.casefold() for word in _WORDS.findall(result.title)]
    parts = sought.split()
    if all(any(word.startswith(part) for word in words) for part in parts):
        return _WORD
    if len(sought) < _SHORTEST_INSIDE:
        return None
    if all(part in title for part in parts):
        return _INSIDE
    everything = f"{title} {result.detail} {result.keywords}".casefold()
    return _DETAIL if all(part in everything for part in parts) else None
