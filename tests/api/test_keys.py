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


def test_a_dotted_key_leaves_one_value_inside(client, games):
    assert only(client, keys="place.y.z")["place"] == {"y": {"z": 2}}
    assert only(client, keys="list.a")["list"] == [{"a": 1}, {"a": 3}]


def test_a_dotted_key_through_a_pointer_includes_it(client, games):
    player = only(client, keys="player.name")["player"]
    assert player["name"] == "Ann"
    assert player["__type"] == "Object"
    assert not {"age", "secret"} & set(player)


def test_excluded_keys_are_left_out(client, games):
    results = only(client, excludeKeys="score,place")
    assert not {"score", "place"} & set(results)
    assert results["name"] == "chess"


def test_a_dotted_excluded_key_leaves_out_one_value_inside(client, games):
    assert only(client, excludeKeys="place.y.z")["place"] == {"x": 1, "y": {"w": 3}}


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


def test_keys_may_be_a_list_in_a_body(client, games):
    reply = client.post("/classes/Game", {"_method": "GET", "keys": ["score", "name"]})
    assert set(reply.json["results"][0]) == ALWAYS | {"ACL", "score", "name"}
