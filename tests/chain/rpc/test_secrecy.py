"""Addresses of providers are in no error, no log, no repr and no trouble text."""

from __future__ import annotations

import json
import logging
import traceback
from contextlib import ExitStack

import pytest

from chain import rpc
from chain.core.failures import NodeFailure, Refused, TryAgain, Unavailable
from chain.models import Provider
from chain.rpc.client.json_rpc import Endpoint
from chain.rpc.client.secret_address import Address
from chain.rpc.endpoints import given_for
from chain.rpc.pool import pool_of
from tests.chain.rpc.networks import network, provider
from tests.evm import faults
from tests.evm.node import Node
from tests.evm.proxy import Dropped, HttpAnswer, Proxy, proxied

KEY = "k3y0fTheProvider"
ID = 31337


@pytest.mark.parametrize(
    "url",
    [
        f"https://node.example/v2/{KEY}",
        f"https://node.example/?apikey={KEY}",
        f"https://{KEY}:{KEY}@node.example/",
        f"https://name:{KEY}@node.example/rpc?x=1",
    ],
)
def test_a_text_loses_the_address_and_the_key(url: str) -> None:
    address = Address(url)
    text = f"no plan for {url}: key {KEY} of {address.url} (see https://a.example/b)"
    assert KEY not in address.without(text)
    assert "://" not in address.without(text)
    assert KEY not in repr(address) + repr(Endpoint(url, timeout=1))


def test_a_name_and_password_are_sent_as_a_header() -> None:
    address = Address("https://me:p%40ss@node.example:8545/rpc")
    assert address.url == "https://node.example:8545/rpc"
    assert address.headers == {"Authorization": "Basic bWU6cEBzcw=="}


def failing(kind: str, proxy: Proxy) -> None:
    error = {"code": -32000, "message": f"project {KEY} at {proxy.url}/v2/{KEY} has no plan for it"}
    body = json.dumps({"jsonrpc": "2.0", "id": 0, "error": error}).encode()

    def answers(calls: list) -> None:
        raise HttpAnswer(200, body)

    def moves(calls: list) -> None:
        raise HttpAnswer(302, b"", Location=f"{proxy.url}/{KEY}")

    event = {
        "error": answers,
        "redirect": moves,
        "429": faults.too_many_requests(),
        "dropped": faults.dropped(),
        "page": faults.page(),
    }
    if kind == "refused":
        proxy.refuse()
    else:
        proxy.on_request(event[kind])


@pytest.mark.django_db
@pytest.mark.parametrize("kind", ["error", "redirect", "429", "dropped", "page", "refused"])
def test_no_failure_shows_the_key(
    node: Node, kind: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    network()
    with ExitStack() as stack:
        proxy = stack.enter_context(proxied(node))
        provider(f"{proxy.url}/v2/{KEY}?apikey={KEY}")
        failing(kind, proxy)
        with pytest.raises(NodeFailure) as raised:
            rpc.attempt(ID, lambda item: item.call("eth_gasPrice"), seconds=2)
        assert isinstance(raised.value, Unavailable | Refused)
        shown = "".join(traceback.format_exception(raised.value)) + repr(raised.value)
        shown += repr(rpc.health(ID)) + repr(given_for(ID)) + repr(pool_of(ID).known())
        shown += repr([*Provider.objects.values("trouble", "name")])
        assert KEY not in shown
    assert KEY not in caplog.text
    assert KEY not in "".join(capfd.readouterr())


def test_a_head_that_can_not_be_read_shows_no_key(
    node: Node, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    answer = b'{"jsonrpc":"2.0","id":null,"result":"0x1"}'
    head = b"HTTP/1.1 200 OK\r\nno header\r\nContent-Length: %d\r\n\r\n" % len(answer)

    def answers(calls: list) -> None:
        raise Dropped(head + answer)

    with proxied(node) as proxy:
        proxy.on_request(answers)
        with pytest.raises(TryAgain, match="isn't valid HTTP") as raised:
            Endpoint(f"{proxy.url}/{KEY}", timeout=5).call(("eth_chainId", ()))
    assert KEY not in caplog.text + "".join(traceback.format_exception(raised.value))


@pytest.mark.django_db
def test_addresses_are_kept_encrypted() -> None:
    results = provider(f"https://node.example/{KEY}")
    assert KEY not in results.url
    assert given_for(ID)[0].url == f"https://node.example/{KEY}"


@pytest.mark.django_db
def test_an_address_that_no_key_reads_is_said_to_be_so(settings) -> None:
    provider("https://node.example/")
    settings.SECRET_KEY = "another one"
    with pytest.raises(Unavailable):
        rpc.attempt(ID, lambda node: node.call("eth_chainId"))
    assert rpc.health(ID)[0].trouble == "the address can't be read: SECRET_KEY is another one"
