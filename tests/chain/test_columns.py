"""Row types and declared columns: what statements and rows derive from."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import pytest
from django.db import connection

from chain.core.blocks.events import EventRow
from chain.core.columns import Column, Columns, camel_case
from chain.indexing.repair.repairs import StoredEvent, stored_events
from chain.models import SHOWN_EVENTS, ContractEvent, Transaction
from chain.models.stored import EVENT, TRANSACTION
from objects.database.row_types import numbered_parameters, select_list
from objects.database.statements import fetch_rows, fetch_value, fetch_values
from objects.definitions.models import ModelBackedObject


class Row(NamedTuple):
    whole: int
    text: str | None
    flag: bool
    part: float
    none: int | None


class Read(NamedTuple):
    number: int
    attempts: Annotated[int, "COALESCE({row}.attempts, 0)"]


class Few(NamedTuple):
    number: int
    text: str | None


class Wrong(NamedTuple):
    values: list[int]


@pytest.mark.django_db
def test_rows_have_the_types_that_they_declare() -> None:
    sql = "SELECT %(whole)s::bigint, %(text)s::text, true, 1.5, NULL::bigint"
    params = {"whole": 2**60, "text": "é"}
    assert fetch_rows(Row, sql, params, prepare=True) == [Row(2**60, "é", True, 1.5, None)]
    assert fetch_rows(Row, f"{sql} WHERE false", params, prepare=False) == []


@pytest.mark.django_db
def test_a_numeric_that_is_whole_is_an_integer() -> None:
    assert fetch_values(int, "SELECT sum(n) FROM generate_series(1, 4) n", (), prepare=True) == [10]


@pytest.mark.django_db
def test_a_value_may_be_null_or_have_no_row() -> None:
    assert fetch_value(bool, "SELECT %(flag)s::boolean", {"flag": False}, prepare=True) is False
    assert fetch_value(int, "SELECT NULL::bigint", (), prepare=True) is None
    assert fetch_value(int, "SELECT 1 WHERE false", (), prepare=True) is None


@pytest.mark.django_db
def test_a_row_type_has_as_many_fields_as_the_statement_columns() -> None:
    with pytest.raises(ValueError, match="1 columns for 2 fields"):
        fetch_rows(Few, "SELECT 1", (), prepare=False)
    with pytest.raises(TypeError, match="no loader"):
        fetch_rows(Wrong, "SELECT 1", (), prepare=False)


@pytest.mark.django_db
def test_a_parameter_that_no_placeholder_has_is_an_error() -> None:
    with pytest.raises(ValueError, match="1 placeholders for 2 parameters"):
        fetch_values(int, "SELECT %(a)s::int", {"a": 1, "b": 2}, prepare=False)


def test_a_name_is_one_parameter_wherever_it_occurs() -> None:
    sql = "SELECT %(b)s, %(a)s, %(b)s %% 2"
    assert numbered_parameters(sql) == ("SELECT $1, $2, $1 % 2", ("b", "a"))


def test_the_columns_of_a_select_derive_from_the_row_type() -> None:
    assert select_list(Read, "t") == "t.number, COALESCE(t.attempts, 0)"


SERVICE_COLUMNS = {field.column for field in ModelBackedObject._meta.fields} | {"canonical"}
"""Columns of every object, and the one that says whether an event is in the chain."""


@pytest.mark.django_db
def test_each_column_of_an_event_is_a_field_of_the_model_and_vice_versa() -> None:
    fields = {field.column: field for field in ContractEvent._meta.concrete_fields}
    names = [column.name for column in EVENT]
    assert len(names) == len(set(names))
    assert set(names) == set(fields) - SERVICE_COLUMNS
    types = {"timestamp with time zone": "timestamptz"}
    for column in EVENT:
        db_type = fields[column.name].db_type(connection)
        assert column.sql_type == types.get(str(db_type), db_type)


def test_each_attribute_of_an_event_declares_its_column() -> None:
    assert Columns.of(EventRow) == EVENT.written
    assert tuple(column.name for column in Columns.of(EventRow)) == EventRow.__struct_fields__
    assert [column.name for column in EVENT if not column.is_written] == ["network_id", "timestamp"]


@pytest.mark.django_db
def test_stored_events_are_read_with_each_column() -> None:
    assert StoredEvent.__struct_fields__ == (*EventRow.__struct_fields__, "object_id")
    assert stored_events(1, range(1, 2)) == {}


@pytest.mark.django_db
def test_the_view_of_events_has_every_column_of_the_table() -> None:
    sql = (
        "SELECT attname::text FROM pg_attribute WHERE attnum > 0 AND NOT attisdropped"
        " AND attrelid = %(name)s::text::regclass ORDER BY attname"
    )
    columns = [
        fetch_values(str, sql, {"name": name}, prepare=False)
        for name in (SHOWN_EVENTS, ContractEvent._meta.db_table)
    ]
    assert columns[0] == columns[1]


def test_what_comes_with_an_event_is_declared_and_stored() -> None:
    assert tuple(column.name for column in EVENT.written) == EventRow.__struct_fields__
    stored = {field.column for field in ContractEvent._meta.concrete_fields}
    assert {column.name for column in EVENT} <= stored
    assert {column.name for column in TRANSACTION} <= {
        field.column for field in Transaction._meta.concrete_fields
    }


def test_fields_are_called_as_columns_are_in_camel_case() -> None:
    assert camel_case("block_hash") == "blockHash"
    assert TRANSACTION.columns_of_fields["from"] == "from_address"
    assert "ordinal" not in EVENT.fields


class Pair(NamedTuple):
    name: str | None
    number: int


class Counted(NamedTuple):
    name: str
    number: int | None


PAIR = Columns((Column("name", "text", is_escaped=True), Column("number", "bigint")))


def test_lines_of_copy_are_escaped_only_where_it_is_needed() -> None:
    rows = [Pair("a\tb\\c\nd\re", 1), Pair(None, 2), Pair("plain", 3)]
    names, numbers = PAIR.copy_texts(rows)
    assert [*names] == ["a\\tb\\\\c\\nd\\re", r"\N", "plain"]
    assert [*numbers] == ["1", "2", "3"]
    assert [[*texts] for texts in PAIR.copy_texts([])] == [[], []]
    assert PAIR.parameters([]) == {"name": (), "number": ()}


def test_numbers_that_may_be_missing_are_null_in_lines_of_copy() -> None:
    columns = Columns((PAIR[0], Column("number", "int", is_nullable=True)))
    assert [[*texts] for texts in columns.copy_texts([Counted("a", 1), Counted("b", None)])] == [
        ["a", "b"],
        ["1", r"\N"],
    ]
