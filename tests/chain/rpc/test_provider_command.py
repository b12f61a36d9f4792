"""``manage.py chain_provider``: adding, listing and removing endpoints without showing them."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from chain import rpc
from chain.models import Provider
from chain.rpc.endpoints import given_for, socket_urls
from objects.database import maintenance
from tests.chain.rpc.networks import network
from tests.evm.node import Node

pytestmark = pytest.mark.django_db
ID = 31337
KEY = "k3yOfTheProviderWhichIsLong"


@pytest.fixture(autouse=True)
def _network(db: None) -> None:
    network(ID)


def run(*args: Any) -> str:
    out = io.StringIO()
    call_command("chain_provider", *map(str, args), stdout=out)
    return out.getvalue()


def test_an_endpoint_is_added_listed_and_removed(node: Node) -> None:
    url = f"{node.url}/?key={KEY}"
    output = run("add", ID, "main", "--url", url, "--weight", 7, "--requests-per-second", 50)
    row = Provider.objects.get()
    assert (row.name, row.weight, row.requests_per_second, row.batch_size) == ("main", 7, 50, None)
    assert KEY not in row.url + output
    assert given_for(ID)[0].url == url

    rpc.attempt(ID, lambda item: item.header("latest"))
    listed = run("list")
    assert f"main  (provider, weight 7)  head {node.head}" in listed
    document = json.loads(run("list", ID, "--json"))[str(ID)]
    assert (document[0]["name"], document[0]["head"], document[0]["lag"]) == ("main", node.head, 0)
    assert KEY not in listed + json.dumps(document)

    run("remove", ID, "main")
    assert not Provider.objects.exists()
    assert run("list") == f"{ID}\n  no endpoint\n"


def test_the_address_is_read_from_standard_input(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{node.url}\n"))
    run("add", ID, "main", "--socket-url", f"wss://node.example/{KEY}")
    assert given_for(ID)[0].url == node.url
    assert socket_urls() == {ID: f"wss://node.example/{KEY}"}


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("add", 1, "main", "--url", "{node}"), "It answers for network 31337, not for 1."),
        (("add", ID, "main", "--url", f"http://127.0.0.1:9/{KEY}"), "It doesn't answer"),
        (
            ("add", ID, "main", "--url", f"ftp://{KEY}", "--unchecked"),
            "begins with http:// or https://",
        ),
        (("add", ID, "main", "--url", f"http://me:{KEY}@a.example", "--unchecked"), "begins with"),
        (("add", ID, "", "--url", "{node}"), "name: expected"),
        (("add", ID, "main", "--url", "{node}", "--weight", "-1"), "weight: expected"),
        (("add", ID, "main", "--url", "{node}", "--batch-size", "0"), "--batch-size: expected"),
        (("add", ID, "main", "--url", "{node}", "--socket-url", f"http://{KEY}"), "wss://"),
        (("remove", ID, "main"), "The network has no provider named main."),
    ],
)
def test_what_is_wrong_is_said_without_the_address(
    node: Node, args: tuple[Any, ...], message: str
) -> None:
    with pytest.raises(CommandError) as raised:
        run(*(str(arg).replace("{node}", node.url) for arg in args))
    assert message in str(raised.value)
    assert KEY not in str(raised.value)
    assert not Provider.objects.exists()


def test_what_is_no_address_is_never_requested() -> None:
    with pytest.raises(CommandError, match="--url: expected an address") as raised:
        run("add", ID, "main", "--url", f"https://[{KEY}")
    assert KEY not in str(raised.value)
    assert not Provider.objects.exists()


def test_a_name_is_given_once_in_a_network(node: Node) -> None:
    run("add", ID, "main", "--url", node.url)
    with pytest.raises(CommandError, match="a provider main already"):
        run("add", ID, "main", "--url", node.url)
    network(5)
    run("add", 5, "main", "--url", "https://node.example/", "--unchecked")


def test_a_provider_needs_its_network() -> None:
    with pytest.raises(CommandError, match=r"There is no network 5\. Add it first\."):
        run("add", 5, "main", "--url", "https://node.example/", "--unchecked")
    assert not Provider.objects.exists()


@pytest.mark.parametrize("spelling", ["batch-size", "batchSize", "batch_size", "--batch-size"])
def test_a_limit_is_unset_by_each_of_its_names(node: Node, spelling: str) -> None:
    run("add", ID, "main", "--url", node.url, "--batch-size", 20)
    run("set", ID, "main", f"--unset={spelling}")
    assert Provider.objects.get().batch_size is None


@pytest.mark.django_db(transaction=True)
def test_nothing_is_added_during_maintenance(node: Node) -> None:
    maintenance.on("Back at noon")
    try:
        with pytest.raises(CommandError, match="Back at noon"):
            run("add", ID, "main", "--url", node.url)
        assert not Provider.objects.exists()
    finally:
        maintenance.off()


def test_what_is_changed_is_named_and_the_rest_stays(node: Node) -> None:
    run("add", ID, "main", "--url", f"{node.url}/?key={KEY}", "--batch-size", 20)
    Provider.objects.update(head=17)
    output = run("set", ID, "main", "--weight", 3, "--batch-size", 20, "--inactive")
    assert output == f"Provider main of network {ID}: changed weight, active.\n"
    row = Provider.objects.get()
    assert (row.weight, row.batch_size, row.active, row.head) == (3, 20, False, 17)
    output = run("set", ID, "main", "--active", "--unset", "batch-size", "--name", "other")
    assert output == f"Provider main of network {ID}: changed name, active, batch_size.\n"
    row = Provider.objects.get()
    assert (row.name, row.batch_size, row.active) == ("other", None, True)
    assert given_for(ID)[0].url == f"{node.url}/?key={KEY}"
    output = run("set", ID, "other", "--weight", 3)
    assert output == f"Provider other of network {ID}: nothing changed.\n"


def test_addresses_are_changed_without_being_shown(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("add", ID, "main", "--url", node.url)
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{node.url}/?key={KEY}\n"))
    output = run("set", ID, "main", "--url", "-", "--socket-url", f"wss://node.example/{KEY}")
    assert given_for(ID)[0].url == f"{node.url}/?key={KEY}"
    assert socket_urls() == {ID: f"wss://node.example/{KEY}"}
    output += run("set", ID, "main", "--unset", "socket-url")
    assert socket_urls() == {}
    assert KEY not in output
    again = run("set", ID, "main", "--url", f"{node.url}/?key={KEY}")
    assert again.endswith("nothing changed.\n")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("set", ID, "main"), "Nothing to set"),
        (("set", ID, "nobody", "--weight", "3"), "no provider named nobody"),
        (("set", ID, "main", "--name", "other"), "a provider other already"),
        (("set", ID, "main", "--name", ""), "name: expected"),
        (("set", ID, "main", "--weight", "-1"), "weight: expected"),
        (("set", ID, "main", "--largest-range", "0"), "--largest-range: expected"),
        (("set", ID, "main", "--largest-range", "1", "--unset", "largest-range"), "contradict"),
        (("set", ID, "main", "--url", f"http://127.0.0.1:9/{KEY}"), "It doesn't answer"),
        (
            ("set", ID, "main", "--url", f"ftp://{KEY}", "--unchecked"),
            "begins with http:// or https://",
        ),
        (("set", ID, "main", "--socket-url", f"http://{KEY}"), "begins with ws:// or wss://"),
        (("add", 2**70, "main", "--url", "{node}", "--unchecked"), "network: expected"),
    ],
)
def test_a_change_that_is_wrong_changes_nothing(
    node: Node, args: tuple[Any, ...], message: str
) -> None:
    for name in ("main", "other"):
        run("add", ID, name, "--url", node.url)
    before = [*Provider.objects.values()]
    with pytest.raises(CommandError) as raised:
        run(*(str(arg).replace("{node}", node.url) for arg in args))
    assert message in str(raised.value)
    assert KEY not in str(raised.value)
    assert [*Provider.objects.values()] == before
