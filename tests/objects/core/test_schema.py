"""How classes get their fields, and what may be said about them through /schemas."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.kernel.errors import (
    IncorrectType,
    InvalidClassName,
    InvalidJSON,
    InvalidKeyName,
    InvalidQuery,
    InvalidSchemaOperation,
    ObjectTooLarge,
    ServiceError,
    ValidationFailed,
)
from objects.core.schema.changes import change_schema, class_name_of, new_schema
from objects.core.schema.definition import (
    SYSTEM_FIELDS,
    ClassSchema,
    FieldType,
    IndexDeclaration,
    check_not_emptied,
    check_required,
    empty_schema,
    from_definition,
    with_defaults,
)
from objects.core.schema.inference import MAX_FIELDS, infer, reconcile
from objects.core.values import pointer

GEO = {"__type": "GeoPoint", "latitude": 1, "longitude": 2}
KINDS = ["String", "Number", "Boolean", "Date", "Object", "Array", "GeoPoint", "File", "Bytes",
         "Polygon"]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "type_name"),
    [
        ("x", "String"),
        (1, "Number"),
        (1.5, "Number"),
        (False, "Boolean"),
        ([], "Array"),
        ({}, "Object"),
        (GEO, "GeoPoint"),
        ({"__type": "Date", "iso": "2020-01-01T00:00:00.000Z"}, "Date"),
        ({"__type": "Bytes", "base64": ""}, "Bytes"),
        ({"__type": "File", "name": "x"}, "File"),
        ({"__type": "Polygon", "coordinates": []}, "Polygon"),
        (pointer("Game", "x"), "Pointer<Game>"),
        ({"__type": "Relation", "className": "Game"}, "Relation<Game>"),
    ],
)
def test_the_first_value_makes_the_type_of_a_field(value, type_name):
    assert str(infer(value)) == type_name


def test_null_makes_no_field():
    assert infer(None) is None


def test_new_fields_are_added_and_known_ones_have_to_agree():
    schema = ClassSchema("Foo", {"a": FieldType("Number", required=True)})
    assert reconcile(schema, {"a": FieldType("Number")}) == {}
    assert reconcile(schema, {"b": FieldType("String")}) == {"b": FieldType("String")}
    with pytest.raises(
        IncorrectType, match=r"^schema mismatch for Foo\.a; expected Number but got String$"
    ):
        reconcile(schema, {"a": FieldType("String")})


def test_pointers_agree_by_their_class():
    schema = ClassSchema("Foo", {"p": FieldType("Pointer", "A")})
    assert reconcile(schema, {"p": FieldType("Pointer", "A")}) == {}
    with pytest.raises(IncorrectType, match="expected Pointer<A> but got Pointer<B>"):
        reconcile(schema, {"p": FieldType("Pointer", "B")})


def test_a_class_has_at_most_two_thousand_fields():
    number = FieldType("Number")
    full = ClassSchema("Foo", {f"f{n}": number for n in range(MAX_FIELDS)})
    assert reconcile(full, {"f0": number}) == {}
    with pytest.raises(ObjectTooLarge, match="at most 2,000 fields; Foo has 2,000, and 1 would be"):
        reconcile(full, {"one": number})
    wire = {"type": "Number"}
    assert change_schema(full, {"fields": {"f0": wire}}).after == full
    freed = {"fields": {"f0": {"__op": "Delete"}, "one": wire}}
    assert len(change_schema(full, freed).after.fields) == MAX_FIELDS
    with pytest.raises(ObjectTooLarge):
        change_schema(full, {"fields": {"one": wire}})


def test_a_class_has_one_geopoint():
    schema = ClassSchema("Foo", {"x": FieldType("GeoPoint"), "a": FieldType("Number")})
    message = (
        "currently, only one GeoPoint field may exist in an object. Adding y when x already exists."
    )
    with pytest.raises(IncorrectType, match=message):
        reconcile(schema, {"y": FieldType("GeoPoint")})
    with pytest.raises(IncorrectType, match=message):
        reconcile(ClassSchema("Foo"), {"x": FieldType("GeoPoint"), "y": FieldType("GeoPoint")})
    with pytest.raises(IncorrectType, match=message):
        change_schema(schema, {"fields": {"y": {"type": "GeoPoint"}}})
    assert reconcile(schema, {"x": FieldType("GeoPoint"), "n": FieldType("Number")}) == {
        "n": FieldType("Number")
    }


def test_a_schema_shows_the_fields_that_every_class_has():
    assert empty_schema("Foo").to_wire() == {
        "className": "Foo",
        "fields": {
            "objectId": {"type": "String"},
            "createdAt": {"type": "Date"},
            "updatedAt": {"type": "Date"},
            "ACL": {"type": "ACL"},
        },
        "classLevelPermissions": {
            **{
                action: {"*": True}
                for action in ("find", "get", "count", "create", "update", "delete", "addField")
            },
            "protectedFields": {"*": []},
        },
    }


def test_system_classes_have_their_columns():
    user = empty_schema("_User").to_wire()
    assert user["fields"]["authData"] == {"type": "Object"}
    assert user["classLevelPermissions"]["protectedFields"] == {"*": ["email"]}
    assert empty_schema("_Role").to_wire()["fields"]["users"] == {
        "type": "Relation",
        "targetClass": "_User",
    }
    assert all(empty_schema(name).definition() == {"fields": {}} for name in SYSTEM_FIELDS)


FULL = {
    "className": "Game",
    "fields": {
        "score": {"type": "Number", "required": True, "defaultValue": 5},
        "name": {"type": "String", "unique": True},
        "owner": {"type": "Pointer", "targetClass": "_User"},
        "players": {"type": "Relation", "targetClass": "Player"},
        "editors": {"type": "Array"},
        "at": {"type": "Date", "defaultValue": {"__type": "Date", "iso": "2020-01-01"}},
        "place": {"type": "GeoPoint"},
    },
    "classLevelPermissions": {
        "find": {"*": True},
        "update": {"pointerFields": ["owner", "editors"], "role:Admin": True},
        "protectedFields": {"*": ["score"]},
    },
    "indexes": {
        "byScore": {"score": -1, "name": 1},
        "once": {"fields": {"owner": 1, "createdAt": 1}, "unique": True},
        "search": {"name": "text"},
        "near": {"place": "2dsphere"},
    },
}


def test_a_schema_survives_being_kept():
    schema = new_schema("Game", FULL)
    assert from_definition("Game", schema.definition()) == schema
    assert schema.fields["at"].default == {"__type": "Date", "iso": "2020-01-01T00:00:00.000Z"}


def test_what_a_schema_shows_creates_the_same_class_without_the_fields_of_every_class():
    schema = new_schema("Game", FULL)
    wire = schema.to_wire()
    for name in ("objectId", "createdAt", "updatedAt", "ACL"):
        del wire["fields"][name]
    assert new_schema("Game", wire) == schema


def test_a_shown_schema_can_be_sent_back_as_a_change_of_fields():
    schema = new_schema("Game", FULL)
    assert change_schema(schema, {"fields": schema.to_wire()["fields"]}).after == schema


def test_indexes_are_the_declared_ones_and_one_for_each_unique_field():
    declarations = new_schema("Game", FULL).index_declarations
    assert declarations == {
        "byScore": IndexDeclaration("byScore", (("score", -1), ("name", 1))),
        "once": IndexDeclaration("once", (("owner", 1), ("createdAt", 1)), unique=True),
        "search": IndexDeclaration("search", (("name", "text"),)),
        "near": IndexDeclaration("near", (("place", "2dsphere"),)),
        "_unique_name": IndexDeclaration("_unique_name", (("name", 1),), unique=True),
    }


def test_a_change_keeps_what_it_does_not_name():
    schema = new_schema("Game", FULL)
    change = change_schema(schema, {"fields": {"more": {"type": "Boolean"}}})
    assert change.after.fields == {**schema.fields, "more": FieldType("Boolean")}
    assert change.after.permissions == schema.permissions
    assert change.after.indexes == schema.indexes
    assert (change.added_indexes, change.dropped_indexes, change.removed_fields) == ((), (), ())


def test_a_removed_field_takes_its_indexes_and_permissions_along():
    schema = new_schema("Game", FULL)
    change = change_schema(
        schema,
        {"fields": {"owner": {"__op": "Delete"}, "score": {"__op": "Delete"}}},
    )
    assert change.removed_fields == ("owner", "score")
    assert {index.name for index in change.dropped_indexes} == {"byScore", "once"}
    assert change.after.permissions.rules["update"].pointer_fields == ("editors",)
    assert change.after.permissions.protected_fields == {"*": frozenset()}
    assert from_definition("Game", change.after.definition()) == change.after


def test_the_options_of_a_field_can_be_changed_and_its_type_can_not():
    schema = new_schema("Game", FULL)
    change = change_schema(
        schema,
        {"fields": {"score": {"type": "Number", "unique": True}, "name": {"type": "String"}}},
    )
    assert change.after.fields["score"] == FieldType("Number", unique=True)
    assert [index.name for index in change.added_indexes] == ["_unique_score"]
    assert [index.name for index in change.dropped_indexes] == ["_unique_name"]


def test_indexes_are_added_and_deleted():
    schema = new_schema("Game", FULL)
    change = change_schema(
        schema, {"indexes": {"search": {"__op": "Delete"}, "new": {"at": 1}, "_id_": {"_id": 1}}}
    )
    assert [index.name for index in change.added_indexes] == ["new"]
    assert [index.name for index in change.dropped_indexes] == ["search"]


def test_permissions_are_replaced_as_a_whole():
    schema = new_schema("Game", FULL)
    change = change_schema(schema, {"classLevelPermissions": {"get": {"*": True}}})
    assert change.after.permissions.to_wire() == {
        "find": {}, "get": {"*": True}, "count": {}, "create": {}, "update": {}, "delete": {},
        "addField": {}, "protectedFields": {},
    }  # fmt: skip


SMALL = ClassSchema(
    "Game",
    {
        "n": FieldType("Number"),
        "o": FieldType("Object"),
        "r": FieldType("Relation", "Player"),
        "s": FieldType("String"),
    },
    indexes={"i": IndexDeclaration("i", (("n", 1),))},
)


def fields(**declared):
    return {"fields": declared}


@pytest.mark.parametrize(
    ("body", "error", "code", "message"),
    [
        (fields(x={"type": "Foo"}), IncorrectType, 111, "invalid field type: Foo"),
        (fields(x={"type": "ACL"}), IncorrectType, 111, "invalid field type: ACL"),
        (fields(x={"type": 5}), InvalidJSON, 107, "invalid JSON"),
        (fields(x={}), InvalidJSON, 107, "invalid JSON"),
        (fields(x="String"), InvalidJSON, 107, r"fields\.x"),
        (fields(x={"type": "Pointer"}), ServiceError, 135, "type Pointer needs a class name"),
        (fields(x={"type": "Relation"}), ServiceError, 135, "type Relation needs a class name"),
        (fields(x={"type": "Pointer", "targetClass": 5}), InvalidJSON, 107, "invalid JSON"),
        (
            fields(x={"type": "Pointer", "targetClass": "a b"}),
            InvalidClassName, 103, "Invalid classname: a b",
        ),
        (fields(**{"a b": {"type": "String"}}), InvalidKeyName, 105, "invalid field name: a b"),
        (fields(_x={"type": "String"}), InvalidKeyName, 105, "invalid field name: _x"),
        (fields(objectId={"type": "Number"}), ServiceError, 136, "field objectId cannot be added"),
        (fields(ACL={"type": "String"}), ServiceError, 136, "field ACL cannot be added"),
        (fields(n={"type": "String"}), InvalidSchemaOperation, 255, "Field n exists, cannot"),
        (
            fields(zz={"__op": "Delete"}),
            InvalidSchemaOperation, 255, "Field zz does not exist, cannot delete",
        ),
        (fields(createdAt={"__op": "Delete"}), ServiceError, 136, "field createdAt cannot be"),
        (fields(n={"__op": "Increment"}), InvalidJSON, 107, "expected Delete"),
        (
            fields(x={"type": "Number", "defaultValue": "five"}),
            IncorrectType, 111,
            r"schema mismatch for Game\.x default value; expected Number but got String",
        ),
        (
            fields(x={"type": "Relation", "targetClass": "A", "required": True}),
            IncorrectType, 111, "'required' option is not applicable for Relation<A>",
        ),
        (
            fields(x={"type": "Relation", "targetClass": "A", "defaultValue": []}),
            IncorrectType, 111, "'default value' option is not applicable",
        ),
        (
            fields(x={"type": "Array", "unique": True}),
            IncorrectType, 111, "'unique' option is not applicable for Array",
        ),
        (fields(x={"type": "String", "required": "yes"}), InvalidJSON, 107, "true or false"),
        (fields(x={"type": "String", "nonsense": 1}), InvalidJSON, 107, "unknown option"),
        ({"fields": []}, InvalidJSON, 107, "expected an object"),
        ({"indexes": "x"}, InvalidJSON, 107, "expected an object"),
        ({"nonsense": 1}, InvalidJSON, 107, "unknown part"),
        ([], InvalidJSON, 107, "expected an object"),
        ({"indexes": {"i": {"n": 1}}}, InvalidQuery, 102, "Index i exists, cannot update"),
        (
            {"indexes": {"j": {"__op": "Delete"}}},
            InvalidQuery, 102, "Index j does not exist, cannot delete",
        ),
        ({"indexes": {"i": {"__op": "Drop"}}}, InvalidJSON, 107, "expected Delete"),
        (
            {"indexes": {"j": {"zz": 1}}},
            InvalidQuery, 102, "Field zz does not exist, cannot add index",
        ),
        ({"indexes": {"j": {"n": 2}}}, InvalidQuery, 102, r'indexes\.j\.n: expected 1, -1'),
        ({"indexes": {"j": {"n": True}}}, InvalidQuery, 102, "expected 1, -1"),
        ({"indexes": {"j": {"n": "text"}}}, InvalidQuery, 102, "can't be indexed"),
        ({"indexes": {"j": {"r": 1}}}, InvalidQuery, 102, "can't be indexed"),
        ({"indexes": {"j": {"s": "2dsphere"}}}, InvalidQuery, 102, "can't be indexed"),
        ({"indexes": {"j": {}}}, InvalidQuery, 102, "1 to 16 fields"),
        ({"indexes": {"j": 1}}, InvalidJSON, 107, "expected an object"),
        ({"indexes": {"j'; drop": {"n": 1}}}, InvalidQuery, 102, "Invalid index name"),
        ({"indexes": {"_unique_n": {"n": 1}}}, InvalidQuery, 102, "Invalid index name"),
        ({"indexes": {"j": {"fields": {"s": "text"}, "unique": True}}}, InvalidQuery, 102, "expec"),
        ({"indexes": {"j": {"fields": {"n": 1}, "unique": 1}}}, InvalidJSON, 107, "true or false"),
        ({"indexes": {"j": {"fields": {"n": 1}, "sparse": True}}}, InvalidJSON, 107, "nothing"),
    ],
)  # fmt: skip
def test_what_a_schema_may_not_say(body, error, code, message):
    with pytest.raises(error, match=message) as refused:
        change_schema(SMALL, body)
    assert refused.value.code == code


def test_a_new_class_can_not_redeclare_its_default_columns():
    with pytest.raises(ServiceError, match="field objectId cannot be added") as refused:
        new_schema("Foo", fields(objectId={"type": "String"}))
    assert refused.value.code == 136
    with pytest.raises(ServiceError, match="field username cannot be added"):
        new_schema("_User", fields(username={"type": "String"}))


def test_the_class_of_a_request_is_named_in_its_path_or_its_body():
    assert class_name_of("Foo", None) == "Foo"
    assert class_name_of(None, {"className": "Foo"}) == "Foo"
    assert class_name_of("Foo", {"className": "Foo"}) == "Foo"
    with pytest.raises(InvalidClassName, match="Class name mismatch between Bar and Foo"):
        class_name_of("Foo", {"className": "Bar"})
    with pytest.raises(ServiceError) as refused:
        class_name_of(None, {})
    assert refused.value.code == 135
    with pytest.raises(InvalidClassName):
        class_name_of("a b", None)


def test_a_new_object_gets_the_defaults_of_the_fields_that_it_lacks():
    schema = ClassSchema(
        "Foo", {"a": FieldType("Array", default=[1]), "b": FieldType("Boolean", default=True)}
    )
    obj = with_defaults(schema, {"b": False, "c": 1})
    assert obj == {"a": [1], "b": False, "c": 1}
    obj["a"].append(2)
    assert with_defaults(schema, {"a": None}) == {"a": [1], "b": True}


@pytest.mark.parametrize("obj", [{}, {"a": None}, {"a": ""}])
def test_a_required_field_has_a_value(obj):
    schema = ClassSchema("Foo", {"a": FieldType("String", required=True)})
    with pytest.raises(ValidationFailed, match="a is required"):
        check_required(schema, obj)
    with pytest.raises(ValidationFailed, match="a is required"):
        check_not_emptied(schema, {"a"})
    check_required(schema, {"a": "x"})
    check_not_emptied(schema, {"b"})


@given(
    st.dictionaries(
        st.from_regex(r"[a-z]{2,5}", fullmatch=True),
        st.tuples(st.sampled_from(KINDS), st.booleans()),
        max_size=5,
    )
)
def test_any_declared_class_is_kept_as_declared(declared):
    if sum(kind == "GeoPoint" for kind, _ in declared.values()) > 1:
        return
    body = {n: {"type": kind, "required": required} for n, (kind, required) in declared.items()}
    schema = new_schema("Foo", {"fields": body})
    assert from_definition("Foo", schema.definition()) == schema
    assert change_schema(schema, {"fields": body}).after == schema
