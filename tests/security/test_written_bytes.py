"""What a client's request costs that writes large objects, and what ends it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from backend.kernel.errors import ObjectTooLarge, Timeout
from backend.kernel.limits import statements, written
from backend.kernel.principal import CLIENT, MASTER
from backend.kernel.request_context import Budget, ClientConnection, Current, as_current
from objects import service
from tests.rest import Api

pytestmark = pytest.mark.django_db

LONG = list(range(1_000_000, 1_120_000))  # about a megabyte as JSON
INCREMENT = {"n": {"__op": "Increment", "amount": 1}}


@pytest.fixture
def long(master: Api) -> str:
    return master.make("Game", list=LONG, n=0)


def batch(api: Api, body: Any, object_id: str, times: int) -> list[Any]:
    path = f"/api/classes/Game/{object_id}"
    item = {"method": "PUT", "path": path, "body": body}
    results: list[Any] = api.post("/batch", {"requests": [item] * times}).json
    return results


@pytest.mark.slow
@pytest.mark.parametrize("body", [INCREMENT, {"other.n": 1}], ids=["simple", "locked"])
def test_a_batch_writes_a_limited_number_of_bytes(
    client: Api, master: Api, long: str, body: Any, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(written, "MOST_WRITTEN", 3_000_000)
    results = batch(client, body, long, 8)
    codes = [result.get("error", {}).get("code") for result in results]
    done = codes.count(None)
    assert codes == [None] * done + [116] * (8 - done)
    assert 1 <= done <= 4
    assert all("success" in result for result in batch(master, body, long, 8))


def test_a_transaction_that_writes_too_much_is_undone(
    client: Api, long: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(written, "MOST_WRITTEN", 1_000_000)
    item = {"method": "PUT", "path": f"/api/classes/Game/{long}", "body": INCREMENT}
    reply = client.post("/batch", {"requests": [item] * 5, "transaction": True})
    assert reply.error == (413, 116)
    assert client.get(f"/classes/Game/{long}").json["n"] == 0


@pytest.mark.parametrize("operator", ["Add", "AddUnique"])
def test_operators_of_clients_make_no_list_that_clients_cannot_send(
    client: Api, master: Api, long: str, operator: str
):
    path = f"/classes/Game/{long}"
    add = {"list": {"__op": operator, "objects": list(range(2_000_000, 2_020_000))}}
    reply = client.put(path, add)
    assert reply.error == (413, 116)
    assert "list" in reply.json["error"]
    assert client.get(path).json["list"] == LONG
    few = {"list": {"__op": operator, "objects": [5]}}
    assert client.put(path, few).json["list"] == [*LONG, 5]
    assert master.put(path, add).status == 200


def test_a_list_that_is_too_long_may_become_shorter(client: Api, master: Api):
    game = master.make("Game", list=[*LONG, *LONG])
    path = f"/classes/Game/{game}"
    remove = {"list": {"__op": "Remove", "objects": [LONG[0]]}}
    assert client.put(path, remove).json["list"] == [*LONG[1:], *LONG[1:]]
    assert client.put(path, {"other": 1}).status == 200


def test_an_add_to_an_object_that_is_not_there_is_404(client: Api, long: str):
    add = {"list": {"__op": "Add", "objects": [1]}}
    assert client.put("/classes/Game/missing", add).error == (404, 101)


def test_the_work_of_a_client_that_has_gone_ends(long: str):
    connection = ClientConnection()
    with as_current(Current(budget=Budget("192.0.2.1", client=connection))):
        service.update(CLIENT, "Game", long, INCREMENT)  # type: ignore[arg-type]
        connection.is_closed = True
        for principal, refused in ((CLIENT, True), (MASTER, False)):
            try:
                service.update(principal, "Game", long, INCREMENT)  # type: ignore[arg-type]
            except Timeout:
                assert refused
            else:
                assert not refused
    assert json.loads(service.get(MASTER, "Game", long).json())["n"] == 2  # type: ignore


def test_writes_share_the_time_of_a_request(long: str):
    body = {"list": {"__op": "AddUnique", "objects": [5]}}
    with as_current(Current(budget=Budget("192.0.2.1", spent=60.0))):
        for write in (INCREMENT, body):
            with pytest.raises(Timeout):
                service.update(CLIENT, "Game", long, write)  # type: ignore[arg-type]
        with pytest.raises(Timeout):
            service.create(CLIENT, "Game", {"n": 1})  # type: ignore[arg-type]
        service.update(MASTER, "Game", long, INCREMENT)  # type: ignore[arg-type]


def test_writes_are_no_slow_searches_of_their_address(long: str, settings: Any):
    """Otherwise, several long batches of one address would be refused."""
    settings.SERVICE = {**settings.SERVICE, "CLIENT_SLOW_REQUESTS": 1}
    entry = statements.slow_statements().enter("192.0.2.1", spent=1.0)
    try:
        with as_current(Current(budget=Budget("192.0.2.1"))):
            service.update(CLIENT, "Game", long, INCREMENT)  # type: ignore[arg-type]
    finally:
        statements.slow_statements().leave(entry)


def test_the_bytes_of_a_request_are_counted(long: str):
    budget = Budget("192.0.2.1")
    with as_current(Current(budget=budget)):
        service.update(CLIENT, "Game", long, INCREMENT)  # type: ignore[arg-type]
        assert budget.written > len(LONG) * 4
        budget.written = written.MOST_WRITTEN
        with pytest.raises(ObjectTooLarge):
            service.update(CLIENT, "Game", long, INCREMENT)  # type: ignore[arg-type]


def test_a_limit_reveals_no_size_of_a_field_that_the_caller_may_not_read(
    client: Api, master: Api, long: str
):
    everybody = {"*": True}
    permissions = {
        **dict.fromkeys(("find", "get", "update"), everybody),
        "protectedFields": {"*": ["list"]},
    }
    assert master.put("/schemas/Game", {"classLevelPermissions": permissions}).status == 200
    add = {"list": {"__op": "Add", "objects": list(range(2_000_000, 2_020_000))}}
    reply = client.put(f"/classes/Game/{long}", add)
    assert reply.status == 200
    assert "list" not in reply.json
