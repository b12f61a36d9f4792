"""``keys`` and ``excludeKeys``: which fields are answered."""

from __future__ import annotations

import pytest

ALWAYS = {"objectId", "createdAt", "updatedAt"}


@pytest.fixture
def games(master):
    player = master.make("Player", name="Ann", age=3, secret=1)
    master.make(
        "Game",
        score=1,
        name="chess",
        place={"x": 1, "y": {"z": 2, "w": 3}},
        list=[{"a": 1, "b": 2}, {"a": 3, "b": 4}],
        player={"__type": "Pointer", "className": "Player", "objectId": player},
        ACL={"*": {"read": True}},
    )


def only(api, **params):
    (result,) = api.results("Game", **params)
    return result


def test_keys_leaves_the_named_fields_and_those_of_every_object(client, games):
    assert set(only(client, keys="score")) == ALWAYS | {"ACL", "score"}
    assert set(only(client, keys="score,name")) == ALWAYS | {"ACL", "score", "name"}


def test_an_unknown_key_is_harmless(client, games):
    assert set(only(client, keys="nothing,score")) == ALWAYS | {"ACL", "score"}


def test_no_keys_leave_those_of_every_object(client, games):
    assert set(only(client, keys="objectId")) == ALWAYS | {"ACL"}


def test_a_dotted_key_leaves_the_whole_field(client, games):
    result = only(client, keys="place.y.z,list.a")
    assert set(result) == ALWAYS | {"ACL", "place", "list"}
    assert result["place"] == {"x": 1, "y": {"z": 2, "w": 3}}
    assert result["list"] == [{"a": 1, "b": 2}, {"a": 3, "b": 4}]


def test_a_dotted_key_through_a_pointer_includes_it(client, games):
    player = only(client, keys="player.name")["player"]
    assert player["name"] == "Ann"
    assert player["__type"] == "Object"
    assert not {"age", "secret"} & set(player)


def test_excluded_keys_are_left_out(client, games):
    results = only(client, excludeKeys="score,place")
    assert not {"score", "place"} & set(results)
    assert results["name"] == "chess"


def test_a_dotted_excluded_key_leaves_the_whole_field(client, games):
    place = {"x": 1, "y": {"z": 2, "w": 3}}
    assert only(client, excludeKeys="place.y.z")["place"] == place
    assert only(client, keys="place.y.z,score", excludeKeys="place.y")["place"] == place


def test_an_excluded_key_takes_the_very_same_key_away(client, games):
    result = only(client, keys="place.y.z,score,name", excludeKeys="place.y.z,name")
    assert set(result) == ALWAYS | {"ACL", "score"}


def test_a_dotted_excluded_key_through_a_pointer_includes_it(client, games):
    player = only(client, excludeKeys="player.secret,score")["player"]
    assert (player["name"], player["age"]) == ("Ann", 3)
    assert "secret" not in player


def test_keys_and_excluded_keys_of_an_included_object_go_together(client, games):
    player = only(client, keys="player.name,player.age", excludeKeys="player.age")["player"]
    assert player["name"] == "Ann"
    assert not {"age", "secret"} & set(player)


def test_all_pointers_are_added_to_the_keys_when_all_are_included(client, games):
    for params in ({"includeAll": "true"}, {"include": "*"}):
        result = only(client, keys="score", **params)
        assert set(result) == ALWAYS | {"ACL", "score", "player", "list"}
        assert result["player"]["secret"] == 1
        result = only(client, keys="score,player.name", excludeKeys="list", **params)
        assert set(result) == ALWAYS | {"ACL", "score", "player"}
        assert not {"age", "secret"} & set(result["player"])


def test_keys_select_the_fields_of_objects_included_in_lists_and_objects(client, master, games):
    (player,) = master.results("Player")
    leads = {"__type": "Pointer", "className": "Player", "objectId": player["objectId"]}
    master.make("Match", players=[leads, 5], info={"best": leads, "note": "x"})
    (match,) = client.results("Match", keys="players.name,info.best.age")
    assert match["players"][0]["name"] == "Ann"
    assert match["players"][1] == 5
    assert not {"age", "secret"} & set(match["players"][0])
    assert match["info"]["note"] == "x"
    assert match["info"]["best"]["age"] == 3
    assert not {"name", "secret"} & set(match["info"]["best"])


def test_relations_are_sent_whatever_the_keys_are_unless_they_are_excluded(client, master, games):
    (player,) = master.results("Player")
    fan = {"__type": "Pointer", "className": "Player", "objectId": player["objectId"]}
    master.make("Club", name="c", size=1, fans={"__op": "AddRelation", "objects": [fan]})
    (club,) = client.results("Club", keys="name")
    assert set(club) == ALWAYS | {"name", "fans"}
    (club,) = client.results("Club", excludeKeys="fans")
    assert set(club) == ALWAYS | {"name", "size"}


def test_a_repeated_parameter_is_a_list_of_keys(client, games):
    for query, names in (
        ("keys=score&keys=name", {"score", "name"}),
        ("keys=score&keys=name&excludeKeys=place&excludeKeys=name", {"score"}),
        ("keys=", set()),
        ("keys=&keys=score", {"score"}),
        ("keys[]=score&keys%5B%5D=name", {"score", "name"}),
        ("keys[0]=score&excludeKeys[]=name", {"score"}),
    ):
        reply = client.call("GET", f"/classes/Game?{query}")
        assert set(reply.json["results"][0]) == ALWAYS | {"ACL"} | names, query
    reply = client.call("GET", "/classes/Game?keys=player&include=player&include=list")
    assert reply.json["results"][0]["player"]["name"] == "Ann"


def test_what_every_object_has_can_not_be_excluded(client, games):
    assert ALWAYS <= set(only(client, excludeKeys="objectId,createdAt,updatedAt"))


def test_excluded_keys_of_an_included_object_are_left_out(client, games):
    player = only(client, include="player", excludeKeys="player.secret")["player"]
    assert "secret" not in player
    assert player["name"] == "Ann"


def test_keys_of_a_protected_field_show_nothing(client, master, games):
    permissions = {"find": {"*": True}, "protectedFields": {"*": ["score", "place"]}}
    master.put("/schemas/Game", {"classLevelPermissions": permissions})
    assert set(only(client, keys="score,place.x,name")) == ALWAYS | {"ACL", "name"}


@pytest.mark.parametrize("parameter", ["keys", "excludeKeys"])
@pytest.mark.parametrize("keys", ["a-b", "$a", "a..b", "a.$b", "_a", "' OR 1=1"])
def test_bad_keys_are_105(client, games, parameter, keys):
    assert client.get("/classes/Game", **{parameter: keys}).error == (400, 105)


@pytest.mark.parametrize("parameter", ["keys", "excludeKeys", "include", "order"])
def test_names_that_are_json_nested_too_deeply_are_refused(client, games, parameter):
    assert client.get("/classes/Game", **{parameter: "[" * 10_000}).status == 400


def test_keys_may_be_a_list_in_a_body(client, games):
    reply = client.post("/classes/Game", {"_method": "GET", "keys": ["score", "name"]})
    assert set(reply.json["results"][0]) == ALWAYS | {"ACL", "score", "name"}
