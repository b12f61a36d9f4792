"""``manage.py build_indexes``: what an index's builder that died has left."""

from __future__ import annotations

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from tests.callers import *  # noqa: F403

pytestmark = pytest.mark.django_db(transaction=True)


def declare(master) -> None:
    fields = {"score": {"type": "Number"}, "name": {"type": "String"}}
    declared = {"by_score": {"score": 1}, "one_name": {"fields": {"name": 1}, "unique": True}}
    reply = master.post(
        "/schemas/Game", {"className": "Game", "fields": fields, "indexes": declared}
    )
    assert reply.status == 200, reply.json


def lose(index: str) -> None:
    """What is left in the end when the process that builds an index is killed."""
    from objects.definitions import indexes, registry

    table = registry.find("Game")
    declaration = table.schema.index_declarations[index]
    with connection.cursor() as cursor:
        cursor.execute(f'DROP INDEX "{indexes.index_name(table, declaration)}"')


def test_where_nothing_is_missing_nothing_is_done(master, capsys):
    declare(master)
    call_command("build_indexes", "--check")
    call_command("build_indexes")
    assert capsys.readouterr().out == ""


def test_a_missing_index_is_named_and_then_built(master, capsys):
    declare(master)
    lose("by_score")
    with pytest.raises(CommandError, match="1 declared index is missing"):
        call_command("build_indexes", "--check")
    assert capsys.readouterr().out == "missing: Game.by_score\n"
    call_command("build_indexes")
    assert capsys.readouterr().out == "built: Game.by_score\n"
    call_command("build_indexes", "--check")


def test_an_index_that_is_there_but_not_whole_is_built_again(master, capsys):
    from objects.definitions import indexes, registry

    declare(master)
    table = registry.find("Game")
    name = indexes.index_name(table, table.schema.index_declarations["by_score"])
    with connection.cursor() as cursor:
        # As PostgreSQL marks it while CREATE INDEX CONCURRENTLY goes on.
        cursor.execute(
            "UPDATE pg_index SET indisvalid = false WHERE indexrelid = %s::regclass", [name]
        )
    call_command("build_indexes")
    assert capsys.readouterr().out == "built: Game.by_score\n"
    call_command("build_indexes", "--check")


def test_a_unique_index_that_the_objects_don_t_allow_is_left_and_told(master, capsys):
    declare(master)
    lose("one_name")
    master.make("Game", name="a")
    master.make("Game", name="a")
    with pytest.raises(CommandError, match="1 declared index is missing"):
        call_command("build_indexes")
    assert "Game.one_name: The index one_name can't be unique" in capsys.readouterr().err


def test_an_index_that_no_class_declares_is_listed_and_then_dropped(master, capsys):
    declare(master)
    with connection.cursor() as cursor:
        # As a process leaves it that is killed between a change of a class and what follows.
        cursor.execute(
            "UPDATE objects_class SET definition = definition #- '{indexes,one_name}',"
            " version = version + 1000 WHERE name = 'Game'"
        )
    master.make("Game", name="a")
    assert master.post("/classes/Game", {"name": "a"}).error == (400, 137)
    with pytest.raises(CommandError, match="No class declares 1 index"):
        call_command("build_indexes", "--check")
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("undeclared: objects_declared_")
    call_command("build_indexes")
    assert capsys.readouterr().out == line.replace("undeclared", "dropped") + "\n"
    call_command("build_indexes", "--check")
    master.make("Game", name="a")
