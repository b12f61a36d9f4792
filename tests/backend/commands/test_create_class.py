"""``manage.py create_class``."""

from __future__ import annotations

import json

import pytest
from django.core.management import CommandError

from objects.definitions import indexes, registry
from tests.backend.commands.conftest import run

pytestmark = pytest.mark.django_db

GAME = (
    "create_class",
    "Game",
    "--field=title:String",
    "--field=score:Number",
    "--field=owner:Pointer:_User",
    "--field=players:Relation:_User",
    "--field=place:GeoPoint",
    "--required=title,score",
    "--index=score,-title",
    "--index=where=place:2dsphere",
    "--unique=one_title=title",
)


@pytest.mark.django_db(transaction=True)
def test_a_class_is_made_with_fields_permissions_and_indexes(master, client):
    output = run(*GAME, "--clp", json.dumps({"find": {"*": True}, "create": {}}))
    assert output.out == "created: Game\n"
    schema = master.get("/schemas/Game").json
    assert schema["fields"]["title"] == {"type": "String", "required": True}
    assert schema["fields"]["owner"] == {"type": "Pointer", "targetClass": "_User"}
    assert schema["fields"]["players"] == {"type": "Relation", "targetClass": "_User"}
    assert schema["indexes"]["by_score_title"] == {"score": 1, "title": -1}
    assert schema["indexes"]["where"] == {"place": "2dsphere"}
    assert indexes.missing(registry.find("Game")) == []
    master.make("Game", title="a", score=1)
    assert master.post("/classes/Game", {"title": "a", "score": 1}).json["code"] == 137
    assert master.post("/classes/Game", {"title": "b"}).json["code"] == 142
    assert len(client.results("Game")) == 1
    assert client.post("/classes/Game", {"title": "c", "score": 1}).json["code"] == 119


def test_permissions_may_come_from_a_file(master, write):
    path = write("clp.json", {"get": {"requiresAuthentication": True}})
    run("create_class", "Quiet", f"--clp={path}")
    shown = master.get("/schemas/Quiet").json["classLevelPermissions"]
    assert shown["get"] == {"requiresAuthentication": True}


def test_a_class_that_exists_is_left_as_it_is(master):
    run("create_class", "Game", "--field=title:String")
    with pytest.raises(CommandError, match="the class Game exists already"):
        run("create_class", "Game", "--field=other:String")
    assert "other" not in master.get("/schemas/Game").json["fields"]


def test_running_it_again_is_success_where_nothing_is_missing(db):
    assert run(*GAME, "--if-missing").out == "created: Game\n"
    assert run(*GAME, "--if-missing").out == "exists: Game\n"
    assert run("create_class", "Game", "--field=score:Number", "--required=score", "--if-missing")


@pytest.mark.parametrize(
    ("options", "differs"),
    [
        (["--field=score:String"], "fields.score"),
        (["--field=more:String"], "fields.more"),
        (["--field=title:String"], "fields.title"),  # it is required
        (["--field=score:Number", "--required=score", "--index=score"], "indexes.by_score"),
        (['--clp={"find": {}}'], "classLevelPermissions"),
    ],
)
def test_running_it_again_names_what_differs(db, options, differs):
    run(*GAME)
    with pytest.raises(CommandError, match=f"the class Game exists and differs: {differs}"):
        run("create_class", "Game", *options, "--if-missing")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["1Game"], "1Game"),
        (["_Mine"], "_Mine"),
        (["Game", "--field=title"], "expected NAME:TYPE"),
        (["Game", "--field=title:Text"], "invalid field type: Text; the types are String, "),
        (["Game", "--field=owner:Pointer<_User>"], "follows a colon: owner:Pointer:_User"),
        (["Game", "--field=title:String", "--field=title:Number"], "given twice"),
        (["Game", "--field=owner:Pointer"], "Pointer needs a class name"),
        (["Game", "--field=objectId:String"], "objectId"),
        (["Game", "--required=title"], "there is no --field title"),
        (["Game", "--clp={"], "--clp"),
        (["Game", "--clp=/nowhere/clp.json"], "No such file"),
        (["Game", '--clp={"fly": {}}'], "fly"),
        (["Game", "--index=score"], "score"),
        (["Game", "--field=score:Number", "--index=score:fulltext"], "expected"),
    ],
)
def test_what_is_wrong_is_named_and_nothing_is_made(master, arguments, message):
    with pytest.raises(CommandError, match=message):
        run("create_class", *arguments)
    assert master.get("/schemas/Game").status == 400
