"""Columns of the chain's tables that are written many rows at a time, each declared once.

A ``Column`` has its names for PostgreSQL and for clients, and says how it is written and read. A
``Columns`` derives the lists of names, types and assignments of statements and the fields of the
class from the declarations of a table (``chain.models.stored``). The columns of a row type are
annotations of its attributes: ``ordinal: Annotated[int, column("bigint")]``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from operator import attrgetter
from types import NoneType
from typing import Annotated, Any, Final, NamedTuple, get_args, get_origin, get_type_hints

from objects.core.schema.definition import FieldType
from objects.core.values import FieldKind

_TEXTS: Final = frozenset({"text", "jsonb", "timestamptz"})
"""Types whose values rows have as text."""
NULL: Final = r"\N"
"""Null in the lines that ``COPY`` reads."""


class Column(NamedTuple):
    """A stored column.

    - ``name`` and ``sql_type`` (text, bigint, …) are PostgreSQL's;
    - ``api_type`` is the type of the class's field, None for a column that isn't one;
    - ``api_name`` is the field's name where it isn't the column's in camel case;
    - ``is_identity``: part of the row's identity, never updated;
    - ``keeps_known``: a null doesn't overwrite a value that is there;
    - ``is_escaped``: may hold tabs, line breaks or backslashes, which ``COPY`` needs escaped;
    - ``is_written``: comes with each row; otherwise the statement sets it;
    - ``is_compared``: an audit compares it with the chain;
    - ``null_default``: SQL that stands for null in a row that is read;
    - ``is_nullable``: rows may have None.
    """

    name: str
    sql_type: str
    api_type: FieldKind | None = None
    api_name: str = ""
    is_identity: bool = False
    keeps_known: bool = False
    is_escaped: bool = False
    is_written: bool = True
    is_compared: bool = True
    null_default: str = ""
    is_nullable: bool = False

    @property
    def field(self) -> str:
        """What clients call it."""
        return self.api_name or camel_case(self.name)

    @property
    def sql_name(self) -> str:
        """The name as statements write it."""
        return f'"{self.name}"' if self.name in _RESERVED else self.name

    def select_expression(self, row: str) -> str:
        """Return SQL for the value as rows have it, moments as clients read them."""
        value = f"{row}.{self.sql_name}"
        if self.sql_type == "timestamptz":
            return moment_text(value)
        return f"COALESCE({value}, {self.null_default})" if self.null_default else value


_RESERVED: Final = frozenset({"to"})


column: Final = partial(Column, "")
"""Declare the column of an attribute of a row type, whose name it takes (``Columns.of``)."""


def moment_text(moment: str) -> str:
    """Return SQL for a moment as clients read it."""
    return f"to_char({moment} AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"')"


def camel_case(name: str) -> str:
    """Return the name of the field that a column holds unless it is declared otherwise."""
    first, *words = name.split("_")
    return first + "".join(word.capitalize() for word in words)


def _unchanged(_column: Column, value: str) -> str:
    return value


class Columns(tuple[Column, ...]):
    """Some columns of a table in their order; at least two, since ``attrgetter`` returns no tuple
    for one name."""

    @classmethod
    def of(cls, row_type: type) -> Columns:
        """Return the columns that the annotations of a row type declare, in its order."""
        hints = get_type_hints(row_type, include_extras=True)
        return cls(
            hint.__metadata__[0]._replace(
                name=name, is_nullable=NoneType in get_args(get_args(hint)[0])
            )
            for name, hint in hints.items()
            if get_origin(hint) is Annotated
        )

    @cached_property
    def _names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self)

    @cached_property
    def _values_of(self) -> Callable[[object], tuple[Any, ...]]:
        return attrgetter(*self._names)

    @cached_property
    def written(self) -> Columns:
        """Those that come with each row."""
        return Columns(column for column in self if column.is_written)

    @cached_property
    def updated(self) -> Columns:
        """Those that come with each row and aren't part of its identity."""
        return Columns(column for column in self.written if not column.is_identity)

    @property
    def names(self) -> str:
        """``a, b, c``."""
        return ", ".join(column.sql_name for column in self)

    def select(self, row: str) -> str:
        """Return the list of values as rows have them, read from the table alias ``row``."""
        return ", ".join(column.select_expression(row) for column in self)

    @property
    def definitions(self) -> str:
        """``a text, b bigint``: the columns of a temporary table."""
        return ", ".join(f"{column.sql_name} {column.sql_type}" for column in self)

    def unnest(self, alias: str) -> str:
        """``unnest(%(a)s::text[], …) AS alias (a, …)``: an array parameter for each column."""
        arrays = ", ".join(f"%({column.name})s::{column.sql_type}[]" for column in self)
        return f"unnest({arrays}) AS {alias} ({self.names})"

    def assignments(
        self, source: str, target: str, value_of: Callable[[Column, str], str] = _unchanged
    ) -> str:
        """``a = source.a, …`` for an update of ``target``; ``value_of`` converts a value."""
        return ", ".join(
            f"{each.sql_name} = COALESCE({value}, {target}.{each.sql_name})"
            if each.keeps_known
            else f"{each.sql_name} = {value}"
            for each in self
            for value in (value_of(each, f"{source}.{each.sql_name}"),)
        )

    def values(self, rows: Sequence[object]) -> Iterator[tuple[Any, ...]]:
        """Return the values of each column in turn; a row has an attribute for each."""
        if not rows:
            return iter([()] * len(self))
        return zip(*map(self._values_of, rows), strict=True)

    def parameters(self, rows: Sequence[object]) -> dict[str, Any]:
        """Return the array parameters of ``unnest``."""
        return dict(zip(self._names, self.values(rows), strict=True))

    def copy_texts(self, rows: Sequence[object]) -> Iterator[Iterable[str]]:
        """Return, for each column, the texts of all rows as ``COPY`` reads them."""
        for column, values in zip(self, self.values(rows), strict=True):
            is_text = column.sql_type in _TEXTS
            if not (is_text or column.is_nullable):
                yield map(str, values)
                continue
            texts = _escaped(values) if column.is_escaped else values
            if not is_text:
                texts = [NULL if value is None else str(value) for value in values]
            elif None in values:
                texts = [NULL if text is None else text for text in texts]
            yield texts

    @property
    def fields(self) -> dict[str, FieldType]:
        """The type of each field that clients see."""
        return {column.field: FieldType(column.api_type) for column in self if column.api_type}

    @property
    def columns_of_fields(self) -> dict[str, str]:
        """The column of each field that has another name."""
        return {
            column.field: column.name
            for column in self
            if column.api_type and column.field != column.name
        }


def _escaped(texts: Sequence[Any]) -> Sequence[Any]:
    together = "".join(filter(None, texts))
    # One look at all of them: few need it.
    if not any(character in together for character in _ESCAPES):
        return texts
    table = str.maketrans(_ESCAPES)
    return [None if text is None else text.translate(table) for text in texts]


_ESCAPES: Final = {"\\": r"\\", "\t": r"\t", "\n": r"\n", "\r": r"\r"}
