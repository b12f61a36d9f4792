"""What a Parse Server stores and exports becomes the same object, whatever it was read from."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.operations.parse_import.formats import mongo_documents, rest_objects, table_rows
from backend.operations.parse_import.formats.definitions import (
    ClassDefinition,
    FieldDefinition,
    of_api,
    of_document,
    of_table_row,
)
from backend.operations.parse_import.formats.stored_objects import (
    UnreadableValue,
    digest,
    time_of,
)
from objects.rules import TransferredObject

NOTE = ClassDefinition(
    "Note",
    {
        "at": FieldDefinition("Date"),
        "place": FieldDefinition("GeoPoint"),
        "area": FieldDefinition("Polygon"),
        "picture": FieldDefinition("File"),
        "raw": FieldDefinition("Bytes"),
        "author": FieldDefinition("Pointer", "_User"),
        "readers": FieldDefinition("Relation", "_User"),
        "score": FieldDefinition("Number"),
        "tags": FieldDefinition("Array"),
        "more": FieldDefinition("Object"),
    },
)
OF_API = {
    "objectId": "AbC1234567",
    "createdAt": "2026-01-02T03:04:05.678Z",
    "updatedAt": "2026-01-02T03:04:06.000Z",
    "ACL": {"ann": {"read": True}, "role:Admins": {"read": True, "write": True}, "x": {}},
    "at": {"__type": "Date", "iso": "2020-01-01T00:00:00.123Z"},
    "place": {"__type": "GeoPoint", "latitude": 1.5, "longitude": -2},
    "area": {"__type": "Polygon", "coordinates": [[0, 1], [2, 3], [4, 5], [0, 1]]},
    "picture": {"__type": "File", "name": "a.png", "url": "https://cdn.example.org/a.png"},
    "raw": {"__type": "Bytes", "base64": "AAE="},
    "author": {"__type": "Pointer", "className": "_User", "objectId": "ann"},
    "readers": {"__type": "Relation", "className": "_User"},
    "score": 3,
    "tags": [1.0, {"__type": "Date", "iso": "2020-01-01T00:00:00.000Z"}],
    "more": {"a": {"b": None}},
}
ROW = {
    "objectId": "AbC1234567",
    "createdAt": "2026-01-02T03:04:05.678+00:00",
    "updatedAt": "2026-01-02T04:04:06+01:00",
    "_rperm": ["ann", "role:Admins"],
    "_wperm": ["role:Admins"],
    "at": "2020-01-01T00:00:00.123+00:00",
    "place": "(-2,1.5)",
    "area": "((1,0),(3,2),(5,4),(1,0))",
    "picture": "a.png",
    "raw": {"__type": "Bytes", "base64": "AAE="},
    "author": "ann",
    "score": 3.0,
    "tags": [1, {"__type": "Date", "iso": "2020-01-01T00:00:00.000Z"}],
    "more": {"a": {"b": None}},
    "gone": None,
}
CANONICAL: dict[str, Any] = {
    "_id": "AbC1234567",
    "_created_at": {"$date": {"$numberLong": "1767323045678"}},
    "_updated_at": {"$date": {"$numberLong": "1767323046000"}},
    "_rperm": ["ann", "role:Admins"],
    "_wperm": ["role:Admins"],
    "_acl": {"ann": {"r": True}},
    "at": {"$date": {"$numberLong": "1577836800123"}},
    "place": [{"$numberInt": "-2"}, {"$numberDouble": "1.5"}],
    "area": {"type": "Polygon", "coordinates": [[[1, 0], [3, 2], [5, 4], [1, 0]]]},
    "picture": "a.png",
    "raw": {"$binary": {"base64": "AAE=", "subType": "00"}},
    "_p_author": "_User$ann",
    "score": {"$numberLong": "3"},
    "tags": [{"$numberDouble": "1.0"}, {"$date": "2020-01-01T00:00:00Z"}],
    "more": {"a": {"b": None}},
}
RELAXED = {
    **CANONICAL,
    "_created_at": {"$date": "2026-01-02T03:04:05.678Z"},
    "_updated_at": {"$date": "2026-01-02T03:04:06Z"},
    "at": {"$date": 1577836800123},
    "raw": {"$binary": "AAE=", "$type": "00"},
    "place": [-2, 1.5],
    "score": 3,
}


def nested(levels: int) -> Any:
    value: Any = []
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    "read",
    [
        pytest.param(lambda: table_rows.read(ROW, NOTE), id="PostgreSQL"),
        pytest.param(lambda: mongo_documents.read(CANONICAL, NOTE), id="MongoDB"),
        pytest.param(lambda: mongo_documents.read(RELAXED, NOTE), id="MongoDB, relaxed"),
    ],
)
def test_every_form_is_the_object_that_the_api_shows(read: Any) -> None:
    assert digest(read()) == digest(rest_objects.read(OF_API))


def test_an_object_without_lists_has_no_access_list() -> None:
    row = {name: value for name, value in ROW.items() if name not in ("_rperm", "_wperm")}
    assert table_rows.read(row, NOTE).acl is None


def test_a_missing_list_means_everybody() -> None:
    row = {**ROW, "_rperm": None}
    assert table_rows.read(row, NOTE).acl == {
        "*": {"read": True},
        "role:Admins": {"write": True},
    }


def test_old_documents_have_their_access_list_in_short_form() -> None:
    document = {name: value for name, value in RELAXED.items() if name not in ("_rperm", "_wperm")}
    assert mongo_documents.read(document, NOTE).acl == {"ann": {"read": True}}


def test_secrets_are_apart_from_the_object_and_never_shown() -> None:
    user = ClassDefinition("_User", {})
    hashed = "$2y$10$abc"
    document = {**RELAXED, "_hashed_password": hashed, "_auth_data_google": {"id": "7"}}
    read = mongo_documents.read(document, user)
    assert read.password_hash == hashed
    assert read.fields["authData"] == {"google": {"id": "7"}}
    assert hashed not in repr(read)
    session = mongo_documents.read({**RELAXED, "_session_token": "r:1"}, user)
    assert (session.session_token, "r:1" in repr(session)) == ("r:1", False)
    exported = rest_objects.read({**OF_API, "bcryptPassword": hashed, "sessionToken": "r:1"})
    assert (exported.password_hash, exported.session_token) == (hashed, "r:1")
    assert not {"bcryptPassword", "sessionToken"} & exported.fields.keys()


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({**RELAXED, "_id": {"$oid": 7, "x": []}}, ""),
        ({**RELAXED, "_id": 7}, "_id"),
        ({**RELAXED, "_created_at": "yesterday"}, "_created_at"),
        ({**RELAXED, "_p_author": "ann"}, "_p_author"),
        ({**RELAXED, "place": ["x"]}, "place"),
        ({**RELAXED, "score": {"$numberDouble": "Infinity"}}, "not finite"),
        ({**RELAXED, "score": {"$numberLong": "x"}}, "score"),
        ({**RELAXED, "area": {"type": "Polygon", "coordinates": []}}, "area"),
        ({**RELAXED, "at": {"$date": {"$numberLong": "253402300800000"}}}, "at: .*1 to 9999"),
        ({**RELAXED, "at": {"$date": {"x": 1}}}, "at: .*not a time"),
        ({**RELAXED, "at": {"$date": True}}, "at: .*not a time"),
        ({**RELAXED, "raw": {"$binary": {"subType": "00"}}}, "raw: binary data"),
        ({**RELAXED, "score": {"$numberInt": None}}, "score: not a whole number"),
        ({**RELAXED, "score": {"$numberDecimal": []}}, "score: not a number"),
        ({**RELAXED, "_p_author": {"$oid": "a"}}, "_p_author"),
        ({**RELAXED, "_rperm": [["ann"]]}, "_rperm"),
        ({**RELAXED, "more": nested(300)}, "more: nested too deeply"),
    ],
)
def test_an_unreadable_document_names_the_field(document: Any, message: str) -> None:
    if not message:
        assert mongo_documents.read(document, NOTE).object_id == "7"
        return
    with pytest.raises(UnreadableValue, match=message):
        mongo_documents.read(document, NOTE)


@pytest.mark.parametrize(
    ("column", "value"),
    [("place", "1,2"), ("area", "()"), ("author", 7), ("at", "x"), ("picture", 7)],
)
def test_an_unreadable_row_names_the_column(column: str, value: Any) -> None:
    with pytest.raises(UnreadableValue, match=column):
        table_rows.read({**ROW, column: value}, NOTE)


def test_a_class_is_the_same_from_each_source() -> None:
    permissions = {"find": {"*": True}, "readUserFields": ["author"]}
    api = of_api(
        {
            "className": "Note",
            "fields": {
                "objectId": {"type": "String"},
                "ACL": {"type": "ACL"},
                "author": {"type": "Pointer", "targetClass": "_User"},
                "readers": {"type": "Relation", "targetClass": "_User"},
                "score": {"type": "Number", "required": True, "defaultValue": 3},
            },
            "classLevelPermissions": permissions,
            "indexes": {"_id_": {"_id": 1}, "by_score": {"score": 1}},
        }
    )
    row = of_table_row(
        {
            "className": "Note",
            "schema": {
                "fields": {
                    "_rperm": {"type": "Array"},
                    "author": {"type": "Pointer", "targetClass": "_User"},
                    "readers": {"type": "Relation", "targetClass": "_User"},
                    "score": {"type": "Number", "required": True, "defaultValue": 3},
                },
                "classLevelPermissions": permissions,
                "indexes": {"_id_": {"_id": 1}, "by_score": {"score": 1}},
            },
        }
    )
    document = of_document(
        {
            "_id": "Note",
            "objectId": "string",
            "author": "*_User",
            "readers": "relation<_User>",
            "score": "number",
            "_metadata": {
                "class_permissions": permissions,
                "indexes": {"_id_": {"_id": 1}, "by_score": {"score": 1}},
                "fields_options": {"score": {"required": True, "defaultValue": 3}},
            },
        }
    )
    assert api == row == document
    assert api.relations == ["readers"]


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(["1e999", "NaN", "2020-13-01", "9" * 5000, "_User$ann", "Polygon", 10**400])
)
KEYS = st.text() | st.sampled_from(
    [
        *("$date", "$numberLong", "$numberInt", "$numberDouble", "$numberDecimal", "$oid"),
        *("$binary", "base64", "subType", "$undefined", "iso", "type", "coordinates", "r"),
    ]
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


@given(VALUES)
def test_any_value_of_mongodb_is_read_or_unreadable(value: Any) -> None:
    with contextlib.suppress(UnreadableValue):
        mongo_documents.plain(value)


@pytest.mark.parametrize(
    ("read", "whole"),
    [
        pytest.param(mongo_documents.read, RELAXED, id="MongoDB"),
        pytest.param(table_rows.read, ROW, id="PostgreSQL"),
        pytest.param(lambda row, _: rest_objects.read(row), OF_API, id="API"),
    ],
)
@given(data=st.data())
def test_any_object_is_read_or_unreadable(
    read: Callable[..., TransferredObject], whole: dict[str, Any], data: st.DataObject
) -> None:
    names = st.sampled_from([*whole, "_acl", "_hashed_password", "_auth_data_x", "expiresAt"])
    changes = data.draw(st.dictionaries(names, VALUES, min_size=1, max_size=3))
    absent = data.draw(st.sets(names, max_size=2))
    row = {name: value for name, value in {**whole, **changes}.items() if name not in absent}
    definition = data.draw(st.sampled_from([NOTE, ClassDefinition("_Session", {})]))
    with contextlib.suppress(UnreadableValue):
        digest(read(row, definition))


@given(st.datetimes(), st.integers(-14, 14))
def test_times_keep_their_moment_and_milliseconds(moment: Any, hours: int) -> None:
    if not 2 < moment.year < 9998:
        return
    wire = time_of(f"{moment.isoformat()}{'+' if hours >= 0 else '-'}{abs(hours):02d}:00", "")
    assert time_of(wire, "") == wire
    assert len(wire) == 24


@given(st.dictionaries(st.text(min_size=1), st.integers() | st.floats(allow_nan=False) | st.none()))
def test_digests_ignore_the_order_of_fields_and_the_spelling_of_numbers(fields: Any) -> None:
    def digest_of(values: Any) -> bytes:
        obj = TransferredObject(
            object_id="a", created_at="t", updated_at="t", acl=None, fields=dict(values)
        )
        return digest(obj)

    shuffled = list(fields.items())
    random.shuffle(shuffled)
    spelt = {
        name: float(value) if isinstance(value, int) and abs(value) < 2**50 else value
        for name, value in shuffled
    }
    assert digest_of(fields.items()) == digest_of(spelt.items())
