"""``include``: pointers replaced by the objects that they lead to."""

from __future__ import annotations

import pytest

from tests.statements import traffic


def pointer(class_name, object_id):
    return {"__type": "Pointer", "className": class_name, "objectId": object_id}


@pytest.fixture
def team(master):
    """A game, its player, the player's club, the club's town."""
    town = master.make("Town", name="Bern")
    club = master.make("Club", name="Eagles", town=pointer("Town", town))
    ann = master.make("Player", name="Ann", club=pointer("Club", club))
    bob = master.make("Player", name="Bob", club=pointer("Club", club))
    game = master.make(
        "Game",
        winner=pointer("Player", ann),
        loser=pointer("Player", bob),
        players=[pointer("Player", ann), pointer("Player", bob), "guest", 7, None],
        details={"referee": pointer("Player", bob), "rounds": 3},
    )
    return {"town": town, "club": club, "ann": ann, "bob": bob, "game": game}


def game(api, **params):
    results = api.results("Game", **params)
    assert len(results) == 1
    return results[0]


def test_without_include_a_pointer_stays_a_pointer(client, team):
    assert game(client)["winner"] == pointer("Player", team["ann"])


def test_an_included_object_is_whole_and_says_its_class(client, team):
    winner = game(client, include="winner")["winner"]
    assert winner["__type"] == "Object"
    assert winner["className"] == "Player"
    assert winner["objectId"] == team["ann"]
    assert winner["name"] == "Ann"
    assert winner["club"] == pointer("Club", team["club"])
    assert {"createdAt", "updatedAt"} <= set(winner)


def test_several_fields_are_included(client, team):
    results = game(client, include="winner,loser")
    assert (results["winner"]["name"], results["loser"]["name"]) == ("Ann", "Bob")


@pytest.mark.parametrize("include", [["winner", "loser"], "winner, loser"])
def test_include_may_be_a_list_in_a_body(client, team, include):
    reply = client.post("/classes/Game", {"_method": "GET", "include": include})
    assert reply.json["results"][0]["loser"]["name"] == "Bob"


def test_a_dotted_include_goes_on_from_there(client, team):
    results = game(client, include="winner.club.town")
    assert results["winner"]["club"]["town"]["name"] == "Bern"
    assert results["loser"] == pointer("Player", team["bob"])


def test_a_star_includes_all_pointers_of_the_first_level(client, team):
    for params in ({"include": "*"}, {"includeAll": "true"}):
        results = game(client, **params)
        assert results["winner"]["name"] == "Ann"
        assert results["players"][1]["name"] == "Bob"
        assert results["winner"]["club"] == pointer("Club", team["club"])


def test_a_star_and_a_dotted_include_go_together(client, team):
    results = game(client, include="*,winner.club")
    assert results["winner"]["club"]["name"] == "Eagles"
    assert results["loser"]["club"] == pointer("Club", team["club"])


def test_pointers_in_an_array_are_included_and_other_values_stay(client, team):
    players = game(client, include="players")["players"]
    assert [p["name"] for p in players[:2]] == ["Ann", "Bob"]
    assert players[2:] == ["guest", 7, None]


def test_a_dotted_include_goes_on_from_the_elements_of_an_array(client, team):
    players = game(client, include="players.club")["players"]
    assert [p["club"]["name"] for p in players[:2]] == ["Eagles", "Eagles"]


def test_a_pointer_inside_of_an_object_is_included_by_its_path(client, team):
    results = game(client, include="details.referee")
    assert results["details"]["referee"]["name"] == "Bob"
    assert results["details"]["rounds"] == 3


def test_the_same_object_by_two_ways_is_included_as_each_way_asks(client, master, team):
    master.put(f"/classes/Game/{team['game']}", {"loser": pointer("Player", team["ann"])})
    results = game(client, include="winner.club,loser")
    assert results["winner"]["club"]["name"] == "Eagles"
    assert results["loser"]["club"] == pointer("Club", team["club"])
    assert results["winner"]["objectId"] == results["loser"]["objectId"]


def test_objects_that_point_to_each_other_end_where_the_path_ends(client, master):
    first = master.make("Node", name="first")
    second = master.make("Node", name="second", next=pointer("Node", first))
    master.put(f"/classes/Node/{first}", {"next": pointer("Node", second)})
    body = client.get(f"/classes/Node/{first}", include="next.next.next").json
    assert body["next"]["next"]["next"]["name"] == "second"
    assert body["next"]["next"]["next"]["next"] == pointer("Node", first)


def test_a_pointer_to_nothing_is_left_out(client, master, team):
    master.delete(f"/classes/Player/{team['ann']}")
    results = game(client, include="winner,players")
    assert "winner" not in results
    assert [p["name"] for p in results["players"] if isinstance(p, dict)] == ["Bob"]
    assert len(results["players"]) == 4


def test_a_pointer_to_a_missing_class_is_left_out(client, master):
    master.make("Game", owner=pointer("Nothing", "aaaaaaaaaa"))
    assert "owner" not in game(client, include="owner")


def test_a_target_that_the_caller_may_not_read_is_left_out(client, master, team):
    master.put(f"/classes/Player/{team['ann']}", {"ACL": {}})
    results = game(client, include="winner,players")
    assert "winner" not in results
    assert team["ann"] not in str(results["players"])
    assert game(master, include="winner")["winner"]["name"] == "Ann"


def test_targets_of_a_class_that_the_caller_may_not_get_are_left_out(client, master, team):
    master.put("/schemas/Player", {"classLevelPermissions": {"find": {"*": True}}})
    results = game(client, include="winner,loser,players.club")
    assert "winner" not in results
    assert results["players"] == ["guest", 7, None]


def test_a_deeper_target_that_may_not_be_read_is_left_out(client, master, team):
    master.put(f"/classes/Club/{team['club']}", {"ACL": {}})
    winner = game(client, include="winner.club.town")["winner"]
    assert winner["name"] == "Ann"
    assert "club" not in winner


def test_protected_fields_of_included_objects_are_hidden(client, master, team):
    permissions = {"get": {"*": True}, "protectedFields": {"*": ["name", "club"]}}
    master.put("/schemas/Player", {"classLevelPermissions": permissions})
    results = game(client, include="winner.club,players")
    assert set(results["winner"]) == {"__type", "className", "objectId", "createdAt", "updatedAt"}
    assert "name" not in results["players"][0]


def test_a_protected_pointer_is_not_included(client, master, team):
    permissions = {"find": {"*": True}, "protectedFields": {"*": ["winner"]}}
    master.put("/schemas/Game", {"classLevelPermissions": permissions})
    assert "winner" not in game(client, include="winner.club")
    assert "winner" not in game(client, keys="winner,winner.name")


def test_the_acl_of_an_included_object_is_shown(client, master, team):
    acl = {"*": {"read": True}, "user123456": {"write": True}}
    master.put(f"/classes/Player/{team['ann']}", {"ACL": acl})
    assert game(client, include="winner")["winner"]["ACL"] == acl


def test_a_field_that_is_no_pointer_and_a_field_that_is_not_there_are_harmless(client, team):
    assert game(client, include="details,nothing,createdAt,winner.name.deeper")["winner"]


@pytest.mark.parametrize("include", ["a-b", "$x", "winner..club", "winner.", "__proto__", "1"])
def test_a_bad_include_is_105(client, team, include):
    assert client.get("/classes/Game", include=include).error == (400, 105)


def test_depth_and_number_of_includes_are_limited(client, team):
    assert client.get("/classes/Game", include=".".join(["a"] * 11)).error == (400, 102)
    many = ",".join(f"a{n}" for n in range(101))
    assert client.get("/classes/Game", include=many).error == (400, 102)


def test_a_level_takes_one_statement_a_class_however_many_objects(client, master, team):
    def statements():
        with traffic() as recorded:
            client.results("Game", include="winner.club.town,loser,players", limit=1000)
        return recorded.executions

    statements()
    with_one = statements()
    batch = [
        {
            "method": "POST",
            "path": "/api/classes/Game",
            "body": {
                "winner": pointer("Player", team["ann"]),
                "players": [pointer("Player", master.make("Player", name=str(n)))],
            },
        }
        for n in range(30)
    ]
    master.post("/batch", {"requests": batch})
    assert statements() == with_one == 4  # games, players, clubs, towns
