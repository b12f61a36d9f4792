"""The node and the contracts that other tests are built on."""

from __future__ import annotations

import pytest

from chain.rpc.web3_library import eth_account
from tests.evm.artefacts import artefact, cut, put_diamond, topic
from tests.evm.node import Node, NodeError, running_node

KEY = "0x" + "11" * 32
NOWHERE = "0x" + "00" * 20


@pytest.fixture(scope="module")
def chain():
    with running_node() as node:
        yield node


@pytest.fixture
def node(chain: Node):
    yield chain
    chain.reset()


def test_a_node_that_is_stuck_is_started_again_by_a_reset():
    with running_node() as node:
        node.mine(3)
        node.hang()
        node.reset(patience=0.2)
        assert node.logs() == []
        node.mined(node.deployed("Gem").transact("mint", node.accounts[1]))
        assert len(node.logs()) == 1


def test_a_node_that_is_stopped_has_the_same_chain_when_it_is_started_again():
    with running_node() as node:
        gem = node.deployed("Gem")
        node.mined(gem.transact("mintBatch", 3))
        before, head = node.logs(), node.block()["hash"]

        node.stop()
        node.start()

        assert node.logs() == before
        assert node.block()["hash"] == head
        node.mined(gem.transact("mint", node.accounts[1]))
        assert len(node.logs()) == 4


def test_a_gem_is_minted_with_its_attributes(node):
    gem = node.deployed("Gem")

    node.mined(gem.transact("mintWith", node.accounts[1], [("colour", 0, "red"), ("size", 1, "9")]))

    first, second = node.logs(address=gem.address)
    assert first["topics"][0] == topic(gem.abi, "Transfer")
    minted = "GemforceMinted(uint256,address,(string,uint8,string)[])"
    assert second["topics"][0] == topic(gem.abi, minted)
    assert gem.call("ownerOf", 1) == node.accounts[1].lower()


def test_a_transaction_that_fails_is_mined(node):
    gem = node.deployed("Gem")

    with pytest.raises(NodeError, match="boom"):
        gem.call("boom")

    assert node.mined(gem.transact("boom"))["status"] == "0x0"


def test_a_reorganisation_exchanges_blocks_and_what_they_hold(node):
    gem = node.deployed("Gem")
    node.automine(False)
    sent = gem.transact("mint", node.accounts[1])
    node.mine(2)
    old = node.block()

    node.reorg(2, [(gem.request("mint", node.accounts[2]), 1)])

    assert node.block()["number"] == old["number"]
    assert node.block()["hash"] != old["hash"]
    assert node.receipt(sent) is None
    (log,) = node.logs(address=gem.address)
    assert log["blockNumber"] == old["number"]


def test_a_signed_transaction_can_be_mined_in_another_block(node):
    gem = node.deployed("Gem")
    node.give(eth_account().Account.from_key(KEY).address)
    node.automine(False)
    taken = node.snapshot()
    signed = node.signed(KEY, gem.request("mint", node.accounts[1]))
    sent = node.send_raw(signed)
    height = node.mine()

    node.revert(taken)
    node.mine(2)
    again = node.send_raw(signed)
    node.mine()

    assert again == sent
    assert int(node.mined(sent)["blockNumber"], 16) == height + 2


def test_a_diamond_has_the_functions_of_its_facets(node):
    diamond = put_diamond(node, "BadgeFacet")
    loupe = diamond.as_("LoupeFacet")
    owner = node.accounts[0]

    node.mined(diamond.as_("BadgeFacet").transact("award", node.accounts[1], 5, "for a test"))

    assert diamond.as_("BadgeFacet").call("pointsOf", node.accounts[1]) == 5
    assert len(loupe.call("facets")) == 4
    counter = node.deployed("CounterFacet")
    node.mined(diamond.as_("CutFacet").transact("diamondCut", [cut(counter)], NOWHERE, b""))
    node.mined(diamond.as_("CounterFacet").transact("count"))
    assert node.logs(first=node.head)[0]["address"] == diamond.address.lower()
    clashing = node.deployed("ClashingFacet")
    with pytest.raises(NodeError, match="there already"):
        diamond.as_("CutFacet").call("diamondCut", [cut(clashing)], NOWHERE, b"", sender=owner)
    with pytest.raises(NodeError, match="only the owner"):
        diamond.as_("CutFacet").call("diamondCut", [cut(counter, 2)], NOWHERE, b"")
    node.mined(diamond.as_("CutFacet").transact("diamondCut", [cut(counter, 2)], NOWHERE, b""))
    assert len(loupe.call("facets")) == 4


def test_a_proxy_speaks_for_its_implementation(node):
    first, second = node.deployed("BoxV1"), node.deployed("BoxV2")
    proxy = node.deployed("Proxy", first.address)

    node.mined(proxy.with_abi(first.abi).transact("store", 7))
    node.mined(proxy.transact("upgradeTo", second.address))
    node.mined(proxy.with_abi(second.abi).transact("store", 8))

    names = [log["topics"][0] for log in node.logs(address=proxy.address)]
    assert names == [
        topic(proxy.abi, "Upgraded"),
        topic(first.abi, "Stored"),
        topic(proxy.abi, "Upgraded"),
        topic(second.abi, "StoredBy"),
    ]


def test_the_zoo_has_events_of_every_kind(node):
    zoo = node.deployed("Zoo")

    for method in ("hidden", "indexedThings", "animals", "extremes", "fixedBytes", "kinds"):
        node.mined(zoo.transact(method))
    for method in ("overloads", "unnamed"):
        node.mined(zoo.transact(method))
    node.mined(zoo.transact("words", b"\xff\xfe"))
    node.mined(zoo.transact("unlisted", 1))
    node.mined(zoo.transact("raw", [], b"no topic"))
    node.mined(zoo.transact("raw", [b"\x01" * 32] * 4, b""))

    assert len(node.logs()) == 18
    reduced = artefact("Zoo").without("Unlisted")
    assert len(reduced) == len(zoo.abi) - 1
