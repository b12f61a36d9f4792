"""Asking for objects and changing them from server code."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from backend.kernel.errors import InvalidKeyName, InvalidQuery, ObjectNotFound, OperationForbidden
from backend.kernel.principal import CLIENT, MASTER, Principal
from functions import GeoPoint, Object, Pointer, add, add_relation, increment
from functions.runtime.queries import ObjectAccess
from tests.people import make_role, sign_up
from tests.rest import Api

objects = ObjectAccess(MASTER)


@pytest.fixture
def games(db: None) -> list[Object]:
    return [
        objects("Game").create(name=name, score=score, tags=tags)
        for name, score, tags in (("a", 1, ["x"]), ("b", 5, ["x", "y"]), ("c", 9, []))
    ]


def names(query: Any) -> list[str]:
    return [item["name"] for item in query.find()]


def test_constraints_are_joined(games: list[Object]) -> None:
    game = objects("Game").order("name")
    assert names(game) == ["a", "b", "c"]
    assert names(game.where(name="b")) == ["b"]
    assert names(game.where(score__gt=1).where(score__lte=9, name__ne="c")) == ["b"]
    assert names(game.where(tags="x", score__in=[5, 9])) == ["b"]
    assert names(game.where({"score": {"$gte": 5}}, tags__all=["x", "y"])) == ["b"]
    assert names(game.where_any({"name": "a"}, {"score": 9})) == ["a", "c"]
    assert names(game.where(name__regex="^[ab]$", missing__exists=False)) == ["a", "b"]


def test_a_query_is_a_value(games: list[Object]) -> None:
    all_of_them = objects("Game").order("-score")
    few = all_of_them.where(score__lt=6).limit(1)
    assert names(few) == ["b"]
    assert names(all_of_them.skip(1)) == ["b", "a"]
    assert names(all_of_them) == ["c", "b", "a"]


def test_answers_of_all_kinds(games: list[Object]) -> None:
    game = objects("Game")
    first = game.order("score").first()
    assert first == games[0]
    assert game.where(name="nobody").first() is None
    assert game.get(games[1].id)["name"] == "b"
    assert game.where(score__gt=1).count() == 2
    assert game.where(name="a").exists()
    assert not game.where(name="z").exists()
    assert game.distinct("tags") == ["x", "y"]
    assert game.where(score__gt=1).distinct("tags") == ["x", "y"]
    (total,) = game.aggregate([{"$group": {"_id": None, "total": {"$sum": "$score"}}}])
    assert total["total"] == 15
    with pytest.raises(ObjectNotFound):
        game.get("nowhere")
    with pytest.raises(ObjectNotFound):
        game.where(score__gt=5).get(games[0].id)


def test_all_of_them_page_by_page(games: list[Object]) -> None:
    observed = [item["name"] for item in objects("Game").each(page=2)]
    assert sorted(observed) == ["a", "b", "c"]
    few = [item["name"] for item in objects("Game").where(score__gt=4).each(page=1)]
    assert sorted(few) == ["b", "c"]
    with pytest.raises(InvalidQuery):
        list(objects("Game").order("name").each())


def test_keys_and_includes(games: list[Object]) -> None:
    objects("Round").create(game=games[0], at=datetime(2026, 1, 1, tzinfo=UTC))
    row = objects("Round").include("game").first()
    assert row is not None
    assert isinstance(row["game"], Object)
    assert row["game"]["name"] == "a"
    assert row["at"] == datetime(2026, 1, 1, tzinfo=UTC)
    plain = objects("Round").first()
    assert plain is not None
    assert plain["game"] == Pointer("Game", games[0].id)
    only = objects("Game").keys("name").first()
    assert only is not None
    assert "score" not in only
    without = objects("Game").without("name").first()
    assert without is not None
    assert "name" not in without
    assert objects("Round").where(game=games[0]).count() == 1
    assert objects("Round").where(at__lt=datetime.now(UTC) + timedelta(days=9999)).count() == 1


def test_creating_changing_and_removing(games: list[Object]) -> None:
    game = games[0]
    assert game.created_at is not None
    done = objects("Game").update(game, score=increment(4), tags=add("z"), name="new")
    assert done["score"] == 5
    assert (game["score"], game["tags"], game["name"]) == (5, ["x", "z"], "new")
    assert game.updated_at == done["updatedAt"]
    assert objects("Game").get(game.id) == game
    objects("Game").update(game.id, {"nested.a": 1})
    assert objects("Game").get(game.id)["nested"] == {"a": 1}
    objects("Game").delete(game)
    with pytest.raises(ObjectNotFound):
        objects("Game").delete(game.id)


def test_an_object_is_copied_and_saved_whole(games: list[Object]) -> None:
    game = games[0]
    copy = objects("Game").create(game, name="copy")
    assert copy.id != game.id
    assert (copy["name"], copy["score"], copy["tags"]) == ("copy", 1, ["x"])
    game["score"] = 7
    objects("Game").update(game, game)
    assert objects("Game").get(game.id)["score"] == 7
    with pytest.raises(InvalidKeyName):
        objects("Game").create({"objectId": "chosen", "name": "x"})


def test_members_of_relations(games: list[Object]) -> None:
    club = objects("Club").create(name="club", games=add_relation(*games[:2]))
    assert "games" not in club
    members = objects("Game").related_to(club, "games").order("name")
    assert names(members) == ["a", "b"]


def test_points_go_in_and_out(db: None) -> None:
    objects("Place").create(name="here", at=GeoPoint(1.5, 2))
    row = objects("Place").first()
    assert row is not None
    assert row["at"] == GeoPoint(1.5, 2)


def test_a_caller_sees_and_does_what_it_may_and_the_master_key_all(master: Api) -> None:
    owner, member, stranger = sign_up("owner"), sign_up("member"), sign_up("stranger")
    make_role(master, "Team", [member])
    acl = {
        owner.user_id: {"read": True, "write": True},
        "role:Team": {"read": True},
    }
    note = objects("Note").create(text="a", ACL=acl)

    def door(user: Any, *roles: str) -> ObjectAccess:
        return ObjectAccess(
            Principal(CLIENT.authority, user_id=user.user_id, roles=frozenset(roles))
        )

    as_owner, as_member, as_stranger = door(owner), door(member, "Team"), door(stranger)
    assert as_owner("Note").get(note.id)["text"] == "a"
    assert as_member("Note").get(note.id)["text"] == "a"
    assert as_stranger("Note").find() == ObjectAccess(CLIENT)("Note").find() == []
    as_owner("Note").update(note, text="b")
    for other in (as_member, as_stranger, ObjectAccess(CLIENT)):
        with pytest.raises(ObjectNotFound):
            other("Note").update(note, text="c")
        with pytest.raises(ObjectNotFound):
            other("Note").delete(note)
    with pytest.raises(OperationForbidden):
        ObjectAccess(CLIENT)("Unheard").create(a=1)
    assert as_stranger.as_master("Note").get(note.id)["text"] == "b"
    as_owner("Note").delete(note)
