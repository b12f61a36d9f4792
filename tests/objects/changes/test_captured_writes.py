"""Each committed write is captured once, for every kind of writer."""

from __future__ import annotations

import io
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection, transaction
from django.test import Client

from backend.kernel.principal import MASTER
from chain.indexing.storage import events as storing
from chain.models import Transaction
from functions import Request, function
from functions.runtime.registry import registry
from objects import service
from tests.catalogue.models import Book
from tests.chain.test_storing import MANY, NETWORK, row
from tests.objects.changes.recorder import Watch, everything, fields, kinds, recorded
from tests.people import PASSWORD, log_in, make_role, sign_up, with_token
from tests.rest import CLIENT, Api

DATE = {"__type": "Date", "iso": "2020-01-01T00:00:00.000Z"}


def test_a_change_has_the_object_before_and_after(watch: Watch, master: Api) -> None:
    reader = watch("Game")
    game = master.make("Game", score=1, tags=["a"], at=DATE, ACL={"*": {"read": True}})
    master.put(f"/classes/Game/{game}", {"score": {"__op": "Increment", "amount": 2}})
    stored = master.get(f"/classes/Game/{game}").json
    master.delete(f"/classes/Game/{game}")
    created, updated, deleted = everything(reader)
    assert created.after
    assert updated.before
    assert updated.after
    assert deleted.before
    assert created.before is deleted.after is None
    assert created.after.object()["score"] == 1
    assert created.after.json() == updated.before.json()
    assert updated.after.object() == deleted.before.object() == stored
    assert {item.object_id for item in (created, updated, deleted)} == {game}
    assert {item.table.class_name for item in (created, updated, deleted)} == {"Game"}
    assert created.at <= updated.at <= deleted.at
    assert everything(reader) == []


def test_what_a_model_keeps_in_columns_comes_back_as_rest_shows_it(
    watch: Watch, master: Api
) -> None:
    reader = watch("Book")
    book = master.make(
        "Book",
        **{"title": 'a "title"\\', "pages": 12, "price": 12.5, "inPrint": True, "published": DATE},
        author={"__type": "Pointer", "className": "Author", "objectId": "ann"},
        **{"tags": ["a", {"b": None}], "cover": {"colour": "red"}, "more": {"free": [1, 2.5]}},
    )
    (created,) = everything(reader)
    assert created.after
    assert created.after.object() == master.get(f"/classes/Book/{book}").json
    Book.objects.filter(pk=book).update(title=None, data={})
    Book.objects.filter(pk=book).update(title=None)
    (updated,) = everything(reader)
    assert fields(updated.before) == fields(created.after)
    assert updated.after
    assert not {"title", "more"} & updated.after.object().keys()


def test_a_batch_and_a_transaction_are_reported_object_by_object(watch: Watch, master: Api) -> None:
    reader = watch("Game", "Late")
    requests = [{"method": "POST", "path": "/api/classes/Game", "body": {"n": n}} for n in range(3)]
    assert master.post("/batch", {"requests": requests}).status == 200
    assert recorded(reader) == [(None, {"n": n}) for n in range(3)]
    requests[1] = {"method": "POST", "path": "/api/classes/Game", "body": {"n": "no number"}}
    assert master.post("/batch", {"requests": requests, "transaction": True}).status == 400
    assert recorded(reader) == []
    requests[1] = {"method": "POST", "path": "/api/classes/Late", "body": {"n": "first"}}
    assert master.post("/batch", {"requests": requests, "transaction": True}).status == 200
    assert kinds(reader) == [("Game", "create"), ("Late", "create"), ("Game", "create")]


def test_what_is_rolled_back_is_never_reported(watch: Watch, master: Api) -> None:
    reader = watch("Game")
    game = master.make("Game", n=1)
    everything(reader)
    with transaction.atomic():
        master.put(f"/classes/Game/{game}", {"n": 2})
        transaction.set_rollback(True)
    with transaction.atomic():
        with transaction.atomic():
            master.put(f"/classes/Game/{game}", {"n": 3})
            transaction.set_rollback(True)
        master.put(f"/classes/Game/{game}", {"n": 4})
    assert recorded(reader) == [({"n": 1}, {"n": 4})]


def test_no_changes_are_reported_of_classes_that_no_one_wants(watch: Watch, master: Api) -> None:
    reader = watch("Game")
    master.make("Other")
    assert everything(reader) == []
    both = watch("Game", "Other")
    master.make("Other")
    master.make("Game")
    assert kinds(reader) == [("Game", "create")]
    assert kinds(both) == [("Other", "create"), ("Game", "create")]


def test_a_class_may_be_wanted_before_it_is_there(watch: Watch, master: Api) -> None:
    reader = watch("Later")
    master.make("Later", n=1)
    assert master.delete("/purge/Later").status == 200
    assert master.delete("/schemas/Later").status == 200
    master.make("Later", m="other")
    assert [(item.table.class_name, fields(item.after)) for item in everything(reader)] == [
        ("Later", {"m": "other"})
    ]


def test_a_class_that_changes_is_reported_as_it_is_now(watch: Watch, master: Api) -> None:
    reader = watch("Game")
    master.make("Game", n=1)
    master.put("/schemas/Game", {"fields": {"owner": {"type": "Relation", "targetClass": "_User"}}})
    (created,) = everything(reader)
    assert created.after
    assert created.after.object()["owner"] == {"__type": "Relation", "className": "_User"}
    assert "owner" in created.table.schema.fields


@pytest.mark.parametrize("class_name", ["Game", "Book"])
def test_purging_a_class_is_reported_for_each_object(
    watch: Watch, master: Api, class_name: str
) -> None:
    for n in range(3):
        master.make(class_name, n=n)
    reader = watch(class_name)
    assert master.delete(f"/purge/{class_name}").status == 200
    assert sorted(before["n"] for before, after in recorded(reader)) == [0, 1, 2]
    assert master.get(f"/classes/{class_name}").json == {"results": []}


def test_sessions_come_and_go_with_people(watch: Watch, master: Api) -> None:
    reader = watch("_Session", "_User", "_Role")
    ann = sign_up("ann")
    assert kinds(reader) == [("_User", "create"), ("_Session", "create")]
    again = with_token(log_in("ann").json["sessionToken"])
    (begun,) = everything(reader)
    assert begun.after
    assert begun.after.object()["user"] == ann.pointer
    assert not {"sessionToken", "token_hash"} & begun.after.object().keys()
    assert again.post("/logout").status == 200
    (ended,) = everything(reader)
    assert (ended.object_id, ended.after) == (begun.object_id, None)
    before = reader.read().role_version
    role = make_role(master, "readers", [ann])
    batch = reader.read()
    assert [fields(change.after)["name"] for change in batch.changes] == ["readers"]
    assert batch.role_version != before
    master.put(
        f"/classes/_Role/{role}", {"users": {"__op": "RemoveRelation", "objects": [ann.pointer]}}
    )
    assert reader.read().role_version not in (before, batch.role_version)
    everything(reader)
    assert master.put(f"/users/{ann.user_id}", {"password": "another one"}).status == 200
    assert ("_Session", "delete") in kinds(reader)
    log_in("ann", "another one")
    everything(reader)
    assert master.delete(f"/users/{ann.user_id}").status == 200
    assert sorted(kinds(reader)) == [("_Session", "delete"), ("_User", "delete")]
    assert Api(CLIENT).post("/login", {"username": "ann", "password": PASSWORD}).status != 200


@pytest.mark.parametrize("events", [MANY[:2], MANY], ids=["few", "copied"])
def test_an_event_that_leaves_the_chain_is_gone_and_may_come_back(
    watch: Watch, events: list[Any]
) -> None:
    reader = watch("ContractEvent")

    def store(seq: int) -> None:
        with transaction.atomic():
            storing.store_events(NETWORK, events, after_seq=seq)

    store(0)
    came = everything(reader)
    assert [change.before for change in came] == [None] * len(events)
    store(len(events))
    assert everything(reader) == []
    with transaction.atomic():
        storing.remove_events(NETWORK, 99, after_seq=len(events))
    left = everything(reader)
    assert {item.object_id for item in left} == {item.object_id for item in came}
    assert all(item.before is not None and item.after is None for item in left)
    store(2 * len(events))
    back = everything(reader)
    assert {item.object_id for item in back} == {item.object_id for item in came}
    assert all(item.before is None and item.after is not None for item in back)


def test_history_that_is_read_later_is_reported_too(watch: Watch) -> None:
    reader = watch("ContractEvent")
    with transaction.atomic():
        storing.store_events(NETWORK, [row(1), row(2)], after_seq=None)
    assert kinds(reader) == [("ContractEvent", "create")] * 2


def test_columns_of_the_service_s_own_are_no_change(watch: Watch, master: Api) -> None:
    reader = watch("Transaction")
    sent = master.make("Transaction", hash="0x" + "a" * 64, networkId="1", status="pending")
    everything(reader)
    Transaction.objects.filter(pk=sent).update(missing_checks=3)
    assert everything(reader) == []
    Transaction.objects.filter(pk=sent).update(attempts=1)
    assert [after["attempts"] for _, after in recorded(reader)] == [1]


def test_long_texts_and_many_objects_arrive_whole(watch: Watch, master: Api) -> None:
    reader = watch("Game")
    text = 'ä\\"\n' * 300_000
    game = master.make("Game", text=text)
    master.put(f"/classes/Game/{game}", {"n": 1})
    assert recorded(reader) == [(None, {"text": text}), ({"text": text}, {"text": text, "n": 1})]
    make = partial(service.create, MASTER, "Game")
    with transaction.atomic():
        for n in range(30):
            make({"n": n})
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO objects_object SELECT class_id, 'copy' || n, created_at, updated_at,"
            " read_acl, write_acl, jsonb_build_object('n', n) FROM objects_object,"
            " generate_series(1, 2500) n WHERE object_id = %s ORDER BY n",
            [game],
        )
    assert [after["n"] for _, after in recorded(reader)] == [*range(30), *range(1, 2501)]


def test_functions_imports_and_staff_are_reported_like_all_others(
    watch: Watch, master: Api, tmp_path: Path
) -> None:
    reader = watch("Thing")
    with registry.temporarily():

        @function()
        def put_one(request: Request) -> None:
            request.objects("Thing").create(by="function")

        assert master.post("/functions/put_one").status == 200
    rows = tmp_path / "rows.ndjson"
    rows.write_text('{"by": "import"}\n{"by": "import"}\n')
    call_command("import_objects", "Thing", str(rows), stdout=io.StringIO())
    by = [after["by"] for _, after in recorded(reader)]
    assert by == ["function", "import", "import"]
    thing = master.results("Thing", order="createdAt")[0]["objectId"]
    staff = Client()
    staff.force_login(User.objects.create_superuser("of-changes"))
    assert (
        staff.post(f"/admin/data/Thing/o/{thing}/delete/", {"confirmed": "yes"}).status_code == 302
    )
    assert recorded(reader) == [({"by": "function"}, None)]
