"""Triggers around searches, and what goes around searches: includes, sub-queries."""

from __future__ import annotations

from typing import Any

import pytest

from functions import FindRequest, Object, after_find, before_find, function
from tests.people import sign_up
from tests.rest import Api


def names(api: Api, class_name: str = "Project", **params: Any) -> list[str]:
    return [result["name"] for result in api.results(class_name, order="name", **params)]


@pytest.fixture
def projects(master: Api) -> dict[str, str]:
    """Three projects by name; C is hidden by the trigger of most tests."""
    return {name: master.make("Project", name=name, hidden=name == "C") for name in "ABC"}


def hide() -> None:
    @before_find("Project")
    def only_shown(request: FindRequest) -> None:
        if not request.master:
            request.query.where(hidden=False)


def test_a_trigger_narrows_what_is_found(client: Api, projects: dict[str, str]) -> None:
    hide()
    assert names(client) == ["A", "B"]
    assert names(client, where={"name": {"$in": ["B", "C"]}}) == ["B"]


def test_the_master_key_goes_through_triggers_too_and_they_know(
    master: Api, projects: dict[str, str]
) -> None:
    hide()
    assert names(master) == ["A", "B", "C"]


def test_a_count_is_narrowed_as_well(client: Api, projects: dict[str, str]) -> None:
    hide()
    calls: list[tuple[bool, bool]] = []

    @before_find("*")
    def note(request: FindRequest) -> None:
        calls.append((request.is_count, request.is_get))

    reply = client.get("/classes/Project", count="1", limit="0")
    assert reply.json == {"results": [], "count": 2}
    assert calls == [(True, False)]


def test_a_get_by_id_is_narrowed_as_well(client: Api, projects: dict[str, str]) -> None:
    hide()
    assert client.get(f"/classes/Project/{projects['A']}").json["name"] == "A"
    assert client.get(f"/classes/Project/{projects['C']}").error == (404, 101)


def test_an_include_does_not_get_around_a_trigger(
    master: Api, client: Api, projects: dict[str, str]
) -> None:
    hide()
    for name, object_id in projects.items():
        pointer = {"__type": "Pointer", "className": "Project", "objectId": object_id}
        master.make("Task", name=name, project=pointer)
    results = client.results("Task", include="project", order="name")
    assert [task.get("project", {}).get("name") for task in results] == ["A", "B", None]


def test_a_sub_query_does_not_get_around_a_trigger(
    master: Api, client: Api, projects: dict[str, str]
) -> None:
    hide()
    for name, object_id in projects.items():
        pointer = {"__type": "Pointer", "className": "Project", "objectId": object_id}
        master.make("Task", name=name, project=pointer)
    inside = {"className": "Project", "where": {"name": {"$exists": True}}}
    assert names(client, "Task", where={"project": {"$inQuery": inside}}) == ["A", "B"]
    select = {"$select": {"query": inside, "key": "name"}}
    assert names(client, "Task", where={"name": select}) == ["A", "B"]


def test_members_of_a_relation_are_narrowed_as_well(
    master: Api, client: Api, projects: dict[str, str]
) -> None:
    hide()
    members = [
        {"__type": "Pointer", "className": "Project", "objectId": object_id}
        for object_id in projects.values()
    ]
    owner = master.make("List", items={"__op": "AddRelation", "objects": members})
    pointer = {"__type": "Pointer", "className": "List", "objectId": owner}
    where = {"$relatedTo": {"object": pointer, "key": "items"}}
    assert names(client, where=where) == ["A", "B"]
    params = {"where": where, "redirectClassNameForKey": "items"}
    results = client.results("List", **params)
    assert sorted(object_id["name"] for object_id in results) == ["A", "B"]


def test_a_trigger_may_ask_for_what_the_caller_may_not_ask_for(
    master: Api, client: Api, projects: dict[str, str]
) -> None:
    permissions = {
        **{name: {"*": True} for name in ("find", "get", "count")},
        "protectedFields": {"*": ["hidden"]},
    }
    body = {"classLevelPermissions": permissions}
    assert master.put("/schemas/Project", body).status == 200
    hide()
    assert client.get("/classes/Project", where={"hidden": True}).error == (400, 119)
    assert names(client) == ["A", "B"]
    assert "hidden" not in client.results("Project")[0]


def test_a_trigger_refuses_a_search(client: Api, projects: dict[str, str]) -> None:
    @before_find("Project", require_user=True)
    def members_only(request: FindRequest) -> None: ...

    assert client.get("/classes/Project").error == (400, 142)
    assert client.get(f"/classes/Project/{projects['A']}").error == (400, 142)
    assert names(sign_up("ann")) == ["A", "B", "C"]


def test_a_trigger_changes_limit_order_and_keys(client: Api, projects: dict[str, str]) -> None:
    @before_find("Project")
    def two_newest(request: FindRequest) -> None:
        request.query.order("-name").limit(2).keys("name")

    results = client.results("Project", order="name", limit=100)
    assert [result["name"] for result in results] == ["C", "B"]
    assert "hidden" not in results[0]


def test_a_trigger_answers_without_the_database(client: Api, projects: dict[str, str]) -> None:
    @before_find("Project")
    def canned(request: FindRequest) -> list[Object]:
        return [Object("Project", {"objectId": "x1", "name": "made"})]

    assert names(client) == ["made"]
    assert client.get("/classes/Project/whatever").json["name"] == "made"
    assert client.get("/classes/Project", count="1").json["count"] == 1


def test_what_was_found_is_changed_or_replaced(client: Api, projects: dict[str, str]) -> None:
    @after_find("Project")
    def shout(request: FindRequest) -> list[Object] | None:
        assert request.results is not None
        if request.is_get:
            return None
        for result in request.results:
            result["name"] += "!"
        return request.results[:2]

    assert names(client) == ["A!", "B!"]
    assert client.get(f"/classes/Project/{projects['C']}").json["name"] == "C"
    stored = client.get(f"/classes/Project/{projects['A']}").json
    assert stored["name"] == "A"
    assert stored["createdAt"].endswith("Z")


def test_a_get_whose_object_is_taken_away_finds_nothing(
    client: Api, projects: dict[str, str]
) -> None:
    @after_find("Project")
    def nothing(request: FindRequest) -> list[Object]:
        return []

    assert client.get(f"/classes/Project/{projects['A']}").error == (404, 101)


def test_objects_that_are_included_go_through_the_trigger_after(
    master: Api, client: Api, projects: dict[str, str]
) -> None:
    pointer = {"__type": "Pointer", "className": "Project", "objectId": projects["A"]}
    master.make("Task", name="t", project=pointer)

    @after_find("Project")
    def shout(request: FindRequest) -> None:
        assert request.results is not None
        for result in request.results:
            result["name"] += "!"

    (task,) = client.results("Task", include="project")
    assert task["project"]["name"] == "A!"
    assert task["project"]["className"] == "Project"


def test_server_code_goes_through_the_triggers_of_searches(
    client: Api, projects: dict[str, str]
) -> None:
    hide()

    @function()
    def count(request: Any) -> Any:
        return [request.objects("Project").count(), request.objects.as_master("Project").count()]

    assert client.post("/functions/count").json == {"result": [2, 3]}


def test_a_trigger_that_searches_its_own_class_for_ever_is_stopped(
    client: Api, projects: dict[str, str]
) -> None:
    @before_find("Project")
    def again(request: FindRequest) -> None:
        request.objects("Project").find()

    reply = client.get("/classes/Project")
    assert reply.error == (400, 141)
    assert "levels deep" in reply.json["error"]


def test_a_mistake_in_a_trigger_is_141(client: Api, projects: dict[str, str]) -> None:
    @before_find("Project")
    def wrong(request: FindRequest) -> None:
        raise ZeroDivisionError

    assert client.get("/classes/Project").error == (400, 141)


def test_users_are_found_through_triggers_too(master: Api) -> None:
    ann = sign_up("ann")

    @after_find("_User")
    def decorate(request: FindRequest) -> None:
        assert request.results is not None
        for result in request.results:
            result["title"] = "Dr."

    assert ann.get("/users/me").json["title"] == "Dr."
    assert ann.get(f"/users/{ann.user_id}").json["title"] == "Dr."
