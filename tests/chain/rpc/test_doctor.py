"""``manage.py doctor`` looks at the networks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta

import pytest
from django.utils import timezone

from backend.kernel.doctor import Finding
from chain import doctor
from chain.models import Cursor
from tests.chain.rpc.networks import network, provider
from tests.evm import faults
from tests.evm.node import Node
from tests.evm.proxy import Proxy, proxied

pytestmark = pytest.mark.django_db
KEY = "0123456789abcdef0123456789abcdef"


@pytest.fixture
def stand_in(node: Node) -> Iterator[Callable[[], Proxy]]:
    with ExitStack() as stack:
        yield lambda: stack.enter_context(proxied(node))


def findings(check: Callable[[], Iterator[Finding]]) -> list[tuple[str, str]]:
    return [(item.level, item.text) for item in check()]


def test_a_network_whose_endpoints_answer_is_well(node: Node) -> None:
    network(name="Local")
    provider(node.url)
    expected = f"Local (31337): 1 of 1 endpoints answer, head {node.head}"
    assert findings(doctor.networks) == [("ok", expected)]


def test_endpoints_that_are_no_use_are_named(node: Node, stand_in: Callable[[], Proxy]) -> None:
    node.mine(30)
    network(name="Local")
    wrong, behind = stand_in(), stand_in()
    wrong.on("eth_chainId", faults.other_chain(1))
    faults.stay_at(behind, 3)
    provider(node.url, "good", weight=30)
    provider("http://127.0.0.1:9/", "gone", weight=20)
    provider(wrong.url, "wrong", weight=10)
    provider(behind.url, "behind", weight=5)
    results = findings(doctor.networks)
    assert [level for level, _ in results] == ["warn", "warn", "warn"]
    assert results[0][1].startswith("Local (31337): gone doesn't answer (no answer: ")
    assert results[1][1] == "Local (31337): wrong answers for network 1: it is never asked."
    lag = node.head - 3
    assert results[2][1] == f"Local (31337): behind is {lag} blocks behind the others."


def test_a_network_that_no_one_answers_for_is_a_failure() -> None:
    network(name="Local")
    provider("http://127.0.0.1:9/", "gone")
    assert [level for level, _ in findings(doctor.networks)] == ["fail"]


def test_a_network_without_endpoints_of_its_own_is_warned_of(node: Node) -> None:
    network(1, name="None")
    network(31337, name="Public", rpc_endpoint=node.url)
    results = findings(doctor.networks)
    assert [level for level, _ in results] == ["warn", "warn", "ok"]
    assert results[0][1] == "None (1): no endpoint, so it isn't followed."
    assert "only its public endpoint is asked" in results[1][1]


def test_a_key_that_is_sent_in_the_clear_is_warned_of(stand_in: Callable[[], Proxy]) -> None:
    network(name="Local")
    provider(f"{stand_in().url}/v2/{KEY}", "first")
    results = findings(doctor.networks)
    assert results[0] == (
        "warn",
        "Local (31337): first is asked without TLS, so its key can be read on the way.",
    )
    assert KEY not in str(results)


@pytest.mark.parametrize(
    ("field", "url", "level"),
    [
        ("rpc_endpoint", f"https://node.example/v3/{KEY}", "warn"),
        ("wss_endpoint", f"wss://node.example/?apikey={KEY}", "warn"),
        ("rpc_endpoint", "https://me:secret@node.example/", "warn"),
        ("rpc_endpoint", "https://rpc.node.example/ethereum-sepolia-testnet", "ok"),
        ("rpc_endpoint", "https://node.example/", "ok"),
        ("rpc_endpoint", "http://[", "ok"),
    ],
)
def test_a_key_in_a_public_endpoint_is_warned_of(field: str, url: str, level: str) -> None:
    network(1, name="Shown", **{field: url})
    results = findings(doctor.public_endpoints)
    assert [item for item, _ in results] == [level]
    assert KEY not in str(results)


def test_a_halted_network_is_a_failure() -> None:
    assert findings(doctor.indexed_networks) == [("ok", "none is halted")]
    Cursor.objects.create(network_id=5, halted="a reorganisation below what is final")
    assert findings(doctor.indexed_networks) == [("ok", "none is halted")]
    network(5)
    assert findings(doctor.indexed_networks) == [
        ("fail", "network 5 is halted: a reorganisation below what is final")
    ]


def test_a_provider_that_contradicted_itself_is_named_for_a_day() -> None:
    network(name="Local")
    when = timezone.now() - timedelta(hours=23)
    Cursor.objects.create(
        network_id=31337, contradictions=5, contradiction="gone: block 7", contradicted_at=when
    )
    warnings = [text for level, text in findings(doctor.indexed_networks) if level == "warn"]
    assert "gone: block 7" in warnings[0]
    Cursor.objects.update(contradicted_at=timezone.now() - timedelta(hours=25))
    assert "gone: block 7" not in str(findings(doctor.indexed_networks))
