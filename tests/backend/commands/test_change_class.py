"""``manage.py change_class``: what ``/schemas`` and ``/purge`` do, without a thread that waits."""

from __future__ import annotations

import json

import pytest
from django.core.management import CommandError, call_command

from tests.callers import *  # noqa: F403

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_class_is_changed_purged_and_removed(master, capsys):
    master.make("Game", score=1, old=2)
    removal = json.dumps({"fields": {"old": {"__op": "Delete"}}})
    call_command("change_class", "Game", "--schema", removal)
    assert "old" not in master.get("/schemas/Game").json["fields"]
    call_command("change_class", "Game", "--purge")
    assert master.results("Game") == []
    call_command("change_class", "Game", "--remove")
    assert master.get("/schemas/Game").error == (400, 103)
    assert capsys.readouterr().out == "changed: Game\npurged: Game\nremoved: Game\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("Game", "--schema", "{"), "--schema: "),
        (("Game", "--schema", '{"fields": 5}'), "fields: expected an object"),
        (("Game", "--remove"), "is not empty, contains 1 objects"),
        (("No class", "--purge"), "Invalid classname"),
    ],
)
def test_what_can_not_be_done_is_an_error_in_a_sentence(master, arguments, message):
    master.make("Game", score=1)
    with pytest.raises(CommandError, match=message):
        call_command("change_class", *arguments)
