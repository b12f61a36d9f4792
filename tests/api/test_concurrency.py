"""Many callers at the same time: nothing lost, nothing half done, never a 500."""

from __future__ import annotations

import threading
from functools import partial

import pytest

from tests.rest import CLIENT, MASTER, Api
from tests.threads import at_once

pytestmark = pytest.mark.django_db(transaction=True)


def master() -> Api:
    return Api(MASTER)


def client() -> Api:
    return Api(CLIENT)


def outcomes(replies):
    """How many succeeded, and the codes of the others; each failure is a proper error."""
    codes = []
    for reply in replies:
        if reply.status in (200, 201):
            codes.append(0)
        else:
            assert set(reply.json) == {"code", "error"}, reply.json
            assert reply.status < 500, reply.json
            codes.append(reply.json["code"])
    return codes


def test_200_increments_by_20_callers_give_exactly_200():
    object_id = master().make("Game", score=0)

    def ten_times():
        body = {"score": {"__op": "Increment", "amount": 1}}
        return [client().put(f"/classes/Game/{object_id}", body) for _ in range(10)]

    replies = [reply for replies in at_once([ten_times] * 20) for reply in replies]
    assert outcomes(replies) == [0] * 200
    assert sorted(reply.json["score"] for reply in replies) == list(range(1, 201))
    assert client().get(f"/classes/Game/{object_id}").json["score"] == 200


def test_values_added_to_one_list_at_once_are_all_there():
    object_id = master().make("Game", tags=[], place={"list": []}, seen=[])

    def add(number):
        body = {
            "tags": {"__op": "Add", "objects": [number]},
            "place.list": {"__op": "Add", "objects": [number]},
            "seen": {"__op": "AddUnique", "objects": [number % 5]},
        }
        return client().put(f"/classes/Game/{object_id}", body)

    assert outcomes(at_once([partial(add, n) for n in range(20)])) == [0] * 20
    stored = client().get(f"/classes/Game/{object_id}").json
    assert sorted(stored["tags"]) == sorted(stored["place"]["list"]) == list(range(20))
    assert sorted(stored["seen"]) == list(range(5))


def test_updates_of_different_fields_at_once_are_all_kept():
    object_id = master().make("Game", **{f"f{n}": 0 for n in range(16)})
    puts = [
        partial(client().put, f"/classes/Game/{object_id}", {f"f{n}": n + 1}) for n in range(16)
    ]
    assert outcomes(at_once(puts)) == [0] * 16
    stored = client().get(f"/classes/Game/{object_id}").json
    assert [stored[f"f{n}"] for n in range(16)] == list(range(1, 17))


def test_a_new_field_written_first_by_many_at_once_with_one_type_takes_them_all():
    master().make("Game")
    creates = [partial(client().post, "/classes/Game", {"fresh": n}) for n in range(12)]
    assert outcomes(at_once(creates)) == [0] * 12
    results = client().results("Game", where={"fresh": {"$exists": True}})
    assert sorted(obj["fresh"] for obj in results) == list(range(12))
    assert master().get("/schemas/Game").json["fields"]["fresh"] == {"type": "Number"}


def test_a_new_field_written_first_by_many_at_once_with_different_types_takes_one_type():
    master().make("Game")
    values = [1, "text", True, [1]] * 3
    creates = [partial(client().post, "/classes/Game", {"fresh": value}) for value in values]
    codes = outcomes(at_once(creates))
    assert set(codes) == {0, 111}
    assert codes.count(0) == 3
    stored = client().results("Game", where={"fresh": {"$exists": True}})
    assert len(stored) == 3
    assert len({type(obj["fresh"]) for obj in stored}) == 1


def test_different_new_fields_written_at_once_are_all_added():
    object_id = master().make("Game")
    puts = [partial(client().put, f"/classes/Game/{object_id}", {f"n{n}": n}) for n in range(12)]
    assert outcomes(at_once(puts)) == [0] * 12
    fields = master().get("/schemas/Game").json["fields"]
    assert {f"n{n}" for n in range(12)} < set(fields)


def test_a_class_written_first_by_many_at_once_is_made_once():
    creates = [partial(master().post, "/classes/Fresh", {"score": n}) for n in range(12)]
    assert outcomes(at_once(creates)) == [0] * 12
    assert len(master().results("Fresh")) == 12
    names = [schema["className"] for schema in master().get("/schemas").json["results"]]
    assert names.count("Fresh") == 1


def test_a_class_declared_by_many_at_once_is_made_once():
    creates = [partial(master().post, "/schemas/Fresh", {})] * 8
    assert sorted(outcomes(at_once(creates))) == [0] + [103] * 7


def test_a_unique_value_is_taken_by_exactly_one_of_many():
    fields = {"name": {"type": "String", "unique": True}, "score": {"type": "Number"}}
    master().post("/schemas/Game", {"fields": fields})
    creates = [
        partial(client().post, "/classes/Game", {"name": "a", "score": n}) for n in range(12)
    ]
    codes = outcomes(at_once(creates))
    assert sorted(codes) == [0] + [137] * 11
    assert len(client().results("Game")) == 1


def test_one_object_is_deleted_by_exactly_one_of_many():
    object_id = master().make("Game", score=1)
    codes = outcomes(at_once([partial(client().delete, f"/classes/Game/{object_id}")] * 8))
    assert sorted(codes) == [0] + [101] * 7


def test_relations_changed_at_once_have_every_member():
    players = [master().make("Player") for _ in range(10)]
    game = master().make("Game", players={"__type": "Relation", "className": "Player"})

    def add(first):
        pointers = [
            {"__type": "Pointer", "className": "Player", "objectId": player}
            for player in (players[first], players[(first + 1) % 10])
        ]
        body = {"players": {"__op": "AddRelation", "objects": pointers}}
        return client().put(f"/classes/Game/{game}", body)

    assert outcomes(at_once([partial(add, n) for n in range(10)])) == [0] * 10
    owner = {"__type": "Pointer", "className": "Game", "objectId": game}
    where = {"$relatedTo": {"object": owner, "key": "players"}}
    assert len(client().results("Player", where=where)) == 10


def test_a_field_removed_while_others_write_it_leaves_no_stray_value():
    for n in range(5):
        master().make("Game", score=n, kept=1)

    def write():
        return [client().post("/classes/Game", {"score": n, "kept": 1}) for n in range(12)]

    def remove():
        return [
            master().put("/schemas/Game", {"fields": {"score": {"__op": "Delete"}}})
            for _ in range(3)
        ]

    replies = [reply for replies in at_once([write, write, write, remove]) for reply in replies]
    assert set(outcomes(replies)) <= {0, 255, 251}
    master().put("/schemas/Game", {"fields": {"score": {"__op": "Delete"}}})
    assert "score" not in master().get("/schemas/Game").json["fields"]
    objects = master().results("Game", limit=1000)
    assert all(obj["kept"] == 1 and "score" not in obj for obj in objects)
    assert master().make("Game", score="another type")


def test_schemas_changed_at_once_keep_every_change():
    master().make("Game")
    changes = [
        partial(master().put, "/schemas/Game", {"fields": {f"n{n}": {"type": "Number"}}})
        for n in range(8)
    ]
    assert outcomes(at_once(changes)) == [0] * 8
    fields = master().get("/schemas/Game").json["fields"]
    assert {f"n{n}" for n in range(8)} < set(fields)


def test_transactions_in_conflicting_order_are_done_wholly_or_not_at_all():
    ids = [master().make("Account", balance=0, moves=0) for _ in range(3)]

    def transfer(first, second, number):
        steps = [
            ("PUT", ids[first], {"balance": {"__op": "Increment", "amount": -1}}),
            ("PUT", ids[second], {"balance": {"__op": "Increment", "amount": 1}}),
        ]
        requests = [
            {"method": method, "path": f"/api/classes/Account/{object_id}", "body": body}
            for method, object_id, body in steps
        ]
        made = {"method": "POST", "path": "/api/classes/Move", "body": {"number": number}}
        return client().post("/batch", {"requests": [*requests, made], "transaction": True})

    master().post("/schemas/Move", {"fields": {"number": {"type": "Number"}}})
    transfers = [partial(transfer, n % 3, (n + 1 + n % 2) % 3, n) for n in range(6)]
    codes = outcomes(at_once(transfers))
    assert set(codes) <= {0, 251}
    assert 0 in codes
    done = {move["number"] for move in client().results("Move")}
    assert done == {number for number, code in enumerate(codes) if code == 0}
    expected = [0, 0, 0]
    for number in done:
        expected[number % 3] -= 1
        expected[(number + 1 + number % 2) % 3] += 1
    assert [client().get(f"/classes/Account/{i}").json["balance"] for i in ids] == expected


def test_a_find_during_changes_of_the_class_always_answers():
    for n in range(3):
        master().make("Game", score=n)
    done = threading.Event()

    def look():
        replies = []
        while not done.is_set() or not replies:
            replies.append(client().get("/classes/Game", order="score"))
        return replies

    def alter():
        try:
            return [
                master().put("/schemas/Game", {"fields": {f"x{n}": {"type": "Number"}}})
                for n in range(10)
            ]
        finally:
            done.set()

    replies = [reply for replies in at_once([look, look, alter]) for reply in replies]
    assert set(outcomes(replies)) == {0}
