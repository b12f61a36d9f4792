"""``addDiamondFacet``: a facet's functions are added to a diamond, once, or nothing is sent."""

from __future__ import annotations

from typing import Any

import pytest

from tests.chain.sending.desk import Desk, with_settings
from tests.evm.artefacts import DiamondOnChain, artefact, put_diamond, selectors
from tests.people import make_role, sign_up
from tests.rest import APPLICATION, MASTER, READ_ONLY, Api, Reply
from tests.threads import at_once

pytestmark = pytest.mark.django_db
committed = pytest.mark.django_db(transaction=True)


@pytest.fixture
def diamond(desk: Desk) -> DiamondOnChain:
    """A diamond of the signer's own."""
    return put_diamond(desk.node, owner=desk.address)


def add(caller: Api, desk: Desk, diamond: DiamondOnChain, name: str, **more: Any) -> Reply:
    params = {
        "networkId": desk.network_id,
        "diamondAddress": diamond.address,
        "facetName": name,
        **more,
    }
    return caller.post("/functions/addDiamondFacet", params)


def facet(desk: Desk, name: str, **more: Any) -> list[str]:
    """Put a facet on the chain and register it; its selectors."""
    put = desk.node.deployed(name)
    desk.register(put, name, kind="facet", **more)
    return selectors(artefact(name).abi)


@committed
def test_a_facet_is_added(desk: Desk, diamond: DiamondOnChain) -> None:
    expected = facet(desk, "BadgeFacet")
    reply = add(Api(MASTER), desk, diamond, "BadgeFacet")
    assert reply.status == 200, reply.json
    result = reply.json["result"]
    assert result == {
        "transactionHash": result["transactionHash"],
        "status": "pending",
        "selectors": expected,
    }
    assert desk.node.mined(result["transactionHash"])["status"] == "0x1"
    diamond.as_("BadgeFacet").transact("award", desk.address, 5, "well done")
    assert diamond.as_("BadgeFacet").call("pointsOf", desk.address) == 5
    assert desk.record(result["transactionHash"]).status == "pending"
    again = add(Api(MASTER), desk, diamond, "BadgeFacet")
    assert again.error == (400, 141)
    assert all(item in again.json["error"] for item in expected)


def test_a_network_may_be_text_and_an_address_in_lower_case(
    desk: Desk, diamond: DiamondOnChain
) -> None:
    facet(desk, "BadgeFacet")
    reply = add(
        Api(MASTER),
        desk,
        diamond,
        "BadgeFacet",
        networkId=str(desk.network_id),
        diamondAddress=diamond.address.lower(),
    )
    assert reply.status == 200, reply.json


_NONE = (None, "", {}, "0x12", "0x" + "aB" * 20)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("networkId", value) for value in (*_NONE, True, 0, -1, 1.5)),
        *(("diamondAddress", value) for value in (*_NONE, 5)),
        *(("facetName", value) for value in (None, "", " ", {}, 5)),
    ],
)
@pytest.mark.parametrize("headers", [MASTER, APPLICATION])
def test_parameters_come_first(db: None, name: str, value: object, headers: dict[str, str]) -> None:
    good = {"networkId": 5, "diamondAddress": "0x" + "ab" * 20, "facetName": "Facet"}
    caller = Api(headers)
    lacking = {key: item for key, item in good.items() if key != name}
    for params in (lacking, {**good, name: value}):
        reply = caller.post("/functions/addDiamondFacet", params)
        assert reply.error == (400, 141)
        assert name in reply.json["error"]


def test_a_private_key_is_not_taken(desk: Desk, diamond: DiamondOnChain) -> None:
    facet(desk, "BadgeFacet")
    reply = add(Api(MASTER), desk, diamond, "BadgeFacet", privateKey=desk.key)
    assert reply.error == (400, 141)
    assert "privateKey" in reply.json["error"]
    assert desk.key not in reply.json["error"]


# -- Who may --------------------------------------------------------------------------------------


def test_the_master_key_or_the_role_is_needed(desk: Desk, diamond: DiamondOnChain) -> None:
    master = Api(MASTER)
    facet(desk, "BadgeFacet")
    admin, stranger = sign_up("admin"), sign_up("stranger")
    make_role(master, "ContractAdmin", [admin])
    make_role(master, "Other", [stranger])
    for caller, error in (
        (Api(APPLICATION), (400, 142)),
        (stranger, (403, 119)),
        (Api(READ_ONLY), (403, 119)),
    ):
        reply = add(caller, desk, diamond, "BadgeFacet")
        assert reply.error == error
    assert desk.rows == []
    assert add(admin, desk, diamond, "BadgeFacet").status == 200


# -- What is refused ------------------------------------------------------------------------------


def test_a_function_that_is_there_already_is_a_collision(desk: Desk) -> None:
    diamond = put_diamond(desk.node, "BadgeFacet", owner=desk.address)
    facet(desk, "ClashingFacet")
    reply = add(Api(MASTER), desk, diamond, "ClashingFacet")
    assert reply.error == (400, 141)
    assert "pointsOf(address)" in reply.json["error"]
    assert diamond.facets["BadgeFacet"].address in reply.json["error"]
    assert "clash()" not in reply.json["error"]
    assert desk.rows == []


def test_what_every_diamond_has_does_not_collide(desk: Desk, diamond: DiamondOnChain) -> None:
    put = desk.node.deployed("CounterFacet")
    inherited = [
        {"type": "function", "name": "owner", "inputs": [], "outputs": [{"type": "address"}]},
        {"type": "function", "name": "init", "inputs": [{"type": "bytes"}], "outputs": []},
    ]
    desk.register(put.with_abi([*put.abi, *inherited]), "CounterFacet", kind="facet")
    reply = add(Api(MASTER), desk, diamond, "CounterFacet")
    assert reply.json["result"]["selectors"] == selectors(put.abi)


def test_a_cut_by_who_is_not_the_owner_is_told_why(desk: Desk) -> None:
    diamond = put_diamond(desk.node)
    facet(desk, "BadgeFacet")
    reply = add(Api(MASTER), desk, diamond, "BadgeFacet")
    assert reply.error == (400, 141)
    assert "Diamond: only the owner may do this" in reply.json["error"]
    assert desk.rows == []


def test_a_contract_without_a_loupe_is_no_diamond(desk: Desk, diamond: DiamondOnChain) -> None:
    facet(desk, "BadgeFacet")
    coin = desk.node.deployed("Coin")
    reply = add(Api(MASTER), desk, diamond, "BadgeFacet", diamondAddress=coin.address)
    assert reply.error == (400, 141)
    assert "no loupe" in reply.json["error"]
    nothing = add(Api(MASTER), desk, diamond, "BadgeFacet", diamondAddress="0x" + "12" * 20)
    assert nothing.error == (400, 141)
    assert "no contract at" in nothing.json["error"]


def test_what_is_not_registered_is_named(desk: Desk, diamond: DiamondOnChain) -> None:
    reply = add(Api(MASTER), desk, diamond, "Nobody")
    assert (reply.error, "Nobody" in reply.json["error"]) == ((400, 141), True)
    reply = add(Api(MASTER), desk, diamond, "Nobody", networkId=5)
    assert reply.json == {"code": 141, "error": "No blockchain found for networkId: 5"}


def test_without_a_signer_nothing_is_asked(desk: Desk, diamond: DiamondOnChain) -> None:
    facet(desk, "BadgeFacet")
    with with_settings(SIGNER_PRIVATE_KEY={}):
        reply = add(Api(MASTER), desk, diamond, "BadgeFacet")
    assert reply.error == (400, 141)
    assert "No signer" in reply.json["error"]


# -- Several at once ------------------------------------------------------------------------------


@committed
@pytest.mark.parametrize("automine", [True, False])
def test_two_at_once_make_one_cut(desk: Desk, diamond: DiamondOnChain, automine: bool) -> None:
    facet(desk, "BadgeFacet")
    desk.node.automine(automine)
    try:
        replies = at_once([lambda: add(Api(MASTER), desk, diamond, "BadgeFacet")] * 4)
    finally:
        desk.node.automine(True)
        desk.node.mine()
    assert len(desk.rows) == 1
    done = [reply.json["result"]["transactionHash"] for reply in replies if reply.status == 200]
    assert set(done) == {desk.rows[0].hash}
    # A caller that comes when it is mined already gets that answer.
    for reply in replies:
        assert reply.status == 200 or "already" in reply.json["error"]
    assert desk.node.mined(done[0])["status"] == "0x1"


@committed
def test_a_cut_under_way_is_answered_again_and_one_that_overlaps_is_not_made(
    desk: Desk, diamond: DiamondOnChain
) -> None:
    facet(desk, "BadgeFacet")
    facet(desk, "ClashingFacet")
    desk.node.automine(False)
    try:
        first = add(Api(MASTER), desk, diamond, "BadgeFacet")
        again = add(Api(MASTER), desk, diamond, "BadgeFacet")
        assert again.json == first.json
        other = add(Api(MASTER), desk, diamond, "ClashingFacet")
        assert other.error == (400, 141)
        assert first.json["result"]["transactionHash"] in other.json["error"]
    finally:
        desk.node.automine(True)
    assert len(desk.rows) == 1
