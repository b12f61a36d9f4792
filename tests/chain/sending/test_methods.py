"""``viewMethod`` and ``callMethod``: methods of registered contracts, typed, and tried first."""

from __future__ import annotations

from typing import Any

import pytest

from chain.models import SmartContract
from tests.chain.sending.desk import Desk, with_settings
from tests.evm.artefacts import Contract, put_diamond
from tests.people import make_role, sign_up
from tests.rest import APPLICATION, CLIENT, MASTER, READ_ONLY, Api, Reply

pytestmark = pytest.mark.django_db
committed = pytest.mark.django_db(transaction=True)

WIDE = str(2**255 + 1)


@pytest.fixture
def gem(desk: Desk) -> Contract:
    made = desk.node.deployed("Gem")
    desk.register(made, "Gem")
    return made


@pytest.fixture
def coin(desk: Desk) -> Contract:
    made = desk.node.deployed("Coin")
    desk.register(made, "Coin")
    return made


# -- Reading --------------------------------------------------------------------------------------


def test_a_method_is_read_by_the_rules_of_events(desk: Desk, coin: Contract) -> None:
    owner = desk.node.accounts[1]
    coin.transact("mint", owner, int(WIDE))
    master = Api(MASTER)
    for contract in ("Coin", coin.address, coin.address.lower()):
        assert desk.view(master, contract, "balanceOf", [owner]).json == {"result": WIDE}
    assert desk.view(master, "Coin", "decimals").json == {"result": 18}
    assert desk.view(master, "Coin", "name", []).json == {"result": "Coin"}
    assert desk.view(master, "Coin", "balanceOf(address)", [owner]).json == {"result": WIDE}
    reply = desk.view(master, "Coin", "name", networkId=str(desk.network_id))
    assert reply.json == {"result": "Coin"}


def test_arguments_may_be_named(desk: Desk, gem: Contract) -> None:
    gem.transact("mint", desk.address)
    reply = desk.view(Api(MASTER), "Gem", "ownerOf", {"tokenId": "1"})
    assert reply.json == {"result": desk.address}
    wrong = desk.view(Api(MASTER), "Gem", "ownerOf", {"token": "1"})
    assert wrong.error == (400, 141)
    assert "token" in wrong.json["error"]


@pytest.mark.parametrize(
    ("contract", "method", "args", "message"),
    [
        ("Nobody", "name", [], "'Nobody' is registered"),
        ("0x12", "name", [], "parameter contract: expected an address"),
        ("", "name", [], "parameter contract"),
        ("Gem\0", "name", [], "is registered"),
        ("Gem", "", [], "parameter method"),
        ("Gem", "nothing", [], "parameter method: there is no method 'nothing'"),
        ("Gem", "ownerOf", [], "args: expected 1 values, got 0"),
        ("Gem", "ownerOf", ["x"], "args[0]: expected a whole number"),
        ("Gem", "ownerOf", [1.5], "args[0]: expected a whole number"),
        ("Gem", "ownerOf", [True], "args[0]: expected a whole number"),
        ("Gem", "ownerOf", [-1], "args[0]: out of the range of uint256"),
        ("Gem", "ownerOf", [str(2**256)], "args[0]: out of the range"),
        ("Gem", "balanceOf", ["0x12"], "args[0]: expected an address"),
        ("Gem", "supportsInterface", ["0x12"], "args[0]: expected 4 bytes"),
        ("Gem", "mint", ["0x" + "12" * 20], "callMethod"),
        ("Gem", "ownerOf", [99], "The contract refuses: no such gem"),
        ("Gem", "boom", [], "The contract refuses: boom"),
        ("Gem", "panic", [], "Panic 0x12: division by zero"),
        ("Gem", "refuse", [7], "reason: 7)"),
        ("Gem", "ownerOf", "1", "args"),
    ],
)
def test_what_is_wrong_is_said(
    desk: Desk, gem: Contract, contract: str, method: str, args: Any, message: str
) -> None:
    reply = desk.view(Api(MASTER), contract, method, args)
    assert reply.error == (400, 141)
    assert message in reply.json["error"]


def test_a_contract_that_is_not_there_answers_nothing(desk: Desk, gem: Contract) -> None:
    SmartContract.objects.update(address="0x" + "12" * 20)
    reply = desk.view(Api(MASTER), "Gem", "name")
    assert reply.error == (400, 141)
    assert "no contract at" in reply.json["error"]


def test_a_diamond_has_the_methods_of_its_facets(desk: Desk) -> None:
    diamond = put_diamond(desk.node, "BadgeFacet")
    desk.register(diamond.contract, "Diamond", kind="diamond")
    desk.register(diamond.facets["BadgeFacet"], "BadgeFacet", kind="facet")
    desk.register(desk.node.deployed("CounterFacet"), "CounterFacet", kind="facet")
    diamond.as_("BadgeFacet").transact("award", desk.address, 5, "well done")
    reply = desk.view(Api(MASTER), "Diamond", "pointsOf", [desk.address])
    assert reply.json == {"result": "5"}
    # A facet that isn't the diamond's.
    assert desk.view(Api(MASTER), "Diamond", "counted").error == (400, 141)


def test_an_abi_that_cannot_be_read_is_named(desk: Desk, gem: Contract) -> None:
    SmartContract.objects.update(abi=[{"type": "function", "name": "f", "inputs": [{"type": "u"}]}])
    reply = desk.view(Api(MASTER), "Gem", "f")
    assert reply.error == (400, 141)
    assert "abi[0].inputs[0].type" in reply.json["error"]


# -- Who may --------------------------------------------------------------------------------------


NO_LOGIN, NO_RIGHT = (400, 142), (403, 119)


def outcome(reply: Reply) -> Any:
    return 200 if reply.status == 200 else reply.error


def test_who_may_read(desk: Desk, gem: Contract) -> None:
    member, stranger = sign_up("member"), sign_up("stranger")
    make_role(Api(MASTER), "Readers", [member])

    def outcomes() -> list[Any]:
        callers = (Api(MASTER), Api(READ_ONLY), member, stranger, Api(CLIENT), Api(APPLICATION))
        return [outcome(desk.view(caller, "Gem", "name")) for caller in callers]

    assert outcomes() == [200, 200, 200, 200, NO_LOGIN, NO_LOGIN]
    SmartContract.objects.update(view_roles=["Readers"])
    assert outcomes() == [200, 200, 200, NO_RIGHT, NO_LOGIN, NO_LOGIN]
    SmartContract.objects.update(view_roles=[])
    assert outcomes() == [200, 200, NO_RIGHT, NO_RIGHT, NO_LOGIN, NO_LOGIN]
    SmartContract.objects.update(view_roles=["*"])
    assert outcomes() == [200] * 6


def test_who_may_call(desk: Desk, gem: Contract) -> None:
    admin, member, stranger = sign_up("admin"), sign_up("member"), sign_up("stranger")
    make_role(Api(MASTER), "ContractAdmin", [admin])
    make_role(Api(MASTER), "Minters", [member])

    def outcomes() -> list[Any]:
        callers = (Api(MASTER), admin, member, stranger, Api(READ_ONLY), Api(APPLICATION))
        return [outcome(desk.call(caller, "Gem", "mint", [desk.address])) for caller in callers]

    assert outcomes() == [200, 200, NO_RIGHT, NO_RIGHT, NO_RIGHT, NO_LOGIN]
    SmartContract.objects.update(call_roles=["Minters"])
    assert outcomes() == [200, NO_RIGHT, 200, NO_RIGHT, NO_RIGHT, NO_LOGIN]
    for nobody in ([], ["*"], "Minters", {"Minters": True}):
        SmartContract.objects.update(call_roles=nobody)
        assert outcomes() == [200, *[NO_RIGHT] * 4, NO_LOGIN]


def test_only_the_master_key_says_who_may(desk: Desk, gem: Contract) -> None:
    path = f"/classes/SmartContract/{SmartContract.objects.get().object_id}"
    assert sign_up("someone").put(path, {"callRoles": ["Mine"]}).error == (400, 119)
    assert Api(MASTER).put(path, {"callRoles": ["Minters"]}).status == 200
    assert SmartContract.objects.get().call_roles == ["Minters"]
    more = {"callRoles": {"__op": "AddUnique", "objects": ["Admins"]}}
    assert Api(MASTER).put(path, more).status == 200
    assert SmartContract.objects.get().call_roles == ["Minters", "Admins"]
    for wrong in ("Minters", [5], [""], {"a": 1}, {"__op": "AddUnique", "objects": [5]}):
        for name in ("viewRoles", "callRoles"):
            reply = Api(MASTER).put(path, {name: wrong})
            assert reply.error == (400, 111)
            assert name in reply.json["error"]
    assert Api(MASTER).put(path, {"callRoles": {"__op": "Delete"}}).status == 200
    assert SmartContract.objects.get().call_roles is None


# -- Calling --------------------------------------------------------------------------------------


@committed
def test_a_call_is_sent_and_followed(desk: Desk, gem: Contract) -> None:
    metadata = [{"key": "colour", "attributeType": 0, "value": "red"}]
    reply = desk.call(Api(MASTER), "Gem", "mintWith", [desk.node.accounts[3], metadata])
    assert reply.status == 200, reply.json
    sent = reply.json["result"]["transactionHash"]
    assert reply.json["result"] == {"transactionHash": sent, "status": "pending"}
    assert desk.node.mined(sent)["status"] == "0x1"
    assert gem.call("ownerOf", 1).lower() == desk.node.accounts[3].lower()
    assert desk.record(sent).network_id == str(desk.network_id)


@committed
def test_a_request_that_is_repeated_is_one_call(desk: Desk, gem: Contract) -> None:
    caller = Api({**MASTER, "X-Svc-Request-Id": "c0ffee00-0000-4000-8000-000000000001"})
    first = desk.call(caller, "Gem", "mint", [desk.address])
    again = desk.call(caller, "Gem", "mint", [desk.address])
    assert (first.status, again.json) == (200, first.json)
    assert len(desk.rows) == 1


@pytest.mark.parametrize(
    ("method", "args", "more", "message"),
    [
        ("ownerOf", [1], {}, "viewMethod"),
        ("transferFrom", ["0x" + "12" * 20, "0x" + "13" * 20, 1], {}, "refuses: no such gem"),
        ("mint", ["0x" + "12" * 20], {"value": "1"}, "value: mint(address) takes no ether"),
        ("mint", ["0x" + "12" * 20], {"value": "1.5"}, "value: expected an amount of wei"),
        ("mint", ["0x" + "12" * 20], {"value": -1}, "value: expected an amount of wei"),
        ("mint", ["0x" + "12" * 20], {"value": {}}, "value"),
    ],
)
def test_nothing_is_sent_that_is_wrong(
    desk: Desk, gem: Contract, method: str, args: Any, more: dict[str, Any], message: str
) -> None:
    reply = desk.call(Api(MASTER), "Gem", method, args, **more)
    assert reply.error == (400, 141)
    assert message in reply.json["error"]
    assert desk.rows == []


def test_ether_goes_with_a_call_that_takes_it(desk: Desk, gem: Contract) -> None:
    abi = [{"type": "function", "name": "pay", "inputs": [], "stateMutability": "payable"}]
    place = gem.with_abi(abi)
    SmartContract.objects.update(address=desk.node.accounts[8], abi=place.abi)
    assert desk.call(Api(MASTER), "Gem", "pay", value="1000000000000000000").status == 200
    assert desk.rows[0].value == str(10**18)
    too_much = desk.call(Api(MASTER), "Gem", "pay", value=str(11 * 10**18))
    assert too_much.error == (400, 141)


def test_a_network_that_is_away_is_503(desk: Desk, gem: Contract) -> None:
    desk.behind("http://127.0.0.1:9")
    for reply in (
        desk.view(Api(MASTER), "Gem", "name"),
        desk.call(Api(MASTER), "Gem", "mint", [desk.address]),
    ):
        assert reply.error == (503, 1)


def test_a_signer_that_cannot_sign_is_503(desk: Desk, gem: Contract) -> None:
    with with_settings(
        SIGNER_PRIVATE_KEY={}, SIGNER_KEYSTORE={desk.network_id: "/nowhere/keystore.json"}
    ):
        reply = desk.call(Api(MASTER), "Gem", "mint", [desk.address])
    assert reply.error == (503, 1)
    assert "/nowhere" not in reply.json["error"]
