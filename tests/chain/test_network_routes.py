"""``/networks``: the master key does over REST what the admin does with providers and halts."""

from __future__ import annotations

from typing import Any

import pytest

from chain.gateway.endpoints import given_for, socket_urls
from chain.models import Cursor, Provider
from objects import maintenance
from tests.chain.gateway.networks import network, provider
from tests.people import sign_up
from tests.rest import Api

pytestmark = pytest.mark.django_db
KEY = "k3yOfTheProviderWhichIsLong"
URL = f"https://node.example/{KEY}"
SOCKET = f"wss://node.example/{KEY}"
PLACE = "/networks/5/providers"


def test_a_provider_is_added_changed_and_removed(master: Api) -> None:
    network(5)
    reply = master.post(PLACE, {"name": "main", "url": URL, "socketUrl": SOCKET, "batchSize": 20})
    assert reply.status == 201
    expected = {
        "name": "main",
        "weight": 10,
        "active": True,
        "requestsPerSecond": None,
        "batchSize": 20,
        "largestRange": None,
        "hasSocketUrl": True,
    }
    assert {name: reply.json[name] for name in expected} == expected
    assert given_for(5)[0].url == URL
    assert socket_urls() == {5: SOCKET}

    changes = {"name": "other", "weight": 0, "active": False, "batchSize": None, "socketUrl": None}
    changed = master.put(f"{PLACE}/main", changes)
    assert changed.status == 200
    shown = master.get(f"{PLACE}/other").json
    assert shown == changed.json
    assert (shown["weight"], shown["active"], shown["batchSize"]) == (0, False, None)
    assert shown["hasSocketUrl"] is False
    assert master.get(PLACE).json == {"results": [shown]}
    master.put(f"{PLACE}/other", {"active": True, "url": f"{URL}2"})
    assert given_for(5)[0].url == f"{URL}2"

    assert master.delete(f"{PLACE}/other").status == 200
    assert master.get(PLACE).json == {"results": []}


def test_addresses_are_in_no_answer(master: Api, reader: Api) -> None:
    network(5)
    replies = [
        master.post(PLACE, {"name": "main", "url": URL, "socketUrl": SOCKET}),
        master.put(f"{PLACE}/main", {"url": f"{URL}2"}),
        master.put(f"{PLACE}/main", {"url": f"ftp://{KEY}"}),
        master.post(PLACE, {"name": "main", "url": URL}),
        master.get(PLACE),
        reader.get(f"{PLACE}/main"),
    ]
    assert [reply.status for reply in replies] == [201, 200, 400, 400, 200, 200]
    assert not any(KEY in str(reply.json) for reply in replies)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"url": URL}, "name is required"),
        ({"name": "new"}, "url is required"),
        ({"name": "", "url": URL}, "name: expected 1 to 64"),
        ({"name": "a\nb", "url": URL}, "name: expected 1 to 64"),
        ({"name": 7, "url": URL}, "name: expected"),
        ({"name": "new", "url": "node"}, "url: expected an address"),
        ({"name": "new", "url": URL, "socketUrl": URL}, "socketUrl: expected an address"),
        ({"name": "new", "url": URL, "weight": None}, "weight: expected a number"),
        ({"name": "new", "url": URL, "weight": True}, "weight: expected a number"),
        ({"name": "new", "url": URL, "requestsPerSecond": 0}, "requestsPerSecond: expected"),
        ({"name": "new", "url": URL, "largestRange": 2**31}, "largestRange: expected"),
        ({"name": "new", "url": URL, "active": 1}, "active: expected true or false"),
        ({"name": "new", "url": URL, "head": 1}, "head: unknown field"),
        ({"name": "main", "url": URL}, "has a provider main already"),
    ],
)
def test_what_is_no_provider_is_refused(master: Api, body: dict[str, Any], said: str) -> None:
    provider(URL, "main", 5)
    reply = master.post(PLACE, body)
    assert reply.status == 400
    assert said in reply.json["error"]
    assert Provider.objects.count() == 1


@pytest.mark.parametrize("place", ["0", "-1", "x", "05", "9" * 20])
def test_what_is_no_network_is_refused(master: Api, place: str) -> None:
    assert master.get(f"/networks/{place}/providers").status == 400


@pytest.mark.parametrize("name", ["nobody", "%C2%A0", "a" * 65])
def test_a_provider_that_is_not_there_is_404(master: Api, name: str) -> None:
    for reply in (
        master.get(f"{PLACE}/{name}"),
        master.put(f"{PLACE}/{name}", {"weight": 1}),
        master.delete(f"{PLACE}/{name}"),
    ):
        assert (reply.status, reply.json["code"]) == (404, 101)


def test_only_the_master_key_changes_networks(reader: Api, client: Api, application: Api) -> None:
    provider(URL, "main", 5)
    Cursor.objects.create(network_id=5, number=1, hash="0x1", halted="another chain")
    network(5)
    before = [*Provider.objects.values()]
    stranger = Api(sign_up("ann").headers)
    for caller in (client, application, stranger):
        assert caller.get(PLACE).status == 403
    assert reader.get(PLACE).status == 200
    for caller in (reader, client, application, stranger):
        for reply in (
            caller.post(PLACE, {"name": "new", "url": URL}),
            caller.put(f"{PLACE}/main", {"weight": 1}),
            caller.delete(f"{PLACE}/main"),
            caller.post("/networks/5/resume", {}),
        ):
            assert reply.status in (400, 403)
            assert reply.json["code"] == 119
    assert [*Provider.objects.values()] == before
    assert Cursor.objects.get().halted is not None


def test_a_halted_network_is_resumed(master: Api) -> None:
    network(5)
    Cursor.objects.create(network_id=5, number=9, hash="0x1", halted="another chain")
    for wrong, said in (
        ({"unwindTo": -1}, "unwindTo: expected"),
        ({"unwindTo": "1"}, "unwindTo: expected"),
        ({"unwindTo": 9}, "read up to block 9"),
        ({"fromScratch": "yes"}, "fromScratch: expected"),
        ({"fromScratch": True, "unwindTo": 1}, "not together"),
        ({"way": "on"}, "way: unknown field"),
    ):
        reply = master.post("/networks/5/resume", wrong)
        assert reply.status == 400
        assert said in reply.json["error"]
        assert Cursor.objects.get().halted is not None
    assert master.post("/networks/5/resume", {}).status == 200
    assert Cursor.objects.get().halted is None
    assert "is not halted" in master.post("/networks/5/resume", {}).json["error"]
    assert "is not followed" in master.post("/networks/6/resume", {}).json["error"]


def test_a_network_is_read_from_scratch(master: Api) -> None:
    network(5)
    Cursor.objects.create(network_id=5, number=9, hash="0x1", halted="another chain")
    assert master.post("/networks/5/resume", {"fromScratch": True}).status == 200
    cursor = Cursor.objects.get()
    assert (cursor.number, cursor.halted) == (None, None)


@pytest.mark.parametrize("body", [{"fromScratch": True}, {"unwindTo": 7}, {}])
def test_a_network_that_is_not_halted_is_left_alone(master: Api, body: dict[str, Any]) -> None:
    network(5)
    Cursor.objects.create(network_id=5, number=9, hash="0x1")
    before = [*Cursor.objects.values()]
    reply = master.post("/networks/5/resume", body)
    assert (reply.status, reply.json["code"]) == (400, 142)
    assert reply.json["error"] == "Network 5 is not halted. Nothing was changed."
    assert [*Cursor.objects.values()] == before


@pytest.mark.django_db(transaction=True)
def test_nothing_is_changed_during_maintenance(master: Api) -> None:
    provider(URL, "main", 5)
    network(5)
    Cursor.objects.create(network_id=5, number=9, hash="0x1", halted="another chain")
    maintenance.on("Back at noon")
    try:
        for reply in (
            master.post(PLACE, {"name": "new", "url": URL}),
            master.put(f"{PLACE}/main", {"weight": 1}),
            master.delete(f"{PLACE}/main"),
            master.post("/networks/5/resume", {}),
        ):
            assert reply.json == {"code": 119, "error": "Back at noon"}
    finally:
        maintenance.off()
    assert Provider.objects.get().weight == 10
    assert Cursor.objects.get().halted is not None
