"""Full-text search in SQL.

An index for it is made on ``document_expression``; a search writes the same expression.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from objects import jsonpath
from objects.core.query import Text
from objects.core.text import Search, configuration, fold_accents, read_term
from objects.field_sql import read
from objects.sql import FALSE, Sql, both, negation
from objects.tables import ClassTable

_ACCENTS: Final = r"regexp_replace(normalize({}, NFD), '[\u0300-\u036f]', '', 'g')"


def documents(node: Text, table: ClassTable, alias: str) -> Sql | None:
    """The text that is searched; None if the class has nothing to search."""
    if node.path is None:
        fields = text_fields(table)
        return Sql(_joined([_field(table, name, alias) for name in fields])) if fields else None
    reading = read(table, node.path, alias)
    if reading.is_whole and reading.kind == "String" and reading.typed is not None:
        return Sql(_joined([reading.typed]))
    if reading.is_whole and reading.kind not in ("Array", None):
        return None
    strings = jsonpath.filtered(reading.steps, jsonpath.IS_STRING)
    return Sql(
        f"(SELECT coalesce(string_agg(c #>> '{{}}', E'\\n'), '') FROM"
        f" jsonb_path_query({reading.base}, %s::jsonpath) AS c)",
        (strings,),
    )


def text_fields(table: ClassTable) -> Sequence[str]:
    """The fields that a search without a path reads: those of the text index, or all Strings."""
    for index in table.schema.indexes.values():
        names = [name for name, direction in index.fields if direction == "text"]
        if names:
            return names
    return sorted(name for name, type_ in table.schema.fields.items() if type_.kind == "String")


def document_expression(
    table: ClassTable, fields: Sequence[str], language: str = "english", alias: str = ""
) -> str:
    """The tsvector of some String fields, that a GIN index serves searches by."""
    text = _joined([_field(table, name, alias) for name in fields])
    return f"to_tsvector('{configuration(language)}', {_ACCENTS.format(text)})"


def condition(node: Text, document: Sql | None) -> Sql:
    """Whether a row's text has what is searched for."""
    search = read_term(node.term)
    if document is None or search.is_empty:
        return FALSE
    found = _vector(node, document) + " @@ " + _query(node, search)
    parts = [
        "(" + found + ")",
        Sql(
            f"(numnode(websearch_to_tsquery('{configuration(node.language)}', %s)) > 0)",
            (_folded(node, search.wanted),),
        ),
    ]
    if node.case_sensitive:
        parts += _exact_case(node, search, document)
    return both(parts)


def score(node: Text, document: Sql | None) -> Sql:
    """The rank of a row's text."""
    if document is None:
        return Sql("0::float4")
    return "ts_rank(" + _vector(node, document) + ", " + _query(node, read_term(node.term)) + ")"


def _field(table: ClassTable, name: str, alias: str) -> str:
    reading = read(table, (name,), alias)
    assert reading.typed is not None
    return reading.typed


def _joined(texts: Sequence[str]) -> str:
    return " || E'\\n' || ".join(f"coalesce({text}, '')" for text in texts)


def _text(node: Text, document: Sql) -> Sql:
    if node.diacritic_sensitive:
        return document
    return Sql(_ACCENTS.format(document.text), document.params)


def _folded(node: Text, text: str) -> str:
    return text if node.diacritic_sensitive else fold_accents(text)


def _vector(node: Text, document: Sql) -> Sql:
    return f"to_tsvector('{configuration(node.language)}', " + _text(node, document) + ")"


def _query(node: Text, search: Search) -> Sql:
    parse = f"websearch_to_tsquery('{configuration(node.language)}', %s)"
    return Sql(
        f"({parse} && {parse})",
        (_folded(node, search.wanted), _folded(node, search.unwanted)),
    )


def _exact_case(node: Text, search: Search, document: Sql) -> list[Sql]:
    """Text search folds case, so words are looked for again in the text as it is."""
    text = "((" + _text(node, document) + ') COLLATE "C")'

    def has(parts: Sequence[str]) -> Sql:
        words = "|".join(re.escape(_folded(node, part)) for part in parts)
        return "(" + text + Sql(" ~ %s)", (rf"\m(?:{words})\M",))

    alternatives: list[tuple[str, ...]] = [(phrase,) for phrase in search.phrases] or [search.words]
    return [has(words) for words in alternatives] + [
        negation(has([part])) for part in search.without
    ]
