"""From rows to objects: names, types, dates, points."""

from __future__ import annotations

import pytest

from objects.exchange.problems import BadRow
from objects.exchange.row_objects import Column, RowMapping, camel_case, infer_columns


def fields(mapping: RowMapping, **row: object) -> dict[str, object]:
    return mapping.apply(row)[1]


def mapped(column: Column, value: object) -> object:
    return fields(RowMapping({"f": column}), f=value)["f"]


def test_values_without_a_type_are_taken_as_they_are():
    row = {"a": 1, "b": [True, None], "c": {"__type": "Date", "iso": "2026-01-01T00:00:00.000Z"}}
    assert fields(RowMapping(), **row) == row


@pytest.mark.parametrize(
    ("kind", "value", "wire"),
    [
        ("String", 7, "7"),
        ("String", True, "true"),
        ("String", 1.5, "1.5"),
        ("Number", "7", 7),
        ("Number", "-0.5e3", -500.0),
        ("Number", str(2**70), 2**70),
        ("Boolean", "True", True),
        ("Boolean", False, False),
        ("Array", "[1]", [1]),
        ("Object", '{"a": 1}', {"a": 1}),
        ("Array", [1], [1]),
    ],
)
def test_a_type_converts_what_fits(kind, value, wire):
    converted = mapped(Column(kind), value)
    assert converted == wire
    assert type(converted) is type(wire)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("String", [1]),
        ("Number", "7 apples"),
        ("Number", ""),
        ("Number", "nan"),
        ("Number", "1e999"),
        ("Number", True),
        ("Boolean", "yes"),
        ("Boolean", 1),
        ("Date", "Jun 12 1998"),
        ("Date", 5),
        ("Array", "{}"),
        ("Object", "not json"),
        ("Pointer", 5),
    ],
)
def test_what_doesnt_fit_is_a_bad_row_that_names_the_field(kind, value):
    with pytest.raises(BadRow, match=r"^f: "):
        mapped(Column(kind, target_class="Person"), value)


@pytest.mark.parametrize(
    ("column", "value", "iso"),
    [
        (Column("Date"), "2026-02-03", "2026-02-03T00:00:00.000Z"),
        (Column("Date"), "2026-02-03T04:05:06.789+02:00", "2026-02-03T02:05:06.789Z"),
        (Column("Date"), "2026-02-03T04:05:06Z", "2026-02-03T04:05:06.000Z"),
        (Column("Date", "%b %d %Y"), "Jun 12 1998", "1998-06-12T00:00:00.000Z"),
    ],
)
def test_dates_become_points_in_time_in_utc(column, value, iso):
    assert mapped(column, value) == {"__type": "Date", "iso": iso}


def test_a_date_that_isn_t_of_its_format_is_a_bad_row():
    with pytest.raises(BadRow, match="released"):
        fields(RowMapping({"released": Column("Date", "%Y")}), released="June")


def test_a_pointer_is_made_of_an_object_id():
    assert mapped(Column("Pointer", target_class="Person"), "abc") == {
        "__type": "Pointer",
        "className": "Person",
        "objectId": "abc",
    }


def test_two_columns_make_a_geopoint():
    mapping = RowMapping(geopoints={"place": ("lat", "lng")})
    assert fields(mapping, name="x", lat="1.5", lng=-2) == {
        "name": "x",
        "place": {"__type": "GeoPoint", "latitude": 1.5, "longitude": -2},
    }


def test_without_both_columns_there_is_no_geopoint():
    mapping = RowMapping(geopoints={"place": ("lat", "lng")})
    assert fields(mapping, name="x") == {"name": "x"}
    with pytest.raises(BadRow, match="place"):
        fields(mapping, lat=1.0)


@pytest.mark.parametrize(
    ("column", "field"),
    [
        ("US Gross", "usGross"),
        ("IMDB Rating", "imdbRating"),
        ("Title", "title"),
        ("running_time_min", "runningTimeMin"),
        ("isActive", "isActive"),
        ("Area (km2)", "areaKm2"),
    ],
)
def test_camel_case_makes_a_field_of_a_heading(column, field):
    assert camel_case(column) == field


def test_columns_are_renamed_ignored_and_put_into_camel_case():
    mapping = RowMapping(
        renamed={"US Gross": "gross"}, ignored=frozenset({"Notes", "seen"}), camel_case=True
    )
    row = {"US Gross": 1, "Major Genre": "x", "Notes": "n", "Seen": 1, "objectId": "a"}
    assert mapping.apply(row) == ("a", {"gross": 1, "majorGenre": "x"})


def test_a_name_that_no_field_may_have_says_what_helps():
    with pytest.raises(BadRow, match="'US Gross' is no name for a field: --camel-case"):
        fields(RowMapping(), **{"US Gross": 1})


def test_two_columns_for_one_field_are_a_bad_row():
    with pytest.raises(BadRow, match="title"):
        RowMapping(renamed={"name": "title"}).apply({"title": 1, "name": 2})


def test_times_that_the_service_sets_are_left_out():
    row = {"objectId": "a", "createdAt": "x", "updatedAt": "y", "ACL": {"*": {"read": True}}}
    assert RowMapping().apply(row) == ("a", {"ACL": {"*": {"read": True}}})


def test_the_id_may_be_in_another_field():
    assert RowMapping(id_field="iata").apply({"iata": "ZRH", "name": "Zurich"}) == (
        "ZRH",
        {"name": "Zurich"},
    )


def test_a_column_has_the_type_that_all_its_texts_have():
    columns = infer_columns(
        [
            {"n": "1", "zip": "8001", "flag": "true", "at": "2026-01-01T00:00:00Z", "mixed": "1"},
            {"n": "-2.5", "zip": "00501", "flag": "false", "mixed": "x", "late": "3"},
        ]
    )
    assert {name: column.kind for name, column in columns.items()} == {
        "n": "Number",
        "zip": "String",
        "flag": "Boolean",
        "at": "Date",
        "mixed": "String",
        "late": "Number",
    }


@pytest.mark.parametrize(
    "text", ["1e999", "+1", "1,000", "0x10", "1_000", "NaN", "2026-01-01", "yes"]
)
def test_a_text_in_doubt_stays_a_string(text):
    assert infer_columns([{"c": text}])["c"].kind == "String"
