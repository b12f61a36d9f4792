"""The rules of a service by what they apply to.

A ``Book`` finds the rules of a request with one lookup in a dictionary.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from backend.settings.rate_limits import METHODS, Rule

# Parse has two paths for each class of people. A rule that names one of them means both.
_PEOPLE = {
    "users": "_User",
    "sessions": "_Session",
    "roles": "_Role",
    "installations": "_Installation",
}
_CLASSES_OF_PEOPLE = {class_name: route for route, class_name in _PEOPLE.items()}

LOG_IN = "/login"
"""The path whose rules also count other routes that compare a password, and logins of staff."""
_ALSO_COMPARE_PASSWORDS = frozenset(("/verifyPassword", "/challenge"))

_ANY_BELOW = "*"
_EVERYTHING = "/*"
_Entry = tuple[re.Pattern[str], Rule]


def _pattern(path: str) -> str:
    """A rule's path as a regular expression: ``*`` is any word, the last one anything below."""
    words = path[1:].split("/")
    last = words.pop()
    written = [r"[^/]+" if word == _ANY_BELOW else re.escape(word) for word in words]
    written.append(".+" if last == _ANY_BELOW else re.escape(last))
    return "/" + "/".join(written)


def _twin(path: str) -> str | None:
    """The other path of the same thing: ``/users`` and ``/classes/_User``."""
    first, slash, remainder = path[1:].partition("/")
    if first in _PEOPLE:
        return f"/classes/{_PEOPLE[first]}{slash}{remainder}"
    if first == "classes" and remainder.startswith("_"):
        class_name, slash, remainder = remainder.partition("/")
        route = _CLASSES_OF_PEOPLE.get(class_name)
        return route and f"/{route}{slash}{remainder}"
    return None


class Book:
    """The rules of a service, by what they apply to."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        rules = tuple(rules)
        self._everywhere: list[_Entry] = []
        self._by_word: dict[str, list[_Entry]] = {}
        always = [rule for rule in rules if _EVERYTHING in rule.paths]
        # By method: what needs no comparison with the path.
        self._always = {
            method: tuple(rule for rule in always if method in rule.methods) for method in METHODS
        }
        self._always["HEAD"] = self._always["GET"]
        for rule in rules:
            if _EVERYTHING in rule.paths:
                continue
            entry = (re.compile("|".join(map(_pattern, rule.paths)), re.DOTALL), rule)
            words = {_first_word(path) for path in rule.paths}
            if _ANY_BELOW in words:
                self._everywhere.append(entry)
            else:
                for word in words:
                    self._by_word.setdefault(word, []).append(entry)

    def rules_for(self, path: str, method: str) -> tuple[Rule, ...]:
        """The rules that a request meets. ``path`` is what routes are chosen by: below the mount
        path, without the query string, percent-decoded as the server has done it."""
        word = path[1:].partition("/")[0]
        entries = self._by_word.get(word)
        always = self._always.get(method, ())
        if _bare(path) in _ALSO_COMPARE_PASSWORDS:
            return always + self._of_password_route(path, method)
        if word in _PEOPLE or path.startswith("/classes/_"):
            return always + self._of_people(path, method)
        if not entries and not self._everywhere:
            return always
        return always + _matching([*(entries or ()), *self._everywhere], (path,), method)

    def _of_password_route(self, path: str, method: str) -> tuple[Rule, ...]:
        """The rules of the path, and those of a log-in for requests that name an account."""
        entries = self._by_word.get(_first_word(path), ())
        own = _matching([*entries, *self._everywhere], (path,), method)
        log_in = _matching(self._by_word.get(_first_word(LOG_IN), ()), (LOG_IN,), method)
        names = {rule.name for rule in own}
        return own + tuple(
            replace(rule, names_account=True) for rule in log_in if rule.name not in names
        )

    def _of_people(self, path: str, method: str) -> tuple[Rule, ...]:
        paths = tuple(filter(None, (path, _twin(path))))
        # A dictionary, for a rule may name both paths.
        entries = {
            rule.name: (pattern, rule)
            for candidate in paths
            for pattern, rule in self._by_word.get(_first_word(candidate), ())
        }
        return _matching([*entries.values(), *self._everywhere], paths, method)


def _first_word(path: str) -> str:
    return path[1:].partition("/")[0]


def _bare(path: str) -> str:
    """As routes: a slash at the end means nothing."""
    return path[:-1] if path.endswith("/") else path


def _matching(entries: Iterable[_Entry], paths: tuple[str, ...], method: str) -> tuple[Rule, ...]:
    if method == "HEAD":
        method = "GET"
    bare = [_bare(path) for path in paths]
    matching = []
    for pattern, rule in entries:
        if method in rule.methods:
            for path in bare:
                if pattern.fullmatch(path):
                    matching.append(rule)
                    break
    return tuple(matching)
