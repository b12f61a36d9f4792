"""A class whose objects are rows of a Django model reads and writes like any other class."""

from __future__ import annotations

import json
import re

import pytest

from tests.rest import CLIENT, MASTER, Api
from tests.statements import traffic
from tests.threads import at_once

FIELDS = {
    "title": {"type": "String"},
    "isbn": {"type": "String", "unique": True},
    "pages": {"type": "Number"},
    "price": {"type": "Number"},
    "inPrint": {"type": "Boolean"},
    "published": {"type": "Date"},
    "author": {"type": "Pointer", "targetClass": "Author"},
    "tags": {"type": "Array"},
    "cover": {"type": "Object"},
}


@pytest.fixture(params=["Book", "Paper"])
def kind(request, db):
    """The class of a model, and a generic one with the same fields."""
    if request.param == "Paper":
        Api(MASTER).post("/schemas/Paper", {"fields": FIELDS})
    return request.param


def date(iso):
    return {"__type": "Date", "iso": iso}


def author(object_id):
    return {"__type": "Pointer", "className": "Author", "objectId": object_id}


def book(**changes):
    return {
        "title": "Dune",
        "isbn": "1",
        "pages": 612,
        "price": 9.5,
        "inPrint": True,
        "published": date("1965-08-01T00:00:00.123Z"),
        "author": author("herbert123"),
        "tags": ["desert", "spice"],
        "cover": {"colour": "red", "size": {"w": 10, "h": 20}},
        "free": "a field without a column",
    } | changes


def test_the_schema_is_the_same(master, kind):
    schema = master.get(f"/schemas/{kind}").json
    assert {name: schema["fields"][name] for name in FIELDS} == FIELDS


def test_an_object_comes_back_as_it_was_sent(client, master, kind):
    master.make(kind)
    master.put(f"/schemas/{kind}", {"fields": {"free": {"type": "String"}}})
    object_id = client.make(kind, **book())
    for stored in (
        client.get(f"/classes/{kind}/{object_id}").json,
        client.results(kind, where={"objectId": object_id})[0],
    ):
        assert {name: stored[name] for name in book()} == book()
        assert re.fullmatch(r"[\d-]{10}T[\d:]{8}\.\d{3}Z", stored["createdAt"])
        assert set(stored) == {"objectId", "createdAt", "updatedAt", *book()}


def test_missing_fields_stay_missing(master, kind):
    object_id = master.make(kind, title="empty")
    stored = master.get(f"/classes/{kind}/{object_id}").json
    assert set(stored) == {"objectId", "createdAt", "updatedAt", "title"}


WRONG = {
    "title": 5,
    "pages": "many",
    "price": True,
    "inPrint": 1,
    "published": "2020-01-01T00:00:00.000Z",
    "author": {"__type": "Pointer", "className": "Person", "objectId": "aaaaaaaaaa"},
    "tags": {"a": 1},
    "cover": [1],
}


@pytest.mark.parametrize("field", WRONG)
def test_a_value_of_another_type_is_refused(master, kind, field):
    object_id = master.make(kind, title="kept")
    assert master.post(f"/classes/{kind}", {field: WRONG[field]}).error == (400, 111)
    assert master.put(f"/classes/{kind}/{object_id}", {field: WRONG[field]}).error == (400, 111)
    assert len(master.results(kind)) == 1


def test_an_update_changes_what_it_names(client, master, kind):
    object_id = master.make(kind, **book())
    path = f"/classes/{kind}/{object_id}"
    change = {"title": "Emma", "pages": None, "published": date("1815-12-23T00:00:00.000Z")}
    assert set(client.put(path, change).json) == {"updatedAt"}
    stored = client.get(path).json
    assert stored.get("pages") is None
    remaining = book(**change)
    del remaining["pages"]
    assert {name: stored[name] for name in remaining} == remaining


def test_operators_work_and_are_echoed(client, master, kind):
    path = f"/classes/{kind}/{master.make(kind, **book())}"

    def put(**changes):
        answer = client.put(path, changes).json
        return {name: value for name, value in answer.items() if name != "updatedAt"}

    assert put(pages={"__op": "Increment", "amount": 3}) == {"pages": 615}
    assert put(price={"__op": "Increment", "amount": 0.25}) == {"price": 9.75}
    assert put(tags={"__op": "Add", "objects": ["spice"]}) == {"tags": ["desert", "spice", "spice"]}
    assert put(tags={"__op": "Remove", "objects": ["spice"]}) == {"tags": ["desert"]}
    assert put(tags={"__op": "AddUnique", "objects": ["desert", "x"]}) == {"tags": ["desert", "x"]}
    assert put(**{"cover.size.w": {"__op": "Increment", "amount": 1}}) == {
        "cover": {"size": {"w": 11}}
    }
    assert put(title={"__op": "Delete"}, author={"__op": "Delete"}) == {}
    stored = client.get(path).json
    assert "title" not in stored
    assert "author" not in stored
    assert stored["cover"]["size"] == {"w": 11, "h": 20}
    assert client.put(path, {"title": {"__op": "Increment", "amount": 1}}).error == (400, 111)


@pytest.fixture
def shelf(master, kind):
    """Five books, of which one has nothing but its title."""
    herbert = master.make("Author", name="Herbert")
    rows = [
        {"title": "Dune", "pages": 612, "price": 9.5, "inPrint": True, "tags": ["a", "b"]},
        {"title": "Emma", "pages": 474, "price": 5, "inPrint": False, "tags": ["b"]},
        {"title": "emma", "pages": 12, "price": 100.25, "inPrint": True, "tags": []},
        {"title": "Ulysses", "pages": 730, "published": date("1922-02-02T00:00:00.000Z")},
        {"title": "none"},
    ]
    rows[0] |= {"author": author(herbert), "published": date("1965-08-01T00:00:00.000Z")}
    rows[0] |= {"cover": {"size": {"w": 1}}}
    for number, row in enumerate(rows):
        master.make(kind, isbn=str(number), **row)
    return herbert


FOUND = [
    ({"title": "Emma"}, ["Emma"]),
    ({"title": None}, []),
    ({"title": {"$in": ["Dune", "x"]}}, ["Dune"]),
    ({"title": {"$gte": "E", "$lt": "F"}}, ["Emma"]),
    ({"title": {"$regex": "^e", "$options": "i"}}, ["Emma", "emma"]),
    ({"title": 5}, []),
    ({"pages": 612}, ["Dune"]),
    ({"pages": 612.0}, ["Dune"]),
    ({"pages": 612.5}, []),
    ({"pages": {"$gt": 400, "$lte": 612}}, ["Dune", "Emma"]),
    ({"pages": {"$ne": 612}}, ["Emma", "emma", "Ulysses", "none"]),
    ({"pages": {"$nin": [612, None]}}, ["Emma", "emma", "Ulysses"]),
    ({"pages": None}, ["none"]),
    ({"pages": {"$gt": 10**30}}, []),
    ({"pages": "612"}, []),
    ({"price": 100.25}, ["emma"]),
    ({"price": {"$lt": 9.51}}, ["Dune", "Emma"]),
    ({"inPrint": True}, ["Dune", "emma"]),
    ({"inPrint": {"$ne": True}}, ["Emma", "Ulysses", "none"]),
    ({"inPrint": {"$exists": False}}, ["Ulysses", "none"]),
    ({"published": date("1922-02-02T00:00:00.000Z")}, ["Ulysses"]),
    ({"published": {"$lt": date("1950-01-01T00:00:00.000Z")}}, ["Ulysses"]),
    ({"tags": "b"}, ["Dune", "Emma"]),
    ({"tags": ["b"]}, ["Emma"]),
    ({"tags": {"$all": ["a", "b"]}}, ["Dune"]),
    ({"tags": {"$containedBy": ["b"]}}, ["Emma", "emma"]),
    ({"cover.size.w": 1}, ["Dune"]),
    ({"cover.size.w": {"$exists": True}}, ["Dune"]),
    ({"cover": {"size": {"w": 1}}}, ["Dune"]),
    ({"author": {"$exists": True}}, ["Dune"]),
    ({"author": {"$inQuery": {"className": "Author", "where": {"name": "Herbert"}}}}, ["Dune"]),
    ({"title": {"$select": {"query": {"className": "Author"}, "key": "name"}}}, []),
    ({"$or": [{"pages": 12}, {"price": 5}]}, ["Emma", "emma"]),
    ({"$nor": [{"pages": {"$exists": True}}]}, ["none"]),
    ({"createdAt": {"$gt": "2000-01-01T00:00:00.000Z"}, "pages": 12}, ["emma"]),
]


def test_queries_find_the_same(client, kind, shelf):
    for where, expected in FOUND:
        titles = [obj["title"] for obj in client.results(kind, where=where)]
        assert titles == expected, where
        reply = client.get(f"/classes/{kind}", where=where, count=1, limit=0)
        assert reply.json["count"] == len(expected), where
    for titles in (client.results(kind, where={"author": author(shelf)}),):
        assert [obj["title"] for obj in titles] == ["Dune"]


def test_orders_are_the_same(client, kind, shelf):
    for order, expected in (
        ("title", ["Dune", "Emma", "Ulysses", "emma", "none"]),
        ("-title", ["none", "emma", "Ulysses", "Emma", "Dune"]),
        ("pages", ["none", "emma", "Emma", "Dune", "Ulysses"]),
        ("-pages", ["Ulysses", "Dune", "Emma", "emma", "none"]),
        ("-price,title", ["emma", "Dune", "Emma", "Ulysses", "none"]),
        ("-published,title", ["Dune", "Ulysses", "Emma", "emma", "none"]),
        ("-createdAt", ["none", "Ulysses", "emma", "Emma", "Dune"]),
    ):
        assert [obj["title"] for obj in client.results(kind, order=order)] == expected, order


def test_an_author_is_included(client, kind, shelf):
    (dune,) = client.results(kind, where={"title": "Dune"}, include="author", keys="author.name")
    assert dune["author"]["name"] == "Herbert"


def test_books_are_included(client, master, kind, shelf):
    dune = master.results(kind, where={"title": "Dune"})[0]
    pointer = {"__type": "Pointer", "className": kind, "objectId": dune["objectId"]}
    loan = master.make("Loan", book=pointer)
    included = client.get(f"/classes/Loan/{loan}", include="book.author").json["book"]
    assert included["title"] == "Dune"
    assert included["published"] == date("1965-08-01T00:00:00.000Z")
    assert included["author"]["name"] == "Herbert"


def test_pipelines_give_the_same(master, kind, shelf):
    def aggregate(*stages):
        reply = master.get(f"/aggregate/{kind}", pipeline=json.dumps(stages))
        assert reply.status == 200, reply.json
        return reply.json["results"]

    group = {"_id": "$inPrint", "pages": {"$sum": "$pages"}, "dearest": {"$max": "$price"}}
    rows = aggregate({"$match": {"inPrint": {"$exists": True}}}, {"$group": group})
    assert sorted((row["objectId"], row["pages"], row["dearest"]) for row in rows) == [
        (False, 474, 5),
        (True, 624, 100.25),
    ]
    years = aggregate(
        {"$match": {"published": {"$exists": True}}},
        {"$group": {"_id": {"$year": "$published"}}},
        {"$sort": {"_id": 1}},
    )
    assert [row["objectId"] for row in years] == [1922, 1965]
    reply = master.get(f"/aggregate/{kind}", distinct="tags")
    assert sorted(reply.json["results"]) == ["a", "b"]


def test_access_lists_and_permissions_hold(client, master, kind):
    hidden = master.make(kind, title="hidden", ACL={})
    master.make(kind, title="shown", pages=1)
    assert [obj["title"] for obj in client.results(kind)] == ["shown"]
    assert client.get(f"/classes/{kind}/{hidden}").error == (404, 101)
    assert client.delete(f"/classes/{kind}/{hidden}").error == (404, 101)
    permissions = {"find": {"*": True}, "protectedFields": {"*": ["pages"]}}
    master.put(f"/schemas/{kind}", {"classLevelPermissions": permissions})
    assert "pages" not in client.results(kind)[0]
    assert client.get(f"/classes/{kind}", where={"pages": 1}).error == (400, 119)
    assert client.get(f"/classes/{kind}", order="pages").error == (400, 119)
    assert client.post(f"/classes/{kind}", {"title": "x"}).error == (400, 119)


def test_objects_are_deleted_and_purged(client, master, kind):
    first, second = (master.make(kind, title=str(n)) for n in range(2))
    assert client.delete(f"/classes/{kind}/{first}").json == {}
    assert [obj["objectId"] for obj in client.results(kind)] == [second]
    assert master.delete(f"/purge/{kind}").json == {}
    assert client.results(kind) == []


def test_a_batch_stores_several(client, master, kind):
    master.make(kind, free="x")
    item = {"method": "POST", "path": f"/api/classes/{kind}"}
    requests = [{**item, "body": book(isbn=str(n), pages=n)} for n in range(3)]
    assert all("success" in entry for entry in client.post("/batch", {"requests": requests}).json)
    results = client.results(kind, where={"pages": {"$exists": True}}, order="pages")
    assert [obj["pages"] for obj in results] == [0, 1, 2]
    assert results[1]["author"] == author("herbert123")


def test_one_object_takes_one_round_trip(client, master, kind):
    path = f"/classes/{kind}/{master.make(kind, title='x', pages=1)}"
    for method, body in (("GET", None), ("PUT", {"title": "y"})):
        client.call(method, path, body)
        with traffic() as recorded:
            assert client.call(method, path, body).status == 200
        assert recorded.executions == 1


@pytest.mark.django_db(transaction=True)
def test_a_unique_value_is_stored_once_whoever_is_first(kind):
    replies = at_once([lambda: Api(CLIENT).post(f"/classes/{kind}", {"isbn": "1"})] * 6)
    assert sorted(reply.json.get("code", 0) for reply in replies) == [0] + [137] * 5
    assert {reply.json["error"] for reply in replies if reply.status == 400} == {
        "A duplicate value for a field with unique values was provided: isbn"
    }


@pytest.mark.django_db(transaction=True)
def test_increments_at_once_are_all_counted(kind):
    path = f"/classes/{kind}/{Api(MASTER).make(kind, pages=0, price=0)}"
    body = {"pages": {"__op": "Increment", "amount": 1}}

    def several():
        return [Api(CLIENT).put(path, body).status for _ in range(5)]

    assert at_once([several] * 6) == [[200] * 5] * 6
    assert Api(CLIENT).get(path).json["pages"] == 30
