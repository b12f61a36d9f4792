"""Constraints on text: ``$regex`` with ``$options``, ``$all`` of patterns, ``$text``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from backend.kernel.errors import InvalidJSON, InvalidQuery, ServiceError
from backend.kernel.json_types import Json
from backend.kernel.texts.shown import shown
from objects.core.names import FieldName
from objects.core.query.filters import Filter
from objects.core.query.limits import MAX_CONSTRAINTS
from objects.core.query.messages import parse_message
from objects.core.query.node import (
    Clause,
    Matching,
    Operand,
    Parser,
    Predicate,
    Query,
    Uses,
    filtered,
)
from objects.core.query.paths import Object, Path, elements
from objects.core.query.text import (
    DEFAULT_LANGUAGE,
    MAX_TERM_LENGTH,
    configuration,
    found_in,
    read_term,
)
from objects.core.regex import patterns as regex
from objects.core.values import FieldKind, normalise

_REGEX_OPTIONS: Final = frozenset("imsxu")
_STRING: Final[tuple[FieldKind, ...]] = ("String",)
_NO_TEXT: Final = frozenset({"objectId", "createdAt", "updatedAt"})


@dataclass(frozen=True, slots=True)
class Matches(Query):
    """Some element is a string in which the pattern (``objects.core.regex.patterns``) is found."""

    names = ("$regex",)
    companions = ("$options",)
    usage = "`$regex`, `$options`"
    summary = "the patterns that mean the same in PostgreSQL and Python; others are refused"
    filters = (
        Filter("begins", "begins with", _STRING, lambda entry: {"$regex": f"^{entry.pattern}"}),
        Filter(
            "contains",
            "contains, in any case",
            _STRING,
            lambda entry: {"$regex": entry.pattern, "$options": "i"},
        ),
        Filter("regex", "matches the expression", _STRING, lambda entry: {"$regex": entry.text}),
    )

    path: Path
    pattern: str
    options: str = ""

    @classmethod
    def parse(cls, operand: Operand, parser: Parser) -> Query:
        options = operand.siblings.get("$options", "")
        return cls.checked(operand.path, operand.value, options, operand.field_place, parser)

    @classmethod
    def checked(
        cls, path: Path, pattern: object, options: object, place: str, parser: Parser
    ) -> Matches:
        """Return the node of a pattern and its options. Raises ``ServiceError``."""
        if not isinstance(pattern, str):
            raise InvalidQuery(parse_message("$regex value must be a string", place))
        if not isinstance(options, str):
            raise InvalidQuery(parse_message("$options value must be a string", place))
        if not set(options) <= _REGEX_OPTIONS:
            raise InvalidQuery(
                parse_message(f"Bad $options value for query: {shown(options)}", place)
            )
        options = "".join(sorted(set(options)))
        try:
            compiled = regex.compile_regex(pattern, options)
        except ServiceError as error:
            raise InvalidQuery(f"{place}.$regex: {error.message}") from None
        parser.size.add_pattern(compiled, f"{place}.$regex")
        return cls(path, pattern, options)

    def predicate(self, matching: Matching) -> Predicate:
        has_match = regex.compile_regex(self.pattern, self.options).found_in
        return matching.some_element(
            self.path, lambda value: isinstance(value, str) and has_match(value)
        )

    def uses(self) -> Uses:
        is_prefix = len(self.path) == 1 and _prefix(self.pattern, self.options)
        return ((self.path[0], "prefix" if is_prefix else "filter"),)


def _prefix(pattern: str, options: str) -> str:
    """Return the text that all matches begin with."""
    if not pattern.startswith("^"):
        return ""
    return regex.compile_regex(pattern, options).prefix


@dataclass(frozen=True, slots=True)
class ContainsAllRegex(Query):
    """For each of the patterns, some element is a string that it matches.

    Written as ``$all`` with ``{"$regex": …}`` for each value.
    """

    path: Path
    patterns: tuple[str, ...]

    @classmethod
    def parse(cls, operand: Operand, parser: Parser) -> Query:
        place, values = operand.place, operand.value
        assert isinstance(values, list)
        patterns = [item["$regex"] for item in values if _has_pattern(item)]
        if len(patterns) != len(values):
            raise InvalidJSON(parse_message("All $all values must be of regex type or none", place))
        if len(patterns) > MAX_CONSTRAINTS:
            raise InvalidQuery(f"{place}: a list has at most {MAX_CONSTRAINTS} patterns")
        for index, item in enumerate(values):
            options = item.get("$options", "")
            Matches.checked(operand.path, item["$regex"], options, f"{place}.{index}", parser)
            if set(item) != {"$regex"}:
                raise InvalidJSON(f"{place}.{index}: expected $regex alone")
        return cls(operand.path, tuple(patterns))

    def predicate(self, matching: Matching) -> Predicate:
        parts = [Matches(self.path, pattern).predicate(matching) for pattern in self.patterns]
        return lambda obj: bool(parts) and all(part(obj) for part in parts)

    def uses(self) -> Uses:
        return filtered(self)

    def comparisons(self) -> int:
        return len(self.patterns)


def _has_pattern(item: object) -> bool:
    return isinstance(item, dict) and "$regex" in item


@dataclass(frozen=True, slots=True)
class Text(Query):
    """Full-text search (``objects.core.query.text``).

    ``path`` None: all String fields of the class.
    """

    names = ("$text",)
    clauses = ("$text",)
    usage = "`$text`"
    summary = (
        '`{"$search": {"$term": "big -red \\"exact words\\"", "$language": "en"}}`;'
        ' `order=$score`. In place of a field\'s name, `{"$text": …}` searches the fields of the'
        " class's text index, or all Strings"
    )
    filters = (
        Filter(
            "words",
            "has the words",
            _STRING,
            lambda entry: {"$text": {"$search": {"$term": entry.text}}},
        ),
    )

    path: Path | None
    term: str
    language: str = "none"
    diacritic_sensitive: bool = False

    @classmethod
    def parse(cls, operand: Operand, parser: Parser) -> Query:
        return cls._parsed(operand.path, operand.value, operand.place)

    @classmethod
    def parse_clause(cls, clause: Clause, parser: Parser) -> Query:
        return cls._parsed(None, clause.value, f"{clause.place}.$text")

    @classmethod
    def _parsed(cls, path: Path | None, value: object, place: str) -> Text:
        search = value.get("$search") if isinstance(value, dict) else None
        if not isinstance(search, dict):
            raise InvalidJSON(parse_message("bad $text: $search, should be object", place))
        term = search.get("$term")
        if not isinstance(term, str) or not term:
            raise InvalidJSON(parse_message("bad $text: $term, should be string", place))
        if len(term) > MAX_TERM_LENGTH:
            raise InvalidQuery(f"{place}: $term has at most {MAX_TERM_LENGTH} characters")
        language = search.get("$language", DEFAULT_LANGUAGE)
        if not isinstance(language, str):
            raise InvalidJSON(parse_message("bad $text: $language, should be string", place))
        if configuration(language) is None:
            raise InvalidQuery(f"{place}.$search: unknown $language {shown(language)}")
        if not isinstance(search.get("$caseSensitive", False), bool):
            raise InvalidJSON(parse_message("bad $text: $caseSensitive, should be boolean", place))
        if search.get("$caseSensitive"):
            raise InvalidJSON(
                parse_message(
                    "bad $text: $caseSensitive not supported, please use $regex or create a"
                    " separate lower case column.",
                    place,
                )
            )
        is_sensitive = search.get("$diacriticSensitive")
        if "$diacriticSensitive" in search and not isinstance(is_sensitive, bool):
            raise InvalidJSON(
                parse_message("bad $text: $diacriticSensitive, should be boolean", place)
            )
        if is_sensitive is False:
            raise InvalidJSON(
                parse_message(
                    "bad $text: $diacriticSensitive - false not supported, leave it out", place
                )
            )
        unknown = set(search) - {"$term", "$language", "$caseSensitive", "$diacriticSensitive"}
        if unknown:
            raise InvalidJSON(f"bad $text: {shown(min(unknown))} ({place}.$search)")
        normalise(term, f"{place}.$search.$term")
        return cls(path, term, language.lower(), bool(is_sensitive))

    def predicate(self, matching: Matching) -> Predicate:
        """Raises ``InvalidQuery`` for a search with stemming."""
        if configuration(self.language) != "simple":
            raise InvalidQuery(f"$text with $language {self.language} can't be matched here")
        search, path, members = read_term(self.term), self.path, matching.lookup.members
        is_sensitive = self.diacritic_sensitive

        def texts(obj: Object) -> Iterable[str]:
            values: Iterable[Json]
            if path is None:
                values = (obj[name] for name in sorted(obj) if name not in _NO_TEXT)
            else:
                values = elements(obj, path, members)
            return [value for value in values if isinstance(value, str)]

        return lambda obj: found_in(texts(obj), search, diacritic_sensitive=is_sensitive)

    def fields(self) -> tuple[FieldName | Literal["*"], ...]:
        return ("*",) if self.path is None else self.path[:1]

    def uses(self) -> Uses:
        path = self.path
        return ((path[0], "text" if len(path) == 1 else "filter"),) if path else ()
