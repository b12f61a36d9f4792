"""``/networks``: the master key does over REST what the admin does with providers and halts."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any
from urllib.parse import quote

import pytest
from django.core.management import CommandError, call_command

from backend.site.staff import ADMINISTRATORS
from chain import doctor
from chain.models import Cursor, Provider
from chain.rpc.endpoints import given_for, socket_urls
from objects.database import maintenance
from tests.chain.rpc.networks import network, provider
from tests.objects.admin.staff import logged_in
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
    ("body", "message"),
    [
        ({"url": URL}, "name is required"),
        ({"name": "new"}, "url is required"),
        ({"name": "", "url": URL}, "name: expected 1 to 64"),
        ({"name": "a\nb", "url": URL}, "name: expected printable"),
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
def test_what_is_no_provider_is_refused(master: Api, body: dict[str, Any], message: str) -> None:
    network(5)
    provider(URL, "main", 5)
    reply = master.post(PLACE, body)
    assert reply.status == 400
    assert message in reply.json["error"]
    assert Provider.objects.count() == 1


UNREACHABLE = (
    *("a/b", "/", "main/", "a\\b", "..", ".", "a%2Fb", "50%", "a?b", "a#b", " main", "main "),
    *("a\nb", "a\x00b", "a\x7fb", "a\ud800b", "a\u2028b", "a\u200bb", "", "a" * 65),
)
REACHABLE = (
    "main",
    "Alchemy (EU) 2",
    "a.b",
    "...",
    "a b",
    "münchen",
    "結",
    "a&b=c;d+e",
    "'\"<>",
    "a" * 64,
)


@pytest.mark.parametrize("name", UNREACHABLE, ids=repr)
def test_a_name_that_no_path_can_carry_is_refused_everywhere(master: Api, name: str) -> None:
    provider(URL, "main", 5)
    before = [*Provider.objects.values()]
    for reply in (
        master.post(PLACE, {"name": name, "url": URL}),
        master.put(f"{PLACE}/main", {"name": name}),
    ):
        assert reply.status == 400
        assert "name" in reply.json["error"] or "\x00" in name or "\ud800" in name
    for args in (("add", "5", name, "--url", URL), ("set", "5", "main", "--name", name)):
        with pytest.raises(CommandError, match="name: expected"):
            call_command("chain_provider", *args, "--unchecked", stdout=StringIO())
    assert [*Provider.objects.values()] == before


@pytest.mark.parametrize("name", UNREACHABLE, ids=repr)
def test_the_admin_refuses_the_same_names(name: str) -> None:
    if "\ud800" in name:
        return  # no form can carry it
    network(5)
    form = {"network_id": "5", "name": name, "weight": "3", "new_url": URL}
    reply = logged_in(ADMINISTRATORS).post("/admin/chain/provider/add/", form)
    # The form itself strips the spaces at the ends.
    assert reply.status_code == (302 if name.strip() == "main" else 200)
    assert {*Provider.objects.values_list("name", flat=True)} <= {"main"}


@pytest.mark.parametrize("name", REACHABLE)
def test_each_other_name_is_reached_over_rest(master: Api, name: str) -> None:
    network(5)
    assert master.post(PLACE, {"name": name, "url": URL}).status == 201
    place = f"{PLACE}/{quote(name, safe='')}"
    assert master.get(place).json["name"] == name
    assert master.put(place, {"name": name, "weight": 3}).json["weight"] == 3
    [batched] = master.post(
        "/batch", {"requests": [{"method": "PUT", "path": f"/api{place}", "body": {"weight": 4}}]}
    ).json
    assert batched["success"]["weight"] == 4
    assert master.delete(place).json == {}
    assert not Provider.objects.exists()


@pytest.mark.parametrize("name", ["a/b", "a//b", "a?b", "50%", "a#b", "a\\b", " main", "main "])
def test_names_from_before_the_rule_stay_usable(master: Api, name: str) -> None:
    row = provider(URL, name, 5)
    place = f"{PLACE}/{quote(name, safe='')}"
    assert master.get(place).json["name"] == name
    assert master.put(place, {"name": name, "weight": 3}).json["weight"] == 3
    if name == name.strip():
        form = {"network_id": "5", "name": name, "weight": "4"}
        admin = logged_in(ADMINISTRATORS)
        change = f"/admin/chain/provider/{row.pk}/change/"
        assert admin.post(change, form).status_code == 302
        assert Provider.objects.get().weight == 4
    [finding] = doctor.provider_names()
    assert (finding.level, repr(name) in finding.text) == ("warn", True)
    assert master.put(place, {"name": "renamed"}).json["name"] == "renamed"
    [finding] = doctor.provider_names()
    assert finding.level == "ok"
    assert master.delete(f"{PLACE}/renamed").status == 200


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
    for wrong, message in (
        ({"unwindTo": -1}, "unwindTo: expected"),
        ({"unwindTo": "1"}, "unwindTo: expected"),
        ({"unwindTo": 9}, "read up to block 9"),
        ({"fromScratch": "yes"}, "fromScratch: expected"),
        ({"fromScratch": True, "unwindTo": 1}, "not together"),
        ({"way": "on"}, "way: unknown field"),
    ):
        reply = master.post("/networks/5/resume", wrong)
        assert reply.status == 400
        assert message in reply.json["error"]
        assert Cursor.objects.get().halted is not None
    assert master.post("/networks/5/resume", {}).status == 200
    assert Cursor.objects.get().halted is None
    assert "is not halted" in master.post("/networks/5/resume", {}).json["error"]


def test_why_a_network_cannot_be_resumed_is_said(master: Api) -> None:
    network(5)
    network(6, active=False)
    for number, message in (
        (5, "Network 5 has not been read yet."),
        (6, "Network 6 is paused: script/manage chain_network resume 6"),
        (7, "There is no network 7."),
    ):
        reply = master.post(f"/networks/{number}/resume", {})
        assert (reply.status, reply.json["error"]) == (400, message)


def test_a_provider_needs_its_network(master: Api) -> None:
    """Until then it would be stored and never asked."""
    for reply in (master.post(PLACE, {"name": "main", "url": URL}), master.get(PLACE)):
        assert reply.error == (404, 101)
        assert reply.json["error"] == "There is no network 5. Add it first."
    form = {"network_id": "5", "name": "main", "weight": "3", "new_url": URL}
    reply = logged_in(ADMINISTRATORS).post("/admin/chain/provider/add/", form)
    assert "There is no network 5. Add it first." in reply.content.decode()
    assert not Provider.objects.exists()


def test_providers_of_a_network_that_was_removed_stay_editable(master: Api) -> None:
    row = provider(URL, "main", 5)
    assert len(master.get(PLACE).json["results"]) == 1
    form = {"network_id": "5", "name": "main", "weight": "4"}
    reply = logged_in(ADMINISTRATORS).post(f"/admin/chain/provider/{row.pk}/change/", form)
    assert reply.status_code == 302
    assert master.delete(f"{PLACE}/main").status == 200


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


# -- The state of networks -------------------------------------------------------------------------


def test_the_state_of_networks_is_that_of_the_command(master: Api) -> None:
    network(5, name="Main")
    network(6)
    provider(URL, "main", 5)
    Cursor.objects.create(network_id=5, number=9, halted="another chain")
    out = StringIO()
    call_command("chain_status", "--json", stdout=out)
    command = json.loads(out.getvalue())
    reply = master.get("/networks")
    assert [state["networkId"] for state in reply.json["results"]] == [5, 6]
    assert reply.json["chainPaused"] == command["chainPaused"]
    state = master.get("/networks/5").json
    assert (state["name"], state["checkpoint"], state["halted"]) == ("Main", 9, "another chain")
    assert state.keys() == command["networks"][0].keys()
    assert KEY not in json.dumps(reply.json)


def test_the_state_of_a_network_that_is_not_there(master: Api) -> None:
    assert master.get("/networks/7").error == (404, 101)
    assert master.get("/networks/words").status == 400


def test_only_a_master_key_reads_the_state(client: Api, reader: Api) -> None:
    network(5)
    user = Api(sign_up("ann").headers)
    for path in ("/networks", "/networks/5"):
        for stranger in (client, user):
            assert stranger.get(path).error == (403, 119)
        assert reader.get(path).status == 200
