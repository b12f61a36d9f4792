"""GET /classes/{ClassName}: its parameters, its limits, its order."""

from __future__ import annotations

import json

import pytest

from tests.rest import CLIENT, MASTER, Api


def names(objects):
    return [obj["name"] for obj in objects]


@pytest.fixture
def four(master):
    """Four games, of which one has no score."""
    for name, score in (("a", 3), ("b", 1), ("c", None), ("d", 2)):
        master.make("Game", name=name, **({} if score is None else {"score": score}))
    return Api(CLIENT)


# -- where ----------------------------------------------------------------------------------------


def test_without_a_where_all_objects_are_found_oldest_first(four):
    assert names(four.results("Game")) == ["a", "b", "c", "d"]


def test_a_where_narrows(four):
    assert names(four.results("Game", where={"score": {"$gte": 2}})) == ["a", "d"]


def test_an_empty_where_finds_everything(four):
    assert len(four.results("Game", where={})) == 4
    assert len(four.results("Game", where="")) == 4


@pytest.mark.parametrize("where", ["{", "[1]", '"text"', "1", '{"a":NaN}'])
def test_a_where_that_is_no_json_object_is_107(four, where):
    assert four.get("/classes/Game", where=where).error == (400, 107)


@pytest.mark.parametrize("where", [{"score": 3}, json.dumps({"score": 3})])
def test_a_query_may_be_sent_as_a_post_with_where_as_object_or_text(four, where):
    reply = four.post("/classes/Game", {"_method": "GET", "where": where, "count": 1})
    assert reply.status == 200
    assert names(reply.json["results"]) == ["a"]
    assert reply.json["count"] == 1


def test_a_query_sent_as_a_post_stores_nothing(four):
    four.post("/classes/Game", {"_method": "GET", "where": {"name": "new"}})
    assert len(four.results("Game")) == 4


@pytest.mark.parametrize("key", ["createdAt", "updatedAt"])
def test_times_are_compared_as_dates_or_as_plain_text(four, key):
    stamps = [obj[key] for obj in four.results("Game")]
    for at in (stamps[0], {"__type": "Date", "iso": stamps[0]}):
        assert len(four.results("Game", where={key: {"$gte": at}})) == 4
        assert len(four.results("Game", where={key: {"$lt": at}})) == 0
    assert four.results("Game", where={key: {"$gt": "2100-01-01T00:00:00.000Z"}}) == []
    assert four.get("/classes/Game", where={key: {"$gt": "yesterday"}}).error == (400, 111)


def test_times_are_found_by_relative_time(four):
    long_ago = {"createdAt": {"$lt": {"$relativeTime": "1 day ago"}}}
    lately = {"createdAt": {"$gt": {"$relativeTime": "1 hour ago"}}}
    assert four.results("Game", where=long_ago) == []
    assert len(four.results("Game", where=lately)) == 4


def test_an_object_is_found_by_its_id(four):
    target = four.results("Game")[2]
    assert four.results("Game", where={"objectId": target["objectId"]}) == [target]
    results = four.results("Game", where={"objectId": {"$in": [target["objectId"], "missing"]}})
    assert results == [target]


# -- limit, skip, count ---------------------------------------------------------------------------


def test_the_limit_is_100_by_default(master, settings):
    settings.SERVICE = {**settings.SERVICE, "BATCH_LIMIT": 200}
    create = {"method": "POST", "path": "/api/classes/Game", "body": {"score": 1}}
    master.post("/batch", {"requests": [create] * 105})
    assert len(master.results("Game")) == 100
    assert len(master.results("Game", limit=103)) == 103
    assert len(master.results("Game", limit=1000)) == 105


def test_the_limit_is_capped_silently(four, settings):
    settings.SERVICE = {**settings.SERVICE, "MAX_LIMIT": 3}
    assert len(four.results("Game", limit=4)) == 3


def test_a_limit_of_zero_finds_nothing(four):
    assert four.results("Game", limit=0) == []


def test_skip_leaves_out_the_first_ones(four):
    assert names(four.results("Game", skip=1, limit=2)) == ["b", "c"]
    assert four.results("Game", skip=10) == []


@pytest.mark.parametrize("name", ["limit", "skip"])
@pytest.mark.parametrize(
    "value", ["-1", "abc", "1.5", "1e3", "0x10", "٣", "99999999999999999999", "null;", "[]", "{}"]
)
def test_a_limit_or_skip_that_is_no_whole_number_is_102(four, name, value):
    reply = four.get("/classes/Game", **{name: value})
    assert reply.error == (400, 102)
    assert "SELECT" not in reply.json["error"]


@pytest.mark.parametrize("value", [-1, "x", 1.5, True, [1], {"$gt": 0}])
def test_a_limit_in_a_body_is_checked_as_well(four, value):
    assert four.post("/classes/Game", {"_method": "GET", "limit": value}).error == (400, 102)


def test_count_ignores_limit_and_skip(four):
    reply = four.get("/classes/Game", count=1, limit=1, skip=1)
    assert reply.json["count"] == 4
    assert len(reply.json["results"]) == 1


def test_count_with_a_limit_of_zero_is_the_count_alone(four):
    reply = four.get("/classes/Game", count=1, limit=0, where={"score": {"$exists": True}})
    assert reply.json == {"results": [], "count": 3}


def test_the_count_of_the_master_key_is_exact(four):
    assert Api(MASTER).get("/classes/Game", count=1, limit=0).json["count"] == 4


def test_without_count_there_is_no_count(four):
    assert set(four.get("/classes/Game").json) == {"results"}
    assert set(four.get("/classes/Game", count=0).json) == {"results"}


def test_a_count_has_only_what_the_caller_may_read(four, master):
    master.make("Game", name="hidden", ACL={})
    assert four.get("/classes/Game", count=1).json["count"] == 4
    assert master.get("/classes/Game", count=1).json["count"] == 5


# -- order ----------------------------------------------------------------------------------------


def test_missing_values_come_first_ascending_and_last_descending(four):
    assert names(four.results("Game", order="score")) == ["c", "b", "d", "a"]
    assert names(four.results("Game", order="-score")) == ["a", "d", "b", "c"]


def test_null_sorts_like_missing(four, master):
    master.make("Game", name="e", score=None)
    assert set(names(four.results("Game", order="score"))[:2]) == {"c", "e"}
    assert set(names(four.results("Game", order="-score"))[-2:]) == {"c", "e"}


def test_several_keys_sort_one_after_the_other(master):
    for name, level in (("b", 1), ("a", 2), ("a", 1)):
        master.make("Game", name=name, level=level)
    results = master.results("Game", order="name,-level")
    assert [(obj["name"], obj["level"]) for obj in results] == [("a", 2), ("a", 1), ("b", 1)]


def test_text_sorts_by_code_point(master):
    for name in ("b", "B", "ä", "a", "_", "1", "𝄞", "z"):
        master.make("Game", name=name)
    assert names(master.results("Game", order="name")) == ["1", "B", "_", "a", "b", "z", "ä", "𝄞"]


def test_numbers_sort_as_numbers(master):
    values = [10, 9, -1, 2.5, 10**30, 0]
    for score in values:
        master.make("Game", score=score)
    assert [obj["score"] for obj in master.results("Game", order="score")] == sorted(values)


def test_objects_are_sorted_by_time(four):
    assert names(four.results("Game", order="createdAt")) == ["a", "b", "c", "d"]
    assert names(four.results("Game", order="-createdAt")) == ["d", "c", "b", "a"]


def test_an_unknown_field_sorts_nothing(four):
    assert len(four.results("Game", order="nothing")) == 4
    assert len(four.results("Game", order="nothing.inside")) == 4


def test_a_dotted_key_sorts_by_what_is_inside(master):
    for name, x in (("a", 2), ("b", 1), ("c", 3)):
        master.make("Game", name=name, place={"x": x})
    assert names(master.results("Game", order="place.x")) == ["b", "a", "c"]


@pytest.mark.parametrize("order", ["a-b", "a b", "1a", "--a", "a;drop", "a'b", "$score.x", "_a"])
def test_a_bad_sort_key_is_105(four, order):
    assert four.get("/classes/Game", order=order).error == (400, 105)


def test_pages_over_equal_values_neither_repeat_nor_miss_anything(master):
    create = {"method": "POST", "path": "/api/classes/Game", "body": {"score": 1}}
    master.post("/batch", {"requests": [create] * 50})
    for order in ("score", "-score", "createdAt", "nothing"):
        pages = [
            master.results("Game", order=order, limit=7, skip=skip) for skip in range(0, 56, 7)
        ]
        ids = [obj["objectId"] for page in pages for obj in page]
        assert len(ids) == len(set(ids)) == 50


# -- other parameters -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["odd", "Where", "$where", "limit ", "session"])
def test_an_unknown_parameter_is_102(four, name):
    reply = four.get("/classes/Game", **{name: "1"})
    assert reply.error == (400, 102)
    assert reply.json["error"] == f"Invalid parameter for query: {name}"


def test_an_unknown_parameter_in_a_body_is_102(four):
    assert four.post("/classes/Game", {"_method": "GET", "odd": 1}).error == (400, 102)


@pytest.mark.parametrize("name", ["readPreference", "hint", "comment", "subqueryReadPreference"])
def test_advice_for_other_databases_is_accepted_and_changes_nothing(four, name):
    assert len(four.results("Game", **{name: "SECONDARY"})) == 4


def test_a_missing_class_is_empty_for_the_master_key_and_forbidden_to_clients(client, master):
    assert master.get("/classes/Nothing", count=1).json == {"results": [], "count": 0}
    assert client.get("/classes/Nothing").error == (400, 119)


def test_a_bad_class_name_is_103(master, client):
    for caller in (master, client):
        assert caller.get("/classes/9lives").error == (400, 103)
        assert caller.get("/classes/_Join:users:_Role").error == (400, 103)


# -- redirectClassNameForKey ----------------------------------------------------------------------


@pytest.fixture
def redirected(master):
    player = master.make("Player", name="Ann")
    master.make("Player", name="Bob", ACL={})
    master.make(
        "Game",
        players={
            "__op": "AddRelation",
            "objects": [{"__type": "Pointer", "className": "Player", "objectId": player}],
        },
        owner={"__type": "Pointer", "className": "Player", "objectId": player},
    )
    return master


def test_a_relation_redirects_the_query_to_its_class(redirected, client):
    reply = client.get("/classes/Game", redirectClassNameForKey="players")
    assert reply.json["className"] == "Player"
    assert names(reply.json["results"]) == ["Ann"]


def test_redirected_objects_say_their_class(redirected, client):
    for params in ({}, {"keys": "name"}, {"order": "-name"}):
        (result,) = client.results("Game", redirectClassNameForKey="players", **params)
        assert (result["className"], result["name"]) == ("Player", "Ann")


def test_a_sub_query_is_redirected_to_the_class_of_its_relation(redirected, client, master):
    redirect = {"className": "Game", "redirectClassNameForKey": "players", "where": {}}
    for query, expected in (
        ({"owner": {"$inQuery": redirect}}, 1),
        ({"owner": {"$inQuery": redirect | {"where": {"name": "Bob"}}}}, 0),
        ({"owner": {"$notInQuery": redirect}}, 0),
        ({"owner": {"$inQuery": redirect | {"redirectClassNameForKey": "nothing"}}}, 0),
        ({"owner": {"$inQuery": redirect | {"redirectClassNameForKey": "owner"}}}, 0),
    ):
        for caller in (client, master):
            assert len(caller.results("Game", where=query)) == expected, query
    master.make("Note", text="Ann")
    for operator, expected in (("$select", 1), ("$dontSelect", 0)):
        where = {"text": {operator: {"query": redirect, "key": "name"}}}
        assert len(client.results("Note", where=where)) == expected


def test_a_redirected_sub_query_needs_the_rights_of_both_classes(redirected, client):
    redirect = {"className": "Game", "redirectClassNameForKey": "players", "where": {}}
    redirected.make("Note", owner={"__type": "Pointer", "className": "Player", "objectId": "a"})
    where = {"owner": {"$inQuery": redirect}}
    closed = {"get": {"*": True}}
    opened = {"find": {"*": True}}
    for name, permissions in (
        ("Player", closed),
        ("Game", closed),
        ("Game", {**opened, "protectedFields": {"*": ["players"]}}),
    ):
        redirected.put(f"/schemas/{name}", {"classLevelPermissions": permissions})
        assert client.get("/classes/Note", where=where).error == (400, 119), permissions
        redirected.put(f"/schemas/{name}", {"classLevelPermissions": {**opened, "get": {"*": 1}}})
    protected = {**opened, "protectedFields": {"*": ["name"]}}
    redirected.put("/schemas/Game", {"classLevelPermissions": opened})
    redirected.put("/schemas/Player", {"classLevelPermissions": protected})
    where = {"owner": {"$inQuery": redirect | {"where": {"name": "Ann"}}}}
    reply = client.get("/classes/Note", where=where)
    assert reply.error == (400, 119)


def test_a_pointer_and_an_unknown_field_redirect_nothing(redirected, client):
    for key in ("owner", "nothing"):
        reply = client.get("/classes/Game", redirectClassNameForKey=key)
        assert "className" not in reply.json
        assert len(reply.json["results"]) == 1


def test_a_redirected_query_needs_the_rights_of_the_class_that_it_runs_on(redirected, client):
    redirected.put("/schemas/Player", {"classLevelPermissions": {"get": {"*": True}}})
    reply = client.get("/classes/Game", redirectClassNameForKey="players")
    assert reply.error == (400, 119)


def test_a_redirect_tells_nothing_of_a_class_that_may_not_be_searched(redirected, client):
    redirected.put("/schemas/Game", {"classLevelPermissions": {"get": {"*": True}}})
    reply = client.get("/classes/Game", redirectClassNameForKey="players")
    assert reply.error == (400, 119)
    assert "Player" not in reply.json["error"]


def test_pages_of_the_newest_continue_behind_a_time_and_an_id(master):
    create = {"method": "POST", "path": "/api/classes/Game", "body": {"score": 1}}
    for _ in range(3):  # each batch has one time
        assert master.post("/batch", {"requests": [create] * 5}).status == 200
    expected = master.results("Game", order="-createdAt")
    observed: list[dict[str, object]] = []
    where: dict[str, object] = {}
    while page := master.results("Game", order="-createdAt", limit=4, where=where):
        observed += page
        last = page[-1]
        time = {"__type": "Date", "iso": last["createdAt"]}
        same_time = {"createdAt": time, "objectId": {"$lt": last["objectId"]}}
        where = {"$or": [{"createdAt": {"$lt": time}}, same_time]}
    assert observed == expected
    assert len(observed) == 15


def test_objects_are_sorted_by_the_former_names_of_their_times(master, client):
    for name in ("a", "b", "c"):
        master.make("Game", name=name)
    for order, expected in (("_created_at", "abc"), ("-_created_at", "cba")):
        assert names(client.results("Game", order=order)) == list(expected)
    (first,) = client.results("Game", where={"name": "a"})
    master.put(f"/classes/Game/{first['objectId']}", {"score": 1})
    assert names(client.results("Game", order="-_updated_at"))[0] == "a"
    assert client.get("/classes/Game", order="_other").error == (400, 105)


def test_internal_fields_are_for_the_master_key_and_no_object_has_them(master, client):
    master.make("Game", name="a")
    for field in ("_password_history", "_tombstone", "_perishable_token"):
        where = {field: {"$exists": True}}
        assert client.get("/classes/Game", where=where).json == {
            "code": 105,
            "error": f"Invalid key name: {field}",
        }
        assert master.results("Game", where=where) == []
    assert master.get("/classes/Game", where={"_rperm": "*"}).error == (400, 105)


def test_a_constraint_may_be_written_as_nested_parameters(client, master):
    for score in (1, 2):
        master.make("Game", name=f"game {score}", on=True)

    def names(query):
        reply = client.get(f"/classes/Game?{query}")
        assert reply.status == 200, reply.json
        return [game["name"] for game in reply.json["results"]]

    assert names("where[name]=game%201") == ["game 1"]
    assert names("where%5Bname%5D%5B$regex%5D=2$") == ["game 2"]
    assert names("where[name][$regex]=A'B'%3BSELECT+PG_SLEEP(3)%3B--") == []
    assert names("where[name][$ne]=game%201&limit=5") == ["game 2"]
    deep = "".join(f"[k{level}]" for level in range(6))
    for query in ("where[]=1", f"where{deep}=1", "where[name=1", "limit[a]=1", "where[__op]=1"):
        assert client.get(f"/classes/Game?{query}").status == 400, query
