"""Transactions are followed from their hash on: by the class, and by the function."""

from __future__ import annotations

from typing import Any

import pytest

from chain.models import Transaction
from objects.definitions.models import Maintenance
from tests.people import make_role, sign_up
from tests.rest import APPLICATION, CLIENT, READ_ONLY, Api, Reply

pytestmark = pytest.mark.django_db

HASH = "0x" + "aB" * 32
PATH = "/classes/Transaction"


def monitored(caller: Api, **params: Any) -> Reply:
    return caller.post("/functions/monitorTransaction", params)


# -- The class ------------------------------------------------------------------------------------


@pytest.mark.parametrize("network_id", [5, "5", 5.0])
def test_a_hash_and_a_network_begin_a_record(master: Api, client: Api, network_id: Any) -> None:
    made = master.post(PATH, {"hash": HASH, "networkId": network_id})
    assert made.status == 201
    body = client.get(f"{PATH}/{made.json['objectId']}").json
    assert body == {
        **made.json,
        "updatedAt": made.json["createdAt"],
        "hash": HASH.lower(),
        "networkId": "5",
        "status": "pending",
        "attempts": 0,
    }
    row = Transaction.objects.get()
    assert row.next_check_at == row.created_at, "its first check is due at once"


def test_its_first_check_is_sent_when_it_is_committed(
    master: Api, django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks() as sent:
        master.post(PATH, {"hash": HASH, "networkId": 5})
    assert len(sent) == 1
    with django_capture_on_commit_callbacks() as sent:
        master.post(PATH, {"hash": HASH, "networkId": 5})
    assert not sent


def test_the_same_hash_again_is_the_same_record(master: Api) -> None:
    first = master.post(PATH, {"hash": HASH, "networkId": 5})
    again = master.post(PATH, {"hash": HASH.lower(), "networkId": "5", "note": "mine"})
    assert (again.status, again.json["objectId"]) == (200, first.json["objectId"])
    assert master.results("Transaction")[0]["note"] == "mine"
    assert len(master.results("Transaction")) == 1
    elsewhere = master.post(PATH, {"hash": HASH, "networkId": 6})
    assert elsewhere.error == (400, 137)
    assert "network 5" in elsewhere.json["error"]


@pytest.mark.parametrize(
    ("body", "code", "named"),
    [
        ({"networkId": 5}, 142, "hash"),
        ({"hash": HASH}, 142, "networkId"),
        ({"hash": HASH, "networkId": None}, 142, "networkId"),
        ({"hash": HASH[:-1], "networkId": 5}, 111, "hash"),
        ({"hash": 5, "networkId": 5}, 111, "hash"),
        ({"hash": {"__op": "Add", "objects": []}, "networkId": 5}, 111, "hash"),
        ({"hash": HASH, "networkId": "main"}, 111, "networkId"),
        ({"hash": HASH, "networkId": -1}, 111, "networkId"),
        ({"hash": HASH, "networkId": True}, 111, "networkId"),
        ({"hash": HASH, "networkId": 5, "status": "mined"}, 111, "status"),
        ({"hash": HASH, "networkId": 5, "attempts": 3}, 119, "attempts"),
        ({"hash": HASH, "networkId": 5, "blockNumber": 3}, 119, "blockNumber"),
        ({"hash": HASH, "networkId": 5, "finality": "finalized"}, 119, "finality"),
        ({"hash": HASH, "networkId": 5, "status": "failed", "gasUsed": 5}, 111, "gasUsed"),
        ({"hash": HASH, "networkId": 5, "status": "failed", "blockNumber": -1}, 111, "blockNumber"),
        ({"hash": HASH, "networkId": 5, "status": "failed", "finality": "safe"}, 142, "blockHash"),
    ],
)
def test_what_can_t_be_followed_is_refused_by_name(
    master: Api, body: dict[str, Any], code: int, named: str
) -> None:
    refused = master.post(PATH, body)
    assert refused.error == (400, code)
    assert named in refused.json["error"]
    assert not Transaction.objects.exists()


def test_what_the_service_begins_with_may_be_said(master: Api) -> None:
    made = master.post(PATH, {"hash": HASH, "networkId": 5, "status": "pending", "attempts": 0})
    assert made.status == 201
    assert Transaction.objects.get().next_check_at is not None


def test_one_that_has_ended_elsewhere_is_taken_as_it_is(master: Api) -> None:
    brought = {
        "status": "confirmed",
        "attempts": 4,
        "blockNumber": 17,
        "gasUsed": "21000",
        "effectiveGasPrice": "5",
        "lastChecked": {"__type": "Date", "iso": "2026-01-01T00:00:00.000Z"},
    }
    master.make("Transaction", hash=HASH, networkId=5, **brought)
    assert brought.items() <= master.results("Transaction")[0].items()
    assert Transaction.objects.get().next_check_at is None


@pytest.mark.parametrize(
    "change",
    [
        {"status": "confirmed"},
        {"hash": "0x" + "cd" * 32},
        {"networkId": "6"},
        {"attempts": {"__op": "Increment", "amount": 1}},
        {"blockNumber": 5, "note": "mine"},
        {"lateReceipt.status": "confirmed"},
        {"status": {"__op": "Delete"}},
    ],
)
def test_what_the_service_keeps_can_t_be_changed(master: Api, change: dict[str, Any]) -> None:
    object_id = master.make("Transaction", hash=HASH, networkId=5)
    before = master.get(f"{PATH}/{object_id}").json
    assert master.put(f"{PATH}/{object_id}", change).error == (400, 119)
    assert master.get(f"{PATH}/{object_id}").json == before


def test_other_fields_can_be_changed_and_records_removed(master: Api) -> None:
    object_id = master.make("Transaction", hash=HASH, networkId=5)
    changed = master.put(f"{PATH}/{object_id}", {"note": "mine", "hash": HASH.lower()})
    assert changed.status == 200
    assert master.get(f"{PATH}/{object_id}").json["note"] == "mine"
    assert master.delete(f"{PATH}/{object_id}").status == 200
    assert master.post(PATH, {"hash": HASH, "networkId": 6}).status == 201


def test_everyone_may_read_and_only_the_master_key_writes(master: Api, client: Api) -> None:
    user = sign_up("ann")
    object_id = master.make("Transaction", hash=HASH, networkId=5)
    for caller in (client, user, Api(READ_ONLY)):
        assert caller.get(f"{PATH}/{object_id}").json["status"] == "pending"
        assert caller.post(PATH, {"hash": "0x" + "cd" * 32, "networkId": 5}).error[1] == 119
        assert caller.put(f"{PATH}/{object_id}", {"note": "theirs"}).error[1] == 119
        assert caller.delete(f"{PATH}/{object_id}").error[1] == 119
    assert Transaction.objects.count() == 1


# -- The function ---------------------------------------------------------------------------------


def test_users_and_the_master_key_start_one_and_get_the_record(master: Api) -> None:
    owner, member, stranger = sign_up("ann"), sign_up("bob"), sign_up("eve")
    make_role(master, "ContractAdmin", [member])
    master.make("Blockchain", networkId=5)
    answers = [
        monitored(caller, networkId=network_id, hash=HASH)
        for caller, network_id in [(owner, 5), (member, "5"), (stranger, 5), (master, 5)]
    ]
    assert [answer.status for answer in answers] == [200] * 4
    records = [answer.json["result"] for answer in answers]
    assert records[0] == records[1] | {"updatedAt": records[0]["updatedAt"]}
    assert {answer["objectId"] for answer in records} == {records[0]["objectId"]}
    record = records[0]
    assert (record["className"], record["status"]) == ("Transaction", "pending")
    assert (record["hash"], record["networkId"], record["attempts"]) == (HASH.lower(), "5", 0)


@pytest.mark.parametrize(
    ("caller", "error"),
    [(CLIENT, (400, 142)), (APPLICATION, (400, 142)), (READ_ONLY, (403, 119))],
)
def test_no_other_caller_may_start_one(
    db: None, caller: dict[str, str], error: tuple[int, int]
) -> None:
    assert monitored(Api(caller), networkId=5, hash=HASH).error == error
    assert not Transaction.objects.exists()


@pytest.mark.parametrize(
    ("params", "named"),
    [
        ({"networkId": 5}, "hash"),
        ({"hash": HASH}, "networkId"),
        ({"networkId": 5, "hash": "0x12"}, "hash"),
        ({"networkId": 5, "hash": ["x"]}, "hash"),
        ({"networkId": "main", "hash": HASH}, "networkId"),
        ({"networkId": 1.5, "hash": HASH}, "networkId"),
        ({"networkId": None, "hash": HASH}, "networkId"),
        ({"networkId": 2**60, "hash": HASH}, "networkId"),
    ],
)
def test_parameters_come_before_rights(
    application: Api, params: dict[str, Any], named: str
) -> None:
    refused = monitored(application, **params)
    assert refused.error == (400, 141)
    assert named in refused.json["error"]


def test_a_user_occupies_no_hash_by_a_network_that_no_one_follows(master: Api) -> None:
    user = sign_up("eve")
    refused = monitored(user, networkId=6, hash=HASH)
    assert refused.error == (400, 141)
    assert "No blockchain found for networkId: 6" in refused.json["error"]
    assert not Transaction.objects.exists()
    assert monitored(master, networkId=6, hash=HASH).status == 200


def test_a_record_that_a_user_may_not_read_stays_hidden(master: Api) -> None:
    owner, stranger = sign_up("ann"), sign_up("eve")
    acl = {owner.user_id: {"read": True}}
    master.make("Blockchain", networkId=5)
    master.make("Transaction", hash=HASH, networkId=5, ACL=acl)
    assert monitored(owner, networkId=5, hash=HASH).status == 200
    assert monitored(stranger, networkId=5, hash=HASH).error == (404, 101)


def test_in_maintenance_mode_no_one_starts_one(master: Api) -> None:
    Maintenance.objects.create(
        id=1, message="Later.", since="2026-01-01T00:00:00Z", chain_paused=False
    )
    for refused in (
        master.post(PATH, {"hash": HASH, "networkId": 5}),
        monitored(master, networkId=5, hash=HASH),
    ):
        assert refused.error == (400, 119)
        assert refused.json["error"] == "Later."
