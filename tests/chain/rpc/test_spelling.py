"""A node may write hexadecimal texts in any case, and null for what is false or empty."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.kernel.json_types import JsonObject
from chain.indexing.history.backfill import advance
from chain.models import ContractEvent
from chain.rpc.client.spelling import in_lower_case
from tests.chain.backfills import listen as listen_to
from tests.chain.backfills import network_of
from tests.chain.indexed_network import listen, network
from tests.chain.lying_network import events_on_chain, events_shown
from tests.chain.monitored import follow
from tests.evm.node import Node
from tests.evm.proxy import proxied

pytestmark = pytest.mark.django_db(transaction=True)

Replies = list[JsonObject]

HEXADECIMAL = re.compile(r'"0x([0-9a-f]*)"')
HEX_TEXTS = st.from_regex(r"0[xX][0-9a-fA-F]{0,8}", fullmatch=True)
DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | HEX_TEXTS | st.text('0xXaFg"\\/,:é', max_size=8),
    lambda parts: st.lists(parts) | st.dictionaries(st.text('0xAF"\\', max_size=4), parts),
    max_leaves=20,
)


def mixed(digits: str) -> str:
    return "".join(digit.upper() if at % 2 else digit for at, digit in enumerate(digits))


SPELLINGS: dict[str, Callable[[str], str]] = {
    "upper": lambda digits: f"0x{digits.upper()}",
    "upper with its prefix": lambda digits: f"0X{digits.upper()}",
    "mixed": lambda digits: f"0x{mixed(digits)}",
}


def spelled(spelling: Callable[[str], str]) -> Callable[[Replies], bytes]:
    """All hexadecimal texts of the answers in another spelling."""

    def hook(replies: Replies) -> bytes:
        text = json.dumps(replies[0] if len(replies) == 1 else replies)
        return HEXADECIMAL.sub(lambda match: f'"{spelling(match[1])}"', text).encode()

    return hook


def lowered(value: Any) -> Any:
    if isinstance(value, dict):
        return {key_lowered(key): lowered(item) for key, item in value.items()}
    if isinstance(value, list):
        return [lowered(item) for item in value]
    return key_lowered(value) if isinstance(value, str) else value


def key_lowered(text: str) -> str:
    return text.lower() if re.fullmatch("0[xX][0-9a-fA-F]*", text) else text


@given(DOCUMENTS)
def test_hexadecimal_texts_are_lowered_and_nothing_else(document: Any) -> None:
    for is_ascii in (True, False):
        body = json.dumps(document, ensure_ascii=is_ascii).encode()
        assert json.loads(in_lower_case(body)) == lowered(document)


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("verify", ["sample", "all"])
def test_blocks_and_transactions_are_the_same_in_any_spelling(
    node: Node, verify: str, spelling: str
) -> None:
    node.mine(3)
    with network(node, verify=verify) as world:
        world.proxy.on_reply(spelled(SPELLINGS[spelling]))
        listen(world)
        world.follow()
        transaction = follow(world.network_id, world.send(2))
        node.mine()
        world.mint(3)
        cursor = world.follow()
        assert (cursor.trouble, cursor.contradictions) == (None, 0)
        world.check()
        assert {*ContractEvent.objects.values_list("event_name", flat=True)} == {"Transfer"}
        assert (transaction.status, transaction.row.from_address) == (
            "confirmed",
            ContractEvent.objects.values_list("args__to", flat=True)[0],
        )


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_history_is_the_same_in_any_spelling(node: Node, spelling: str) -> None:
    box = node.deployed("BoxV1")
    proxy_contract = node.deployed("Proxy", box.address)
    node.mined(proxy_contract.with_abi(box.abi).transact("store", 7))
    with proxied(node) as proxy:
        proxy.on_reply(spelled(SPELLINGS[spelling]))
        network_id = network_of(node, proxy.url)
        listen_to(proxy_contract, start=None, name="Box")
        listen_to(box, start=node.head + 1, name="BoxV1")
        while advance(network_id):
            pass
    assert events_shown(network_id) == events_on_chain(proxy_contract, 0, node.head)
    assert not ContractEvent.objects.filter(event_name=None).exists()


def test_null_is_as_good_as_what_is_left_out(node: Node) -> None:
    def nullified(replies: Replies) -> Replies:
        text = json.dumps(replies).replace('"removed": false', '"removed": null')
        return json.loads(text)  # type: ignore[no-any-return]

    node.mine(3)
    with network(node) as world:
        world.proxy.on_reply(nullified)
        listen(world)
        world.follow()
        world.mint(2)
        assert world.follow().trouble is None
        world.check()
        assert len(world.shown()) == 2
