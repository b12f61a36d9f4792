"""What a write asks for, what its operators make of an object, and what is refused."""

from __future__ import annotations

import copy
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.kernel.errors import (
    CommandUnavailable,
    IncorrectType,
    InvalidACL,
    InvalidJSON,
    InvalidKeyName,
    InvalidNestedKey,
)
from objects.core.access.acl import Acl
from objects.core.schema.definition import ClassSchema, FieldType
from objects.core.update.operations import Times, Write, apply, echo, fit
from objects.core.update.operators import Add, AddUnique, ChangeRelation, Increment, Remove, Set
from objects.core.update.parser import parse_write
from objects.core.values import equal, pointer


def updated(obj, body):
    return apply(parse_write(body, creating=False), obj)


def created(body):
    return apply(parse_write(body, creating=True), {})


def op(name, **arguments):
    return {"__op": name, **arguments}


def test_plain_values_replace_and_unnamed_fields_stay():
    assert updated({"a": 1, "b": 2}, {"a": "x", "c": None}) == {"a": "x", "b": 2, "c": None}


def test_a_write_leaves_the_object_that_it_was_given_as_it_was():
    before = {"a": {"b": {"c": [1]}}, "l": [1]}
    names = copy.deepcopy(before)
    updated(before, {"a.b.c.0": op("Increment", amount=1), "l": op("Add", objects=[2])})
    assert before == names


def test_increment_adds_exactly_and_starts_at_zero():
    increment = op("Increment", amount=3)
    assert updated({"n": 2**70}, {"n": increment}) == {"n": 2**70 + 3}
    assert updated({}, {"n": increment}) == {"n": 3}
    assert updated({"n": None}, {"n": increment}) == {"n": 3}
    assert updated({"n": 0.1}, {"n": op("Increment", amount=0.2)}) == {"n": 0.1 + 0.2}
    assert updated({"n": 0.5}, {"n": op("Increment", amount=0.5)}) == {"n": 1}
    assert updated({"n": 5}, {"n": op("Increment", amount=-7)}) == {"n": -2}


@pytest.mark.parametrize(
    ("stored", "amount"),
    [("5", 1), (True, 1), ([], 1), ({}, 1), (0.5, 10**400), (1.5e308, 1.6e308 + 0.0),
     (10**1000 - 1, 1)],
)  # fmt: skip
def test_increment_of_what_is_no_number_or_beyond_all_numbers_is_refused(stored, amount):
    write = Write({"n": Increment(amount)})
    obj = {"n": stored}
    if stored == 1.5e308:
        write = Write({"n": Increment(1.6e308)})
    with pytest.raises(IncorrectType):
        apply(write, obj)


@pytest.mark.parametrize(
    "amount", [None, "1", True, [1], {"a": 1}, {"__op": "Increment", "amount": 1}]
)
def test_increment_without_a_number_is_refused(amount):
    with pytest.raises(InvalidJSON, match="incrementing must provide a number"):
        parse_write({"n": op("Increment", amount=amount)}, creating=False)
    with pytest.raises(InvalidJSON, match="incrementing must provide a number"):
        parse_write({"n": op("Increment")}, creating=False)


@pytest.mark.parametrize("amount", [float("nan"), float("inf"), 10**1000])
def test_increment_by_a_number_that_cannot_be_stored_is_refused(amount):
    with pytest.raises(IncorrectType):
        parse_write({"n": op("Increment", amount=amount)}, creating=False)


def test_add_keeps_the_order_and_the_duplicates():
    assert updated({"l": [1, 2]}, {"l": op("Add", objects=[3, 2])}) == {"l": [1, 2, 3, 2]}
    assert updated({}, {"l": op("Add", objects=[3])}) == {"l": [3]}


def test_add_unique_adds_what_is_not_there_once():
    add = op("AddUnique", objects=[2, 3, 3, "2", True, {"b": 1, "a": 2.0}])
    assert updated({"l": [1, 2.0, {"a": 2, "b": 1}]}, {"l": add}) == {
        "l": [1, 2.0, {"a": 2, "b": 1}, 3, "2", True]
    }


def test_add_unique_knows_pointers_by_class_and_id():
    stored = [pointer("Game", "a")]
    sent = {"__type": "Object", "className": "Game", "objectId": "a", "score": 1}
    assert updated({"l": stored}, {"l": op("AddUnique", objects=[sent])}) == {"l": stored}


def test_files_are_known_by_their_names():
    stored = {"__type": "File", "name": "a.png", "url": "http://old/a.png"}
    sent = {"__type": "File", "name": "a.png", "url": "http://new/a.png"}
    assert updated({"l": [stored]}, {"l": op("AddUnique", objects=[sent])}) == {"l": [stored]}
    assert updated({"l": [stored]}, {"l": op("Remove", objects=[sent])}) == {"l": []}


def test_remove_takes_out_all_that_is_equal():
    remove = op("Remove", objects=[1, "x"])
    assert updated({"l": [1, 2, 1.0, "x", True]}, {"l": remove}) == {"l": [2, True]}
    assert updated({}, {"l": remove}) == {"l": []}


@pytest.mark.parametrize("name", ["Add", "AddUnique", "Remove"])
@pytest.mark.parametrize("objects", [None, "x", 5, {"a": 1}])
def test_list_operators_need_a_list(name, objects):
    with pytest.raises(InvalidJSON, match="must be an array"):
        parse_write({"l": op(name, objects=objects)}, creating=False)


@pytest.mark.parametrize("name", ["Add", "AddUnique", "Remove"])
def test_list_operators_need_a_list_to_work_on(name):
    with pytest.raises(IncorrectType, match="expected an array"):
        updated({"l": "x"}, {"l": op(name, objects=[1])})


def test_delete_takes_a_field_out_and_does_not_mind_if_it_is_missing():
    assert updated({"a": 1, "b": 2}, {"a": op("Delete"), "z": op("Delete")}) == {"b": 2}


def test_set_on_insert_sets_on_creation_only():
    body = {"a": op("SetOnInsert", amount=5)}
    assert created(body) == {"a": 5}
    assert updated({}, body) == {}
    assert updated({"a": 1}, body) == {"a": 1}


def test_operators_on_creation_start_from_nothing():
    assert created(
        {
            "n": op("Increment", amount=2),
            "l": op("Add", objects=[1]),
            "u": op("AddUnique", objects=[1, 1]),
            "r": op("Remove", objects=[1]),
            "d": op("Delete"),
        }
    ) == {"n": 2, "l": [1], "u": [1], "r": []}


@pytest.mark.parametrize("name", ["Foo", "increment", "", None, 5, ["Increment"], "$inc"])
def test_an_unknown_operator_is_refused(name):
    with pytest.raises(CommandUnavailable, match="operator is not supported yet"):
        parse_write({"a": op(name, amount=1)}, creating=False)


@pytest.mark.parametrize("key", ["objectId", "id"])
def test_the_service_sets_its_own_fields(key):
    for value in ("x", {"__type": "Date", "iso": "2020-01-01"}, op("Delete")):
        with pytest.raises(InvalidKeyName, match=f"{key} is an invalid field name"):
            parse_write({key: value}, creating=False)
    with pytest.raises(InvalidKeyName):
        parse_write({key + ".iso": 1}, creating=False)


@pytest.mark.parametrize("key", ["createdAt", "updatedAt"])
def test_times_of_an_object_are_ignored_if_they_are_dates(key):
    for value in (None, {"__type": "Date", "iso": "2020-01-01"}, op("Delete")):
        for creating in (True, False):
            write = parse_write({key: value, "a": 1}, creating=creating)
            assert (list(write.operations), write.times) == (["a"], None)
    with pytest.raises(InvalidKeyName):
        parse_write({key + ".iso": 1}, creating=False)
    with pytest.raises(IncorrectType, match=rf"^schema mismatch for Note\.{key}; expected Date"):
        parse_write({key: "2020-01-01"}, creating=True, class_name="Note")


def test_times_are_read_where_the_caller_sets_them():
    date = {"__type": "Date", "iso": "2020-01-01"}
    write = parse_write({"createdAt": date}, creating=True, sets_times=True)
    assert write.times == Times("2020-01-01T00:00:00.000Z", "2020-01-01T00:00:00.000Z")
    assert parse_write({"updatedAt": date}, creating=True, sets_times=True).times is None
    assert parse_write({"createdAt": date}, creating=False, sets_times=True).times is None


@pytest.mark.parametrize(
    "key",
    ["", "1a", "a b", "_id", "é", "length", "className", "$set", "a..b", ".a", "a.$b", "ACL.x"],
)
def test_names_that_no_field_may_have_are_refused(key):
    with pytest.raises(InvalidKeyName):
        parse_write({key: 1}, creating=False)


@pytest.mark.parametrize("key", ["__proto__", "constructor", "prototype", "a.constructor"])
def test_keywords_of_javascript_are_no_names(key):
    text = f'Prohibited keyword in request data: {{"key":"{key.rpartition(".")[2]}"}}.'
    with pytest.raises(InvalidKeyName) as refused:
        parse_write({key: 1}, creating=True)
    assert refused.value.message == text


def test_nested_keys_are_checked_below_a_first_harmless_object():
    with pytest.raises(InvalidKeyName, match="Prohibited keyword"):
        parse_write({"a": {"b": 1}, "c": [{"d": {"_bsontype": "Code"}}]}, creating=True)
    with pytest.raises(InvalidNestedKey):
        parse_write({"a": {"b.c": 1}}, creating=True)


@pytest.mark.parametrize("body", [[], "x", 5, True])
def test_a_body_is_an_object(body):
    with pytest.raises(InvalidJSON):
        parse_write(body, creating=True)


def test_an_empty_body_is_an_empty_write():
    assert created(None) == created({}) == {}


def test_dotted_keys_reach_into_objects_at_any_depth():
    stored = {"o": {"b": {"c": 1, "d": 2}, "x": 3}}
    assert updated(stored, {"o.b.c": op("Increment", amount=5)}) == {
        "o": {"b": {"c": 6, "d": 2}, "x": 3}
    }
    assert updated(stored, {"o.b.d": op("Delete"), "o.y": [1]}) == {
        "o": {"b": {"c": 1}, "x": 3, "y": [1]}
    }


def test_dotted_keys_make_the_objects_that_are_missing():
    assert updated({}, {"o.a.b": 1}) == {"o": {"a": {"b": 1}}}
    assert updated({"o": None}, {"o.n": op("Increment", amount=1)}) == {"o": {"n": 1}}
    assert created({"o.l": op("Add", objects=[1])}) == {"o": {"l": [1]}}


def test_a_dotted_delete_makes_nothing():
    assert updated({}, {"o.a.b": op("Delete")}) == {}
    assert updated({"o": {}}, {"o.a.b": op("Delete")}) == {"o": {}}


def test_dotted_keys_reach_into_arrays_by_position():
    stored = {"l": [{"n": 1}, 5]}
    assert updated(stored, {"l.0.n": op("Increment", amount=1), "l.1": 6}) == {"l": [{"n": 2}, 6]}
    assert updated(stored, {"l.2": "end"}) == {"l": [{"n": 1}, 5, "end"]}
    assert updated(stored, {"l.0": op("Delete")}) == {"l": [None, 5]}
    for key in ("l.3", "l.x", "l.-1", "l.9999999999"):
        with pytest.raises(IncorrectType):
            updated(stored, {key: 1})


@pytest.mark.parametrize(
    "value", [5, "x", True, {"__type": "Date", "iso": "2020-01-01T00:00:00.000Z"}]
)
def test_dotted_keys_do_not_reach_into_scalars_and_typed_values(value):
    with pytest.raises(IncorrectType):
        updated({"o": {"a": value}}, {"o.a.iso": "x"})


def test_paths_that_lie_in_one_another_are_refused():
    with pytest.raises(InvalidKeyName, match="conflict"):
        parse_write({"a.b": 1, "a": {}}, creating=False)
    with pytest.raises(InvalidKeyName, match="conflict"):
        parse_write({"a.b.c": 1, "a.b": {}}, creating=False)
    parse_write({"a.b": 1, "a.bc": 1, "ab": 1}, creating=False)


def test_a_dotted_key_does_not_get_around_the_depth_limit():
    deep = 1
    for _ in range(30):
        deep = [deep]
    with pytest.raises(InvalidJSON, match="nested more than"):
        parse_write({".".join("a" * 30): deep}, creating=False)


def test_the_access_list_of_the_body_is_checked_and_applied():
    write = parse_write({"ACL": {"u1": {"read": True, "write": True}}}, creating=True)
    assert write.acl == Acl(("u1",), ("u1",))
    assert apply(write, {}) == {"ACL": {"u1": {"read": True, "write": True}}}
    for body in ({"ACL": None}, {"ACL": op("Delete")}):
        assert updated({"ACL": {}, "a": 1}, body) == {"a": 1}
    assert parse_write({"a": 1}, creating=True).acl is None
    for bad in ("x", {"*": {"read": "x"}}, op("Increment", amount=1)):
        with pytest.raises(InvalidACL):
            parse_write({"ACL": bad}, creating=True)


def relation(name, *ids, class_name="Player"):
    return op(name, objects=[pointer(class_name, object_id) for object_id in ids])


def test_relations_are_changed_by_adding_and_removing_members():
    write = parse_write(
        {
            "r": op(
                "Batch", ops=[relation("AddRelation", "a", "b"), relation("RemoveRelation", "b")]
            )
        },
        creating=False,
    )
    assert write.relations == {"r": ChangeRelation("Player", ("a",), ("b",))}
    assert apply(write, {"x": 1}) == {"x": 1}


def test_a_relation_value_names_the_relation_and_changes_nothing():
    body = {"r": {"__type": "Relation", "className": "Player"}}
    write, new = fit(parse_write(body, creating=True), ClassSchema("Team"))
    assert write.relations == {"r": ChangeRelation("Player")}
    assert new == {"r": FieldType("Relation", "Player")}


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (op("AddRelation", objects="x"), InvalidJSON),
        (op("AddRelation"), InvalidJSON),
        (op("AddRelation", objects=["x"]), IncorrectType),
        (op("AddRelation", objects=[pointer("A", "x"), pointer("B", "x")]), IncorrectType),
        (op("Batch", ops=[op("Increment", amount=1)]), InvalidJSON),
        (op("Batch", ops=[op("Batch", ops=[])]), InvalidJSON),
        (op("Batch", ops="x"), InvalidJSON),
        (op("Batch"), InvalidJSON),
        (op("Batch", ops=["AddRelation"]), InvalidJSON),
    ],
)
def test_malformed_relation_operators_are_refused(value, error):
    with pytest.raises(error):
        parse_write({"r": value}, creating=False)


def test_a_relation_is_no_part_of_a_field():
    related = {"__type": "Relation", "className": "A"}
    for value in (op("SetOnInsert", amount=related), op("Add", objects=[related])):
        with pytest.raises(IncorrectType):
            parse_write({"r": value}, creating=True)
    for value in (relation("AddRelation", "a"), related):
        with pytest.raises((InvalidKeyName, IncorrectType)):
            parse_write({"a.r": value}, creating=False)


def test_deleting_a_relation_empties_it():
    schema = ClassSchema("Team", {"r": FieldType("Relation", "Player")})
    for value in (None, op("Delete")):
        write, new = fit(parse_write({"r": value}, creating=False), schema)
        assert write.relations == {"r": ChangeRelation("Player", clear=True)}
        assert new == {}


SCHEMA = ClassSchema(
    "Game",
    {
        "n": FieldType("Number"),
        "l": FieldType("Array"),
        "o": FieldType("Object"),
        "p": FieldType("Pointer", "_User"),
        "r": FieldType("Relation", "Player"),
        "s": FieldType("String"),
    },
)


@pytest.mark.parametrize(
    ("body", "expected", "got"),
    [
        ({"n": "x"}, "Number", "String"),
        ({"s": op("Increment", amount=1)}, "String", "Number"),
        ({"n": op("Add", objects=[1])}, "Number", "Array"),
        ({"p": pointer("Game", "x")}, "Pointer<_User>", "Pointer<Game>"),
        ({"p": {"a": 1}}, "Pointer<_User>", "Object"),
        ({"r": relation("AddRelation", "x", class_name="B")}, "Relation<Player>", "Relation<B>"),
        ({"r": [1]}, "Relation<Player>", "Array"),
        ({"n": relation("AddRelation")}, "Number", "Relation"),
        ({"n.a": 1}, "Number", "Object"),
        ({"l.a": 1}, "Array", "Object"),
        ({"p.objectId": "x"}, "Pointer<_User>", "Object"),
        ({"n": op("SetOnInsert", amount="x")}, "Number", "String"),
    ],
)
def test_a_write_that_disagrees_with_the_schema_is_refused(body, expected, got):
    name = next(iter(body)).partition(".")[0]
    message = f"schema mismatch for Game.{name}; expected {expected} but got {got}"
    with pytest.raises(IncorrectType, match=message):
        fit(parse_write(body, creating=False), SCHEMA)


def test_a_write_adds_the_fields_that_are_new():
    body = {
        "n": 1,
        "p": None,
        "l.0": 1,
        "o.x": 1,
        "newNull": None,
        "newDeleted": op("Delete"),
        "newNumber": op("Increment", amount=1),
        "newArray": op("Remove", objects=[]),
        "newObject.a.b": 1,
        "newRelation": relation("RemoveRelation", "x"),
        "newPointer": pointer("Game", "x"),
    }
    _, new = fit(parse_write(body, creating=False), SCHEMA)
    assert new == {
        "newNumber": FieldType("Number"),
        "newArray": FieldType("Array"),
        "newObject": FieldType("Object"),
        "newRelation": FieldType("Relation", "Player"),
        "newPointer": FieldType("Pointer", "Game"),
    }


def test_simple_writes_are_told_from_others():
    def is_simple(body):
        return parse_write(body, creating=False).is_simple

    assert is_simple({})
    assert is_simple(
        {"a": 1, "b": op("Delete"), "c": op("Increment", amount=1), "d": op("Add", objects=[1])}
    )
    assert not is_simple({"a": op("AddUnique", objects=[1])})
    assert not is_simple({"a": op("Remove", objects=[1])})
    assert not is_simple({"a": relation("AddRelation", "x")})
    assert not is_simple({"a.b": 1})


def test_a_write_knows_which_fields_it_touches_and_which_it_empties():
    write = parse_write({"a.b": 1, "c": None, "d": "", "e": op("Delete"), "f": 0}, creating=False)
    assert write.field_names == {"a", "c", "d", "e", "f"}
    assert write.emptied == {"c", "d", "e"}


def test_the_answer_shows_what_operators_made_and_nothing_else():
    body = {
        "set": 1,
        "gone": op("Delete"),
        "n": op("Increment", amount=1),
        "l": op("AddUnique", objects=[1]),
        "o.a.n": op("Increment", amount=1),
        "o.a.plain": 1,
        "list.0.n": op("Increment", amount=1),
        "r": relation("AddRelation", "x"),
        "i": op("SetOnInsert", amount=1),
    }
    write = parse_write(body, creating=False)
    after = apply(write, {"n": 1, "l": [1], "o": {"a": {"n": 5, "x": 1}}, "list": [{"n": 1}, 2]})
    assert echo(write, after) == {
        "n": 2,
        "l": [1],
        "o": {"a": {"n": 6}},
        "list": [{"n": 2}, 2],
    }


numbers = st.integers(-(10**30), 10**30) | st.floats(-1e15, 1e15)
scalars = st.none() | st.booleans() | numbers | st.text("ab", max_size=2)


@given(numbers, st.lists(st.integers(-(10**30), 10**30)))
def test_whole_increments_add_up_exactly_in_any_order(start, amounts):
    obj = {"n": start if isinstance(start, int) else 0}
    for amount in amounts:
        obj = apply(Write({"n": Increment(amount)}), obj)
    assert obj["n"] == (start if isinstance(start, int) else 0) + sum(amounts)


@given(numbers, numbers)
def test_increment_commutes_and_is_near_the_true_sum(a, b):
    first = apply(Write({"n": Increment(b)}), {"n": a})["n"]
    second = apply(Write({"n": Increment(a)}), {"n": b})["n"]
    assert first == second
    exact = Decimal(repr(a)) + Decimal(repr(b))
    assert abs(Decimal(repr(first)) - exact) <= max(abs(Decimal(repr(a))), abs(Decimal(repr(b))))


@given(st.lists(scalars), st.lists(scalars))
def test_add_unique_then_remove_leaves_none_of_the_values(start, values):
    grown = apply(Write({"l": AddUnique(tuple(values))}), {"l": start})["l"]
    assert all(any(equal(value, item) for item in grown) for value in values)
    assert grown[: len(start)] == start
    again = apply(Write({"l": AddUnique(tuple(values))}), {"l": grown})["l"]
    assert again == grown
    left = apply(Write({"l": Remove(tuple(values))}), {"l": grown})["l"]
    assert not any(equal(value, item) for value in values for item in left)


@given(st.lists(scalars), st.lists(scalars))
def test_add_appends(start, values):
    assert apply(Write({"l": Add(tuple(values))}), {"l": start}) == {"l": start + values}


@given(st.dictionaries(st.text("abc", min_size=1, max_size=3), scalars, max_size=4))
def test_a_plain_object_is_created_as_it_was_sent(obj):
    write = parse_write(obj, creating=True)
    assert all(isinstance(operation, Set) for operation in write.operations.values())
    assert equal(apply(write, {}), obj)


@given(
    st.dictionaries(
        st.sampled_from(["a", "b.c", "b.d", "d", "ACL"]),
        st.sampled_from(
            [
                1,
                "x",
                None,
                [1, {"k": 2.0}],
                {"k": {"l": 1}},
                op("Delete"),
                op("Increment", amount=1),
            ]
        ),
    ),
    st.sets(st.sampled_from(["a", "b.c", "b.d", "d"])),
)
def test_operations_that_are_parsed_already_make_the_same_write(body, names):
    body = {key: None if key == "ACL" else value for key, value in body.items()}
    write = parse_write(body, creating=True)
    parsed = {name: write.operations[name] for name in names & write.operations.keys()}
    again = parse_write(body, creating=True, parsed=parsed)
    assert again == write
    assert [*again.operations] == [*write.operations]
