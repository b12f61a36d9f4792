"""The chain in the admin: networks, providers, contracts, records."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from playwright.sync_api import expect

from backend.kernel.encryption import cipher
from backend.kernel.principal import MASTER
from backend.logs import search, store
from backend.logs.filters import LogFilter
from backend.site.staff import ADMINISTRATORS, EDITORS, VIEWERS
from chain.models import (
    Backfill,
    Blockchain,
    ContractEvent,
    Cursor,
    Provider,
    Reorganisation,
    SmartContract,
    Transaction,
)
from chain.models.signing import Sending, Wallet
from objects import service
from tests.callers import *  # noqa: F403
from tests.chromium import NEEDS_CHROMIUM, browser
from tests.objects.admin.browser import look, staff_page
from tests.objects.admin.log_records import *  # noqa: F403
from tests.objects.admin.staff import logged_in
from tests.people import sign_up

pytestmark = pytest.mark.django_db

SECRET = "https://rpc.example/v3/very-secret-key"
ADDRESS = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"
EVIL = "<script>alert(1)</script>"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
RECORDS = (
    *("transaction", "contractevent", "reorganisation", "backfill", "sending", "identity"),
    *("provider", "smartcontract"),
)


@pytest.fixture
def network() -> int:
    fields = {"networkId": 5, "name": f"Test {EVIL}", "rpcEndpoint": "https://public.example"}
    service.create(MASTER, "Blockchain", fields)
    Cursor.objects.update_or_create(
        network_id=5,
        defaults={"number": 90, "hash": "0x1", "head": 95, "halted": f"deep {EVIL}"},
    )
    Provider.objects.create(
        network_id=5, name="first", url=cipher("chain provider").encrypt(SECRET.encode()).decode()
    )
    return 5


@pytest.fixture
def records(network: int) -> None:
    common = {"created_at": NOW, "updated_at": NOW}
    Transaction.objects.create(
        object_id="t" * 10,
        hash="0x" + "ab" * 32,
        network_id="5",
        status="pending",
        attempts=3,
        **common,
    )
    ContractEvent.objects.create(
        object_id="e" * 10,
        network_id="5",
        contract_name="Gem",
        event_name=EVIL,
        args={"tokenId": "115792089237316195423570985008687907853"},
        block_number=7,
        log_index=1,
        **common,
    )
    Reorganisation.objects.create(
        network_id=5,
        fork_number=80,
        fork_hash="0x2",
        old_number=85,
        old_hash="0x3",
        depth=5,
        removed_events=4,
        seen_at=NOW,
    )
    Backfill.objects.create(
        network_id=5, address=ADDRESS, first_block=0, last_block=90, next_block=40
    )
    Sending.objects.create(
        network_id=5, account=ADDRESS, nonce=0, hash="0x4", raw="0xsigned", gas=21000, max_fee="1"
    )


def test_the_networks_are_shown_with_what_is_wrong(records: None) -> None:
    text = logged_in(VIEWERS).get("/admin/networks/").text
    assert "Halted: deep &lt;script&gt;" in text
    assert EVIL not in text
    assert "first" in text
    assert "very-secret-key" not in text
    (row,) = [line for line in text.splitlines() if "status__exact=pending" in line]
    assert ">1</a>" in row


def test_blocks_that_no_provider_has_are_shown_with_their_network(network: int) -> None:
    fields = {"network_id": network, "first_block": 0, "last_block": 9, "next_block": 0}
    for address in ("0x1", "0x2"):
        Backfill.objects.create(
            **fields, address=address, unavailable=True, trouble=f"nobody has {EVIL}"
        )
    Backfill.objects.create(**fields, address="0x3", trouble="no answer")
    text = logged_in(VIEWERS).get("/admin/networks/").text
    assert text.count("nobody has &lt;script&gt;") == 1
    assert "no answer" not in text


RESUME = "/admin/networks/5/resume/"


@pytest.mark.parametrize("group", [VIEWERS, EDITORS])
def test_a_halted_network_is_resumed_by_administrators_only(network: int, group: str) -> None:
    client = logged_in(group)
    assert RESUME not in client.get("/admin/networks/").text
    assert client.get(RESUME).status_code == 403
    assert client.post(RESUME, {"way": "on", "confirmation": "5"}).status_code == 403
    assert Cursor.objects.get().halted is not None


def test_a_halted_network_is_resumed_when_its_id_confirms_it(
    network: int, log_store_redis: object
) -> None:
    client = logged_in(ADMINISTRATORS)
    assert RESUME in client.get("/admin/networks/").text
    page = client.get(RESUME).text
    assert "deep &lt;script&gt;" in page
    assert EVIL not in page
    for value, complaint in (
        ({"way": "on", "confirmation": "6"}, "isn&#x27;t the network&#x27;s id"),
        ({"way": "on", "confirmation": ""}, "required"),
        ({"way": "all", "confirmation": "5"}, "not one of the available choices"),
        ({"way": "unwind", "confirmation": "5"}, "A block goes with"),
        ({"way": "on", "block": "7", "confirmation": "5"}, "A block goes with"),
        ({"way": "unwind", "block": "90", "confirmation": "5"}, "read up to block 90"),
    ):
        assert complaint in client.post(RESUME, value).text
        assert Cursor.objects.get().halted is not None
    assert client.post(RESUME, {"way": "on", "confirmation": "5"}).status_code == 302
    assert Cursor.objects.get().halted is None
    store.flush()
    (line,) = search.search(LogFilter(text="staff write")).entries
    fields = [line.fields[name] for name in ("staff", "action", "network", "way", "halted")]
    assert fields == ["administrators", "resume", 5, "on", f"deep {EVIL}"]
    refused = client.post(RESUME, {"way": "on", "confirmation": "5"}).text
    assert "Network 5 is not halted." in refused
    assert client.get("/admin/networks/6/resume/").status_code == 404


def test_a_network_is_read_again_by_staff(records: None) -> None:
    client = logged_in(ADMINISTRATORS)
    assert client.post(RESUME, {"way": "anew", "confirmation": "5"}).status_code == 302
    cursor = Cursor.objects.get()
    assert (cursor.number, cursor.halted) == (None, None)
    assert not ContractEvent.objects.filter(canonical=True).exists()


@pytest.mark.parametrize(
    "way", [{"way": "on"}, {"way": "unwind", "block": "80"}, {"way": "anew"}], ids=str
)
def test_a_network_that_is_not_halted_is_left_alone(records: None, way: dict[str, str]) -> None:
    Cursor.objects.update(halted=None)
    before = [*Cursor.objects.values()]
    reply = logged_in(ADMINISTRATORS).post(RESUME, {**way, "confirmation": "5"})
    assert "Network 5 is not halted. Nothing was changed." in reply.text
    assert [*Cursor.objects.values()] == before
    assert ContractEvent.objects.filter(canonical=True).exists()


def test_a_user_s_page_has_the_wallets_without_their_keys(db: None) -> None:
    ann, ben = sign_up("ann"), sign_up("ben")
    Wallet.objects.create(
        wallet_id="w1",
        user_id=ann.user_id,
        network="31337",
        address=ADDRESS,
        custodian="local",
        reference=EVIL,
        key="very-secret-key",
    )
    service.create(MASTER, "Identity", {"walletAddress": ADDRESS, "user": ann.pointer})
    viewer = logged_in(VIEWERS)
    page = viewer.get(f"/admin/people/users/{ann.user_id}/").text
    assert page.count(ADDRESS) == 2
    assert "31337" in page
    assert "very-secret-key" not in page
    assert EVIL not in page
    assert ADDRESS not in viewer.get(f"/admin/people/users/{ben.user_id}/").text
    custom = User.objects.create_user("custom", is_staff=True)
    custom.user_permissions.add(
        Permission.objects.get(codename="view_user", content_type__app_label="objects")
    )
    client = Client()
    client.force_login(custom)
    page = client.get(f"/admin/people/users/{ann.user_id}/").text
    assert "ann" in page
    assert ADDRESS not in page


@pytest.mark.parametrize("model", RECORDS)
def test_viewers_see_the_records(records: None, model: str) -> None:
    reply = logged_in(VIEWERS).get(f"/admin/chain/{model}/")
    assert reply.status_code == 200
    assert EVIL not in reply.text
    assert "very-secret-key" not in reply.text


def test_an_event_is_shown_with_its_arguments(records: None) -> None:
    viewer = logged_in(VIEWERS)
    assert (
        "115792089237316195423570985008687907853"
        in viewer.get("/admin/chain/contractevent/", {"network_id": "5", "canonical": "yes"}).text
    )
    page = viewer.get(f"/admin/chain/contractevent/{'e' * 10}/change/").text
    assert "115792089237316195423570985008687907853" in page
    assert EVIL not in page


def test_an_event_is_listed_with_its_finality_and_the_time_of_its_block(records: None) -> None:
    ContractEvent.objects.update(block_timestamp=datetime(2025, 12, 31, tzinfo=UTC))
    Cursor.objects.update(finalized=7, safe=8)
    viewer = logged_in(VIEWERS)
    page = viewer.get("/admin/chain/contractevent/").text
    assert "2025-12-31" in page
    assert "Stored at" in page
    assert ">final<" in page.replace("\n", "").replace(" ", "")
    ContractEvent.objects.update(canonical=False)
    page = viewer.get("/admin/chain/contractevent/").text
    assert ">removed<" in page.replace("\n", "").replace(" ", "")


def test_networks_show_how_they_are_verified(records: None) -> None:
    Cursor.objects.update(
        contradictions=2,
        contradiction=f"first: {EVIL}",
        contradicted_at=NOW,
        proves_hashes=True,
        audited=80,
        audit={"at": "2026-01-01T00:00:00.000Z", "missing": 1, "mended": 1},
    )
    page = logged_in(VIEWERS).get("/admin/networks/").text
    assert "a sample of blocks" in page
    assert "2 contradictions of providers, the last at 2026-01-01 00:00:00" in page
    assert "1 missing, 0 superfluous" in page
    assert EVIL not in page


def test_a_network_that_was_reverted_completely_says_so(records: None) -> None:
    Reorganisation.objects.update(fork_number=-1)
    page = logged_in(VIEWERS).get("/admin/chain/reorganisation/").text
    assert "everything was reverted" in page


def test_settings_of_a_network_have_their_units(network: int) -> None:
    page = (
        logged_in(ADMINISTRATORS)
        .get(f"/admin/chain/blockchain/{Blockchain.objects.get().pk}/change/")
        .text
    )
    assert "Poll interval (milliseconds)" in page
    assert "before its events are stored" in page


def test_the_form_of_a_new_provider_offers_nothing_to_keep(network: int) -> None:
    client = logged_in(ADMINISTRATORS)
    page = client.get("/admin/chain/provider/add/").text
    assert "Leave it empty" not in page
    assert "Forget the WebSocket address" not in page
    (tag,) = re.findall(r'<input[^>]*name="new_url"[^>]*>', page)
    assert "required" in tag
    page = client.get(f"/admin/chain/provider/{Provider.objects.get().pk}/change/").text
    assert "Leave it empty" in page
    assert "Forget the WebSocket address" in page


def test_a_contract_links_to_where_it_is_edited(records: None) -> None:
    fields = {"name": "Gem", "networkId": 5, "address": ADDRESS, "abi": []}
    service.create(MASTER, "SmartContract", fields)
    contract = SmartContract.objects.get()
    page = logged_in(VIEWERS).get(f"/admin/chain/smartcontract/{contract.pk}/change/").text
    assert f"/SmartContract/o/{contract.object_id}/" in page


def test_signed_bytes_are_not_shown(records: None) -> None:
    sending = Sending.objects.get()
    assert "0xsigned" not in logged_in(None).get(f"/admin/chain/sending/{sending.pk}/change/").text


@pytest.mark.parametrize("group", [VIEWERS, EDITORS])
def test_only_administrators_change_providers_contracts_and_settings(
    records: None, group: str
) -> None:
    client = logged_in(group)
    network = Blockchain.objects.get()
    for address in (
        "/admin/chain/provider/add/",
        f"/admin/chain/blockchain/{network.pk}/change/",
        "/admin/chain/contracts/add/",
    ):
        assert client.post(address, {}).status_code == 403, address
    assert "Add a contract" not in client.get("/admin/chain/smartcontract/").text


def test_no_one_adds_or_changes_records_by_hand(records: None) -> None:
    root = logged_in(None)
    assert root.post("/admin/chain/transaction/add/", {}).status_code == 403
    changed = root.post(f"/admin/chain/transaction/{'t' * 10}/change/", {"status": "confirmed"})
    assert changed.status_code == 403
    assert Transaction.objects.get().status == "pending"


def test_a_providers_address_is_written_and_never_shown(network: int) -> None:
    client = logged_in(ADMINISTRATORS)
    value = {"network_id": "5", "name": "second", "weight": "3", "active": "on", "new_url": SECRET}
    assert client.post("/admin/chain/provider/add/", value).status_code == 302
    made = Provider.objects.get(name="second")
    assert cipher("chain provider").decrypt(made.url).decode() == SECRET
    place = f"/admin/chain/provider/{made.pk}/change/"
    assert "very-secret-key" not in client.get(place).text
    changed = client.post(place, value | {"new_url": "", "weight": "4"})
    assert changed.status_code == 302
    made.refresh_from_db()
    assert (made.weight, cipher("chain provider").decrypt(made.url).decode()) == (4, SECRET)


@pytest.mark.parametrize("url", ["", "ftp://x.example", "https://", "file:///etc/passwd", "x y"])
def test_what_is_no_address_is_refused(network: int, url: str) -> None:
    value = {"network_id": "5", "name": "second", "weight": "3", "new_url": url}
    reply = logged_in(ADMINISTRATORS).post("/admin/chain/provider/add/", value)
    assert reply.status_code == 200
    assert not Provider.objects.filter(name="second").exists()


def test_what_the_gateway_has_written_meanwhile_stays(network: int) -> None:
    client = logged_in(ADMINISTRATORS)
    row = Provider.objects.get()
    place = f"/admin/chain/provider/{row.pk}/change/"
    client.get(place)
    Provider.objects.update(head=17)
    client.post(place, {"network_id": "5", "name": "first", "weight": "9", "active": "on"})
    row.refresh_from_db()
    assert (row.weight, row.head) == (9, 17)


SETTINGS = {"active": "on", "finality_depth": "", "verify": "sample"}


def test_the_settings_of_a_network_leave_its_public_fields_alone(network: int) -> None:
    row = Blockchain.objects.get()
    client = logged_in(ADMINISTRATORS)
    value = SETTINGS | {"poll_interval": "500", "confirmations": "2", "verify": "all"}
    reply = client.post(f"/admin/chain/blockchain/{row.pk}/change/", value)
    assert reply.status_code == 302
    row.refresh_from_db()
    assert (row.poll_interval, row.confirmations, row.verify, row.rpc_endpoint) == (
        *(500, 2, "all"),
        "https://public.example",
    )


@pytest.mark.parametrize(
    "wrong",
    [{"poll_interval": "0"}, {"confirmations": "-1"}, {"finality_depth": "-1"}, {"verify": "no"}],
)
def test_settings_that_can_not_be_are_refused(network: int, wrong: dict[str, str]) -> None:
    row = Blockchain.objects.get()
    value = SETTINGS | {"poll_interval": "500", "confirmations": "2"}
    reply = logged_in(ADMINISTRATORS).post(
        f"/admin/chain/blockchain/{row.pk}/change/", value | wrong
    )
    assert reply.status_code == 200
    row.refresh_from_db()
    assert (row.poll_interval, row.confirmations, row.finality_depth) == (2000, 0, None)


ABI: list[dict[str, Any]] = [
    {"type": "event", "name": "Ping", "inputs": [{"name": "n", "type": "uint256"}]}
]


@pytest.mark.parametrize("abi", [ABI, {"abi": ABI, "bytecode": "0x"}])
def test_a_contract_is_added_by_its_address_and_abi(network: int, abi: Any) -> None:
    value = {
        "network": "5",
        "name": "Gem",
        "address": ADDRESS.lower(),
        "abi": json.dumps(abi),
        "kind": "token",
        "start_block": "3",
        "listening": "on",
    }
    client = logged_in(ADMINISTRATORS)
    assert client.post("/admin/chain/contracts/add/", value).status_code == 302
    made = SmartContract.objects.get()
    assert (made.address, made.abi, made.start_block, made.listening) == (ADDRESS, ABI, 3, True)


@pytest.mark.parametrize(
    "wrong",
    [
        {"address": "0x12"},
        {"address": ADDRESS.replace("5aA", "5Aa")},
        {"abi": "no json"},
        {"abi": "{}"},
        {"abi": "[" * 5000},
        {"network": "6"},
        {"start_block": "-1"},
    ],
)
def test_what_is_wrong_with_a_contract_is_said(network: int, wrong: dict[str, str]) -> None:
    value = {"network": "5", "name": "Gem", "address": ADDRESS, "abi": json.dumps(ABI)}
    reply = logged_in(ADMINISTRATORS).post("/admin/chain/contracts/add/", value | wrong)
    assert reply.status_code == 200
    assert "sv-complaint" in reply.text or "sv-error" in reply.text
    assert not SmartContract.objects.exists()


@pytest.mark.slow
@NEEDS_CHROMIUM
@pytest.mark.django_db(transaction=True)
def test_a_contract_is_added_in_a_browser(records: None, live_server: Any) -> None:
    root = User.objects.create_superuser("root")
    with browser() as chromium, staff_page(chromium, live_server.url, root) as page:
        page.goto("/admin/networks/")
        look(page, "chain-networks")
        page.get_by_role("link", name="Contracts").first.click()
        page.get_by_role("link", name="Add a contract").click()
        page.get_by_label("Name").fill("Gem")
        page.get_by_label("Address").fill(ADDRESS)
        page.get_by_label("ABI").fill(json.dumps(ABI))
        look(page, "chain-add-contract")
        page.get_by_role("button", name="Register").click()
        expect(page.get_by_text("Gem is registered.")).to_be_visible()
        page.goto("/admin/chain/contractevent/")
        look(page, "chain-events")
        page.goto("/admin/chain/provider/add/")
        look(page, "chain-provider")
