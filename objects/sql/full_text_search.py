"""Full-text search in SQL.

An index for it is made on ``document_expression``; a search writes the same expression.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from objects.core.names import FieldName
from objects.core.query.text import configuration, fold_accents, read_term
from objects.core.query.tree import Text
from objects.sql import jsonpath
from objects.sql.fields import read
from objects.sql.fragments import FALSE, Sql, both, negation
from objects.sql.tables import ClassTable

_ACCENTS: Final = r"regexp_replace(normalize({}, NFD), '[\u0300-\u036f]', '', 'g')"


def documents(node: Text, table: ClassTable, alias: str) -> Sql | None:
    """Return the text that is searched; None if the class has nothing to search."""
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


def text_fields(table: ClassTable) -> Sequence[FieldName]:
    """Return the fields of a search without a path: those of the text index, or all Strings."""
    for index in table.schema.indexes.values():
        names = [name for name, direction in index.fields if direction == "text"]
        if names:
            return [name for name in names if _is_text(table, name)]
    return sorted(name for name in table.schema.fields if _is_text(table, name))


def _is_text(table: ClassTable, name: FieldName) -> bool:
    field_type = table.schema.fields.get(name)
    return field_type is not None and field_type.kind == "String"


def document_expression(
    table: ClassTable, fields: Sequence[FieldName], language: str = "english", alias: str = ""
) -> str:
    """Return the tsvector of some String fields, that a GIN index serves searches by."""
    text = _joined([_field(table, name, alias) for name in fields if _is_text(table, name)])
    return f"to_tsvector('{configuration(language)}', {_ACCENTS.format(text)})"


def condition(node: Text, document: Sql | None) -> Sql:
    """Return the condition that a row's text matches the search."""
    search = read_term(node.term)
    if document is None or search.is_empty:
        return FALSE
    if search.phrases:
        # The stems of the phrases are what an index can find; their words decide. There may be
        # no stems, if all of the words are stop words.
        stems = _query(node, search.phrases, " ")
        matches_stems = _vector(node, document) + " @@ " + stems
        parts = ["(numnode(" + stems + ") = 0 OR " + matches_stems + ")"]
        parts += [_has_any(node, document, [phrase], "none") for phrase in search.phrases]
    else:
        parts = [_has_any(node, document, search.words, node.language)]
    for unwanted, language in (
        (search.unwanted_words, node.language),
        (search.unwanted_phrases, "none"),
    ):
        if unwanted:
            parts.append(negation(_has_any(node, document, unwanted, language)))
    return both(parts)


def score(node: Text, document: Sql | None) -> Sql:
    """Return the rank of a row's text, between 0 and 1, as Parse Server on PostgreSQL does."""
    if document is None:
        return Sql("0::float4")
    search = read_term(node.term)
    query = _query(node, search.words + search.phrases)
    return "ts_rank_cd(" + _vector(node, document) + ", " + query + ", 32)"


def _field(table: ClassTable, name: FieldName, alias: str) -> str:
    reading = read(table, (name,), alias)
    assert reading.typed is not None
    return reading.typed


def _joined(texts: Sequence[str]) -> str:
    return " || E'\\n' || ".join(f"coalesce({text}, '')" for text in texts) or "''"


def _text(node: Text, document: Sql) -> Sql:
    if node.diacritic_sensitive:
        return document
    return Sql(_ACCENTS.format(document.text), document.params)


def _folded(node: Text, text: str) -> str:
    return text if node.diacritic_sensitive else fold_accents(text)


def _vector(node: Text, document: Sql, language: str | None = None) -> Sql:
    text = _text(node, document)
    return f"to_tsvector('{configuration(language or node.language)}', " + text + ")"


def _query(
    node: Text, parts: Sequence[str], joined_by: str = " or ", language: str | None = None
) -> Sql:
    """Return the parts, each a word or a phrase, in the language of ``websearch_to_tsquery``."""
    text = joined_by.join(f'"{_folded(node, part)}"' for part in parts)
    name = configuration(language or node.language)
    return Sql(f"websearch_to_tsquery('{name}', %s)", (text,))


def _has_any(node: Text, document: Sql, parts: Sequence[str], language: str) -> Sql:
    """Return whether one of some words or phrases is there."""
    vector = _vector(node, document, language)
    return "(" + vector + " @@ " + _query(node, parts, language=language) + ")"
