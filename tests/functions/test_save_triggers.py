"""Triggers around saves and deletes."""

from __future__ import annotations

from typing import Any

import pytest

from backend.kernel.errors import OperationForbidden
from functions import (
    ScriptFailed,
    TriggerRequest,
    after_delete,
    after_save,
    before_delete,
    before_save,
    function,
    increment,
)
from tests.people import sign_up
from tests.rest import MASTER, Api


def test_a_trigger_before_a_save_changes_what_is_stored_and_the_answer_shows_it(
    master: Api,
) -> None:
    @before_save("Project")
    def defaults(request: TriggerRequest) -> None:
        assert request.is_new
        assert request.original is None
        request.object.setdefault("status", "new")
        request.object["title"] = request.object["title"].strip()

    reply = master.post("/classes/Project", {"title": " A ", "size": 1})
    assert reply.status == 201
    assert reply.json["status"] == "new"
    assert reply.json["title"] == "A"
    assert "size" not in reply.json
    (stored,) = master.results("Project")
    assert (stored["title"], stored["status"], stored["size"]) == ("A", "new", 1)


def test_required_fields_and_default_values_come_after_the_trigger(master: Api) -> None:
    fields = {
        "owner": {"type": "String", "required": True},
        "status": {"type": "String", "required": True, "defaultValue": "new"},
        "stars": {"type": "Number", "defaultValue": 3},
    }
    master.post("/schemas/Project", {"fields": fields})
    seen: list[set[str]] = []

    @before_save("Project")
    def fill(request: TriggerRequest) -> None:
        seen.append(fields.keys() & request.object.keys())
        match request.object.get("title"):
            case "set":
                request.object.update(owner="a", status="open", stars=5)
            case "unset":
                request.object["owner"] = "b"
                del request.object["status"], request.object["stars"]
            case "without":
                del request.object["owner"]

    reply = master.post("/classes/Project", {"title": "set"})
    assert [reply.json[name] for name in fields] == ["a", "open", 5]
    body = {"title": "unset", "status": "x", "stars": 1}
    reply = master.post("/classes/Project", body)
    assert [reply.json[name] for name in fields] == ["b", "new", 3]
    reply = master.post("/classes/Project", {"title": "without", "owner": "c"})
    assert reply.json == {"code": 142, "error": "owner is required"}
    assert master.post("/classes/Project", {"title": "other"}).error == (400, 142)
    assert seen == [set(), {"status", "stars"}, {"owner"}, set()]
    assert {row["owner"]: row["status"] for row in master.results("Project")} == {
        "a": "open",
        "b": "new",
    }


def test_a_trigger_sees_the_object_after_the_operators_and_as_it_was(master: Api) -> None:
    object_id = master.make("Game", score=1, tags=["a"], extra=1)
    calls: list[Any] = []

    @before_save("Game")
    def look(request: TriggerRequest) -> None:
        assert request.original is not None
        calls.append((request.original["score"], request.object["score"], request.object["tags"]))
        assert request.object.id == object_id
        assert not request.is_new
        assert request.changed("score")
        assert not request.changed("extra")

    body = {
        "score": {"__op": "Increment", "amount": 5},
        "tags": {"__op": "Add", "objects": ["b"]},
        "extra": 1,
    }
    reply = master.put(f"/classes/Game/{object_id}", body)
    assert reply.json["score"] == 6
    assert calls == [(1, 6, ["a", "b"])]
    assert master.results("Game")[0]["tags"] == ["a", "b"]


def test_a_trigger_removes_fields_and_uses_operators(master: Api) -> None:
    object_id = master.make("Game", score=1, secret="x", note="y")

    @before_save("Game")
    def tidy(request: TriggerRequest) -> None:
        del request.object["secret"]
        request.object["saves"] = increment(2)

    reply = master.put(f"/classes/Game/{object_id}", {"note": "z", "secret": "w"})
    assert reply.json["secret"] == {"__op": "Delete"}
    stored = master.results("Game")[0]
    assert "secret" not in stored
    assert (stored["saves"], stored["note"]) == (2, "z")


def test_a_refusal_keeps_the_object_out(master: Api) -> None:
    @before_save("Project")
    def refuse(request: TriggerRequest) -> None:
        raise ScriptFailed("Projects are closed.")

    reply = master.post("/classes/Project", {"a": 1})
    assert (reply.error, reply.json["error"]) == ((400, 141), "Projects are closed.")
    assert master.results("Project") == []


def test_a_service_error_keeps_its_code_and_a_mistake_is_141(master: Api) -> None:
    @before_save("Forbidden")
    def forbid(request: TriggerRequest) -> None:
        raise OperationForbidden("No.")

    @before_save("Broken")
    def broken(request: TriggerRequest) -> None:
        raise KeyError("internal detail")

    assert master.post("/classes/Forbidden", {}).error == (400, 119)
    reply = master.post("/classes/Broken", {})
    assert reply.error == (400, 141)
    assert "internal" not in reply.json["error"]


def test_who_may_not_write_reaches_no_trigger(master: Api, client: Api) -> None:
    master.post("/schemas/Project", {"classLevelPermissions": {"find": {"*": True}}})
    object_id = master.make("Project", a=1)
    calls: list[str] = []

    @before_save("Project")
    def saw(request: TriggerRequest) -> None:
        calls.append("save")

    @before_delete("Project")
    def saw_delete(request: TriggerRequest) -> None:
        calls.append("delete")

    assert client.post("/classes/Project", {"a": 2}).error == (400, 119)
    assert client.put(f"/classes/Project/{object_id}", {"a": 2}).error == (400, 119)
    assert client.delete(f"/classes/Project/{object_id}").error == (400, 119)
    assert calls == []


def test_an_object_that_the_caller_may_not_change_reaches_no_trigger(master: Api) -> None:
    owner, stranger = sign_up("owner"), sign_up("stranger")
    acl = {owner.user_id: {"read": True, "write": True}, "*": {"read": True}}
    object_id = master.make("Note", text="a", ACL=acl)
    calls: list[str | None] = []

    @before_save("Note")
    def saw(request: TriggerRequest) -> None:
        calls.append(request.user_id)

    assert stranger.put(f"/classes/Note/{object_id}", {"text": "b"}).error == (404, 101)
    assert calls == []
    assert owner.put(f"/classes/Note/{object_id}", {"text": "b"}).status == 200
    assert calls == [owner.user_id]


def test_a_trigger_may_add_fields_that_the_caller_may_not(master: Api, client: Api) -> None:
    permissions = {"create": {"*": True}, "find": {"*": True}, "update": {"*": True}}
    fields = {"text": {"type": "String"}}
    body = {"fields": fields, "classLevelPermissions": permissions}
    assert master.post("/schemas/Note", body).status == 200

    @before_save("Note")
    def stamp(request: TriggerRequest) -> None:
        request.object["checked"] = True

    assert client.post("/classes/Note", {"text": "a", "other": 1}).error == (400, 119)
    reply = client.post("/classes/Note", {"text": "a"})
    assert reply.status == 201, reply.json
    assert client.results("Note")[0]["checked"] is True


def test_protected_fields_that_a_trigger_sets_are_not_shown(master: Api, client: Api) -> None:
    permissions = {
        **{name: {"*": True} for name in ("find", "create", "get", "addField")},
        "protectedFields": {"*": ["rating"]},
    }
    body = {"fields": {"rating": {"type": "Number"}}, "classLevelPermissions": permissions}
    assert master.post("/schemas/Note", body).status == 200

    @before_save("Note")
    def rate(request: TriggerRequest) -> None:
        request.object["rating"] = 5
        request.object["seen"] = True

    reply = client.post("/classes/Note", {"text": "a"})
    assert reply.status == 201, reply.json
    assert reply.json["seen"] is True
    assert "rating" not in reply.json
    assert master.results("Note")[0]["rating"] == 5


def test_a_required_field_may_come_from_a_trigger(master: Api) -> None:
    master.post("/schemas/Note", {"fields": {"text": {"type": "String", "required": True}}})

    @before_save("Note")
    def fill(request: TriggerRequest) -> None:
        request.object.setdefault("text", "empty")

    assert master.post("/classes/Note", {}).json["text"] == "empty"


def test_what_a_trigger_puts_in_is_checked_like_a_clients_value(master: Api) -> None:
    master.make("Note", text="a")

    @before_save("Note")
    def wrong(request: TriggerRequest) -> None:
        request.object["text"] = 5

    assert master.post("/classes/Note", {}).error == (400, 111)


def test_the_access_list_may_be_set_by_a_trigger(master: Api, client: Api) -> None:
    @before_save("Note")
    def private(request: TriggerRequest) -> None:
        request.object["ACL"] = {}

    object_id = master.make("Note", text="a")
    assert client.get(f"/classes/Note/{object_id}").error == (404, 101)


def test_dotted_operators_and_triggers_go_together(master: Api) -> None:
    object_id = master.make("Note", meta={"a": 1, "b": 1})

    @before_save("Note")
    def count(request: TriggerRequest) -> None:
        request.object["meta"]["c"] = request.object["meta"]["a"]

    body = {"meta.a": {"__op": "Increment", "amount": 1}}
    assert master.put(f"/classes/Note/{object_id}", body).status == 200
    assert master.results("Note")[0]["meta"] == {"a": 2, "b": 1, "c": 2}


@pytest.mark.django_db(transaction=True)
def test_after_a_save_the_object_is_stored_whatever_the_trigger_does(emptied: None) -> None:
    master = Api(MASTER)
    calls: list[Any] = []

    @after_save("Note")
    def after(request: TriggerRequest) -> None:
        stored = request.objects("Note").get(request.object.id)
        calls.append((stored["text"], request.original and request.original["text"]))
        raise RuntimeError("too late")

    object_id = master.make("Note", text="a")
    assert master.put(f"/classes/Note/{object_id}", {"text": "b"}).status == 200
    assert calls == [("a", None), ("b", "a")]
    assert master.results("Note")[0]["text"] == "b"


@pytest.mark.django_db(transaction=True)
def test_inside_of_the_transaction_a_trigger_after_a_save_can_still_undo_it(emptied: None) -> None:
    master = Api(MASTER)

    @after_save("Note", in_transaction=True)
    def mirror(request: TriggerRequest) -> None:
        request.objects("Copy").create(of=request.object.id)
        if request.object["text"] == "bad":
            raise ScriptFailed("No.")

    assert master.post("/classes/Note", {"text": "good"}).status == 201
    assert master.post("/classes/Note", {"text": "bad"}).error == (400, 141)
    assert [note["text"] for note in master.results("Note")] == ["good"]
    assert len(master.results("Copy")) == 1


@pytest.mark.django_db(transaction=True)
def test_context_is_shared_from_before_to_after_and_with_the_client(emptied: None) -> None:
    master = Api(MASTER)
    calls: list[Any] = []

    @before_save("Note")
    def before(request: TriggerRequest) -> None:
        request.context["before"] = True

    @after_save("Note")
    def after(request: TriggerRequest) -> None:
        calls.append(dict(request.context))

    headers = {"X-Svc-Cloud-Context": '{"client": 1}'}
    assert master.call("POST", "/classes/Note", {"a": 1}, headers=headers).status == 201
    assert master.post("/classes/Note", {"a": 1, "_context": {"body": 1}}).status == 201
    assert calls == [{"client": 1, "before": True}, {"body": 1, "before": True}]


def test_a_delete_is_refused_or_clears_away_what_belongs_to_the_object(master: Api) -> None:
    parent = master.make("Parent", keep=False)
    saved = master.make("Parent", keep=True)
    pointer = {"__type": "Pointer", "className": "Parent", "objectId": parent}
    master.make("Child", parent=pointer)

    @before_delete("Parent")
    def clear(request: TriggerRequest) -> None:
        if request.object["keep"]:
            raise ScriptFailed("It is to be kept.")
        for child in request.objects("Child").where(parent=request.object).find():
            request.objects("Child").delete(child)

    assert master.delete(f"/classes/Parent/{saved}").error == (400, 141)
    assert master.delete(f"/classes/Parent/{parent}").status == 200
    assert master.results("Child") == []
    assert [result["objectId"] for result in master.results("Parent")] == [saved]


@pytest.mark.django_db(transaction=True)
def test_after_a_delete_the_object_is_reported_and_gone(emptied: None) -> None:
    master = Api(MASTER)
    calls: list[Any] = []

    @after_delete("Note")
    def after(request: TriggerRequest) -> None:
        gone = request.objects("Note").where(objectId=request.object.id).count()
        calls.append((request.object["text"], gone))

    master.delete(f"/classes/Note/{master.make('Note', text='a')}")
    assert calls == [("a", 0)]


def test_a_trigger_of_every_class_runs_after_that_of_the_class(master: Api) -> None:
    order: list[str] = []

    @before_save("*")
    def every(request: TriggerRequest) -> None:
        order.append(f"* {request.class_name}")

    @before_save("Note")
    def note(request: TriggerRequest) -> None:
        order.append("Note")

    master.make("Note", a=1)
    master.make("Other", a=1)
    sign_up("ann")
    assert order == ["Note", "* Note", "* Other", "* _User"]


@pytest.mark.django_db(transaction=True)
def test_a_batch_runs_the_trigger_of_each_item(emptied: None) -> None:
    master = Api(MASTER)

    @before_save("Note")
    def check(request: TriggerRequest) -> None:
        if request.object["n"] == 1:
            raise ScriptFailed("Not 1.")
        request.object["checked"] = True

    items = [{"method": "POST", "path": "/api/classes/Note", "body": {"n": n}} for n in range(3)]
    answers = master.post("/batch", {"requests": items}).json
    assert [sorted(answer) for answer in answers] == [["success"], ["error"], ["success"]], answers
    results = master.results("Note", where={"checked": True}, order="n")
    assert [result["n"] for result in results] == [0, 2]

    together = {"requests": items, "transaction": True}
    assert master.post("/batch", together).error == (400, 141)
    assert len(master.results("Note")) == 2


def test_saves_of_server_code_run_triggers_as_well(master: Api, client: Api) -> None:
    @before_save("Note")
    def check(request: TriggerRequest) -> None:
        request.object["by"] = "master" if request.master else "client"

    @function()
    def save(request: Any) -> Any:
        mine = request.objects("Note").create(text="a")
        theirs = request.objects.as_master("Note").create(text="b")
        return [mine["by"], theirs["by"]]

    master.make("Note", text="first")
    assert client.post("/functions/save").json == {"result": ["client", "master"]}


def test_a_trigger_needs_what_it_says(master: Api, client: Api) -> None:
    master.make("Note", text="first")

    @before_save("Note", require_user=True)
    def anything(request: TriggerRequest) -> None: ...

    assert client.post("/classes/Note", {"text": "a"}).error == (400, 142)
    assert sign_up("ann").post("/classes/Note", {"text": "a"}).status == 201
    assert master.post("/classes/Note", {"text": "a"}).status == 201


# -- Users -----------------------------------------------------------------------------------------


def test_a_sign_up_goes_through_the_triggers_of_users(master: Api) -> None:
    @before_save("_User")
    def check(request: TriggerRequest) -> None:
        if request.object["username"] == "bad":
            raise ScriptFailed("This name isn't allowed.")
        request.object["level"] = 1

    ann = sign_up("ann")
    assert ann.get("/users/me").json["level"] == 1
    reply = Api(ann.headers).post("/users", {"username": "bad", "password": "correct horse"})
    assert reply.error == (400, 141)


def test_a_password_that_a_trigger_sets_counts_and_is_never_shown(master: Api) -> None:
    @before_save("_User")
    def choose(request: TriggerRequest) -> None:
        request.object["password"] = "chosen by the trigger"

    reply = master.post("/users", {"username": "ann", "password": "whatever else"})
    assert "password" not in reply.json
    body = {"username": "ann", "password": "chosen by the trigger"}
    assert master.post("/login", body).status == 200
    assert "password" not in master.results("_User")[0]


@pytest.mark.parametrize(
    ("class_name", "event"),
    [
        ("_Session", "before_save"),
        ("_JobStatus", "before_save"),
        ("_Hooks", "after_find"),
        ("@Config", "before_find"),
        ("Note", "before_login"),
        ("_User", "after_logout"),
    ],
)
def test_events_that_a_class_does_not_have_are_mistakes(class_name: str, event: Any) -> None:
    from functions.runtime.registry import trigger

    with pytest.raises(ValueError, match="has no trigger"):
        trigger(event, class_name)
