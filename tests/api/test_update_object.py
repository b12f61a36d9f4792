"""PUT /classes/{ClassName}/{objectId}: plain values, update operators, what is answered."""

from __future__ import annotations

import re

import pytest

from tests.rest import Api


def increment(amount):
    return {"__op": "Increment", "amount": amount}


def listed(name, *values):
    return {"__op": name, "objects": list(values)}


DELETE = {"__op": "Delete"}


class Stored:
    """One object, and what updates make of it."""

    def __init__(self, api: Api, **fields: object) -> None:
        self.api = api
        self.path = f"/classes/Game/{api.make('Game', **fields)}"

    def put(self, **changes):
        reply = self.api.put(self.path, changes)
        assert reply.status == 200, reply.json
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", reply.json["updatedAt"])
        return {name: value for name, value in reply.json.items() if name != "updatedAt"}

    def refuse(self, **changes):
        before = self.fields()
        reply = self.api.put(self.path, changes)
        assert self.fields() == before
        return reply.error

    def fields(self):
        return self.api.get(self.path).json

    def __getitem__(self, name):
        return self.fields()[name]

    def __contains__(self, name):
        return name in self.fields()


@pytest.fixture
def game(master):
    return Stored(
        master,
        score=1,
        name="chess",
        tags=["a", "b", "a"],
        place={"x": 1, "deep": {"y": 2, "list": [1, 2]}},
    )


def test_answers_the_time_of_the_change_alone(game):
    before = game.fields()
    assert game.put(name="go") == {}
    after = game.fields()
    assert after["createdAt"] == before["createdAt"]
    assert after["updatedAt"] > before["updatedAt"]


def test_fields_that_are_not_named_stay(game):
    before = game.fields()
    game.put(name="go")
    after = game.fields()
    assert {**after, "name": 0, "updatedAt": 0} == {**before, "name": 0, "updatedAt": 0}


def test_an_empty_body_changes_the_time_alone(game):
    before = game.fields()
    assert game.put() == {}
    assert {**game.fields(), "updatedAt": 0} == {**before, "updatedAt": 0}


def test_updated_at_never_runs_backwards(game):
    stamps = [game.api.put(game.path, {"score": n}).json["updatedAt"] for n in range(5)]
    assert stamps == sorted(stamps)


def test_a_new_field_is_added_to_the_class(game):
    game.put(fresh=True)
    assert game.api.get("/schemas/Game").json["fields"]["fresh"] == {"type": "Boolean"}
    assert game["fresh"] is True


def test_null_is_a_value(game):
    game.put(name=None)
    assert game["name"] is None


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"score": "many"}, (400, 111)),
        ({"score": increment("1")}, (400, 107)),
        ({"name": increment(1)}, (400, 111)),
        ({"name": listed("Add", 1)}, (400, 111)),
        ({"tags": increment(1)}, (400, 111)),
        ({"place": [1]}, (400, 111)),
        ({"score.x": 1}, (400, 111)),
        ({"objectId": "other12345"}, (400, 105)),
        ({"createdAt": "2020-01-01T00:00:00.000Z"}, (400, 111)),
        ({"id": "x"}, (400, 105)),
        ({"place.x": 1, "place": {}}, (400, 105)),
        ({"__proto__": 1}, (400, 105)),
        ({"name": "a\x00b"}, (400, 111)),
        ({"place": {"a.b": 1}}, (400, 121)),
        ({"place": {"$a": 1}}, (400, 121)),
        ({"ACL": "x"}, (400, 123)),
    ],
)
def test_a_refused_update_changes_nothing(game, change, error):
    assert game.refuse(**change) == error


def test_a_missing_object_is_404(master, game):
    assert master.put("/classes/Game/aaaaaaaaaa", {"score": 1}).error == (404, 101)
    assert master.put("/classes/Nothing/aaaaaaaaaa", {"score": 1}).error == (404, 101)


def test_an_update_of_a_missing_object_adds_no_field(master, game):
    assert master.put("/classes/Game/aaaaaaaaaa", {"fresh": 1}).error == (404, 101)
    assert "fresh" not in master.get("/schemas/Game").json["fields"]


def test_an_object_that_may_not_be_written_is_404(client, game):
    game.put(ACL={"*": {"read": True}})
    assert client.get(game.path).status == 200
    assert client.put(game.path, {"score": 2}).error == (404, 101)
    assert game["score"] == 1


def test_an_object_that_may_be_written_need_not_be_readable(client, game):
    game.put(ACL={"*": {"write": True}})
    assert client.put(game.path, {"score": 2}).status == 200
    assert game["score"] == 2


def test_an_acl_is_replaced_and_taken_away(client, game):
    acl = {"user123456": {"read": True, "write": True}}
    game.put(ACL=acl)
    assert game["ACL"] == acl
    assert client.get(game.path).error == (404, 101)
    game.put(ACL=DELETE)
    assert "ACL" not in game
    assert client.get(game.path).status == 200


def test_an_update_without_an_acl_keeps_it(game):
    game.put(ACL={"*": {"read": True}})
    game.put(score=5)
    game.put(tags=listed("AddUnique", "z"))
    assert game["ACL"] == {"*": {"read": True}}


def test_a_put_may_be_sent_as_a_post(game):
    reply = game.api.post(game.path, {"_method": "PUT", "score": 7})
    assert reply.status == 200
    assert game["score"] == 7


# -- Operators ------------------------------------------------------------------------------------


def test_increment_adds_and_is_echoed(game):
    assert game.put(score=increment(5)) == {"score": 6}
    assert game.put(score=increment(-7)) == {"score": -1}
    assert game["score"] == -1


def test_increment_of_a_missing_field_starts_at_zero(game):
    assert game.put(count=increment(3)) == {"count": 3}
    game.put(score=None)
    assert game.put(score=increment(3)) == {"score": 3}


def test_increment_is_exact_for_whole_numbers_of_any_size(game):
    game.put(score=2**100)
    assert game.put(score=increment(1)) == {"score": 2**100 + 1}
    assert game.put(score=increment(2**90)) == {"score": 2**100 + 2**90 + 1}


def test_increment_by_a_fraction_is_that_of_doubles(game):
    game.put(score=0.1)
    assert game.put(score=increment(0.2)) == {"score": 0.1 + 0.2}
    assert game.put(score=increment(1)) == {"score": 0.1 + 0.2 + 1}


def test_add_appends_in_order_and_keeps_duplicates(game):
    assert game.put(tags=listed("Add", "c", "a")) == {"tags": ["a", "b", "a", "c", "a"]}
    assert game["tags"] == ["a", "b", "a", "c", "a"]


def test_add_unique_appends_what_is_not_there(game):
    assert game.put(tags=listed("AddUnique", "b", "c", "c")) == {"tags": ["a", "b", "a", "c"]}


def test_add_unique_knows_numbers_objects_and_pointers_by_value(game):
    pointer = {"__type": "Pointer", "className": "Player", "objectId": "abcdefghij"}
    game.put(list=[1, {"a": 1, "b": 2}, pointer])
    echoed = game.put(list=listed("AddUnique", 1.0, {"b": 2, "a": 1}, pointer, True))
    assert echoed == {"list": [1, {"a": 1, "b": 2}, pointer, True]}


def test_remove_takes_out_all_that_are_equal(game):
    assert game.put(tags=listed("Remove", "a", "zzz")) == {"tags": ["b"]}


@pytest.mark.parametrize(("name", "result"), [("Add", [1]), ("AddUnique", [1]), ("Remove", [])])
def test_list_operators_start_from_an_empty_list(game, name, result):
    assert game.put(fresh=listed(name, 1)) == {"fresh": result}
    game.put(tags=None)
    assert game.put(tags=listed(name, 1)) == {"tags": result}


def test_delete_unsets_and_is_not_echoed(game):
    assert game.put(name=DELETE, nothing=DELETE) == {}
    assert "name" not in game


def test_set_on_insert_changes_nothing_of_an_object_that_is_there(game):
    game.put(score={"__op": "SetOnInsert", "amount": 99})
    assert game["score"] == 1


def test_several_operators_work_in_one_update(game):
    echoed = game.put(
        score=increment(1), tags=listed("Add", "c"), name=DELETE, fresh="new", place={"x": 2}
    )
    assert echoed == {"score": 2, "tags": ["a", "b", "a", "c"]}
    after = game.fields()
    assert after["fresh"] == "new"
    assert after["place"] == {"x": 2}
    assert "name" not in after


@pytest.mark.parametrize("count", [1, 20, 21, 50, 51, 500])
def test_any_number_of_fields_is_computed_in_one_update(master, count):
    stored = Stored(master, **{f"n{n}": n for n in range(0, count, 2)})
    sums = {f"n{n}": (n if n % 2 == 0 else 0) + 1 for n in range(count)}
    assert stored.put(**dict.fromkeys(sums, increment(1))) == sums
    lists = {f"l{n}": [n, n] for n in range(count)}
    assert stored.put(**{name: listed("Add", *value) for name, value in lists.items()}) == lists
    assert stored.put(**dict.fromkeys(lists, DELETE)) == {}
    remaining = stored.fields()
    assert {name: remaining.get(name) for name in [*sums, *lists]} == sums | dict.fromkeys(lists)


def test_an_update_names_at_most_ten_thousand_fields_and_keys(game):
    for name in ("f{}", "info.f{}"):
        body = {name.format(n): DELETE for n in range(10_001)}
        assert game.refuse(**body) == (413, 116)
    game.put(**{f"info.f{n}": n for n in range(10_000)})
    assert len(game.fields()["info"]) == 10_000


def test_a_class_has_at_most_two_thousand_fields(master):
    many = {f"f{n}": n for n in range(2_001)}
    assert master.post("/classes/Wide", many).error == (413, 116)
    assert master.get("/schemas/Wide").status == 400
    del many["f0"]
    stored = Stored(master, **many)
    assert stored.refuse(one=1) == (413, 116)
    assert stored.refuse(one={"__op": "SetOnInsert", "amount": 1}, f1=DELETE) == (413, 116)
    assert stored.put(f1=increment(1)) == {"f1": 2}
    added = {"fields": {"one": {"type": "String"}}}
    assert master.put("/schemas/Game", added).error == (413, 116)


def test_operators_succeed_or_fail_together(game):
    game.put(odd={"x": "text"})
    assert game.refuse(score=increment(1), **{"odd.x": increment(1)}) == (400, 111)
    assert game.refuse(tags=listed("Add", "c"), name=listed("AddUnique", 1)) == (400, 111)


# -- Inside of objects ----------------------------------------------------------------------------


def test_a_dotted_key_changes_one_value_inside(game):
    assert game.put(**{"place.deep.y": 3}) == {}
    assert game["place"] == {"x": 1, "deep": {"y": 3, "list": [1, 2]}}


def test_a_dotted_key_makes_the_objects_on_the_way(game):
    game.put(**{"place.a.b.c": 1, "fresh.z": 2})
    assert game["place"]["a"] == {"b": {"c": 1}}
    assert game["fresh"] == {"z": 2}


def test_operators_work_inside_of_objects_and_are_echoed_nested(game):
    assert game.put(**{"place.deep.y": increment(5)}) == {"place": {"deep": {"y": 7}}}
    assert game.put(**{"place.deep.list": listed("Add", 3)}) == {
        "place": {"deep": {"list": [1, 2, 3]}}
    }
    assert game.put(**{"place.deep.new": increment(1)}) == {"place": {"deep": {"new": 1}}}
    game.put(**{"place.x": DELETE})
    assert game["place"] == {"deep": {"y": 7, "list": [1, 2, 3], "new": 1}}


def test_two_paths_into_one_object_are_both_changed(game):
    echoed = game.put(**{"place.x": increment(1), "place.deep.y": increment(1)})
    assert echoed == {"place": {"x": 2, "deep": {"y": 3}}}


def test_a_dotted_key_reaches_an_element_of_an_array(game):
    game.put(**{"tags.1": "B"})
    assert game["tags"] == ["a", "B", "a"]


@pytest.mark.parametrize(
    "key", [".x", "place.", "place..x", "place.$x", "place.__proto__", "ACL.x", "objectId.x"]
)
def test_a_bad_dotted_key_is_105(game, key):
    assert game.refuse(**{key: 1}) == (400, 105)


def test_an_object_may_be_sent_back_as_a_whole(master):
    object_id = master.make("Game", score=1)
    stored = master.get(f"/classes/Game/{object_id}").json
    times = {name: {"__type": "Date", "iso": stored[name]} for name in ("createdAt", "updatedAt")}
    body = {**stored, **times, "score": 2}
    assert master.put(f"/classes/Game/{object_id}", body).status == 200
    after = master.get(f"/classes/Game/{object_id}").json
    assert (after["score"], after["createdAt"]) == (2, stored["createdAt"])
    other = master.put(f"/classes/Game/{object_id}", {**body, "objectId": "another000"})
    assert other.error == (400, 105)
