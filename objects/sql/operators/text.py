"""SQL of constraints on text."""

from __future__ import annotations

from collections.abc import Callable

from objects.core.query.operators.text import ContainsAllRegex, Matches, Text
from objects.core.query.paths import Path
from objects.sql import full_text_search as text_sql
from objects.sql import jsonpath
from objects.sql import regex as regex_sql
from objects.sql.fields import SINGLE_KINDS
from objects.sql.fragments import FALSE, Sql, both
from objects.sql.operators.compilation import Compilation, OperatorSql, sql_of
from objects.sql.values import each_element


@sql_of(Matches)
class MatchesSql(OperatorSql[Matches]):
    def condition(self, node: Matches, compilation: Compilation) -> Sql:
        return _matches(node.path, node.pattern, node.options, compilation)


@sql_of(ContainsAllRegex)
class ContainsAllRegexSql(OperatorSql[ContainsAllRegex]):
    def condition(self, node: ContainsAllRegex, compilation: Compilation) -> Sql:
        parts = [_matches(node.path, pattern, "", compilation) for pattern in node.patterns]
        return both(parts) if parts else FALSE


@sql_of(Text)
class TextSql(OperatorSql[Text]):
    def condition(self, node: Text, compilation: Compilation) -> Sql:
        documents = text_sql.documents(node, compilation.table, compilation.alias)
        return text_sql.condition(node, documents)


def _matches(path: Path, pattern: str, options: str, compilation: Compilation) -> Sql:
    return _some_text(
        path, compilation, lambda text, short: regex_sql.found_in(text, pattern, options, short)
    )


def _some_text(path: Path, compilation: Compilation, test: Callable[[str, str | None], Sql]) -> Sql:
    """Some element is a string that passes the test.

    The test gets the SQL of the string with collation "C", and that of its indexed beginning if
    there is one.
    """
    reading = compilation.read(path)
    if reading.is_whole and reading.kind in SINGLE_KINDS:
        if reading.kind != "String" or reading.typed is None:
            return FALSE
        return test(reading.typed, reading.short if reading.sorts_by_short else None)
    return each_element(
        reading, jsonpath.IS_STRING, lambda c: test(f"(({c} #>> '{{}}') COLLATE \"C\")", None)
    )
