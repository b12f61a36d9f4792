"""A create with a trigger is one transaction, of as few round trips as that takes."""

from __future__ import annotations

import pytest

from functions import TriggerRequest, after_save, before_save
from tests.rest import Api
from tests.statements import traffic

pytestmark = [
    pytest.mark.usefixtures("emptied"),
    pytest.mark.django_db(transaction=True),
]


def test_a_trigger_without_statements_costs_one_round_trip(master: Api) -> None:
    """That of the look whether the system is read-only, before the trigger runs."""
    master.make("Game", title="a")

    @before_save("Game")
    def rename(request: TriggerRequest) -> None:
        request.object["title"] = request.object["title"].upper()

    master.make("Game", title="b")
    with traffic() as recorded:
        assert master.post("/classes/Game", {"title": "c"}).json["title"] == "C"
    assert recorded.round_trips == 2
    assert [row["title"] for row in master.results("Game", order="title")] == ["B", "C", "a"]


def test_what_a_trigger_writes_is_undone_with_the_object(master: Api) -> None:
    unique = {"fields": {"title": {"type": "String", "unique": True}}}
    assert master.post("/schemas/Game", unique).status == 200
    master.make("Log", text="first")

    @before_save("Game")
    def note(request: TriggerRequest) -> None:
        request.objects("Log").create(text=request.object["title"])

    assert master.post("/classes/Game", {"title": "a"}).status == 201
    assert master.post("/classes/Game", {"title": "a"}).error == (400, 137)
    assert [row["text"] for row in master.results("Log", order="createdAt")] == ["first", "a"]


def test_what_follows_the_object_undoes_it(master: Api) -> None:
    """Triggers after the save find the object, and it is committed when they run."""
    master.make("Game", title="a")
    observed: list[str] = []

    @before_save("Game")
    def rename(request: TriggerRequest) -> None:
        request.object["title"] = "b"

    @after_save("Game")
    def look(request: TriggerRequest) -> None:
        observed.append(request.objects("Game").where(title="b").first()["title"])

    master.make("Game", title="c")
    assert observed == ["b"]
