"""``manage.py chain_network``: networks without the admin."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connections
from django.utils import timezone

from chain.admin.networks import BlockchainAdmin
from chain.core.node import Header
from chain.indexing import head
from chain.indexing.head import commits, indexer
from chain.indexing.head.cursor import Elsewhere
from chain.indexing.history import backfill
from chain.indexing.storage import cursors as position
from chain.management.commands.chain_network import FIELDS
from chain.models import (
    Backfill,
    Block,
    Blockchain,
    ContractEvent,
    Coverage,
    Cursor,
    OutboxEntry,
    Provider,
    Reorganisation,
    SmartContract,
    Transaction,
)
from chain.networks import configuration
from objects.database import maintenance
from tests.chain.indexed_network import Network, listen
from tests.chain.indexed_network import network as network_of
from tests.chain.rpc.networks import provider
from tests.evm.faults import after
from tests.evm.node import Node
from tests.rest import MASTER, Api

pytestmark = pytest.mark.django_db
KEY = "k3yOfTheProviderWhichIsLong"


def run(*args: Any) -> str:
    out = io.StringIO()
    call_command("chain_network", *map(str, args), stdout=out)
    return out.getvalue()


def wire(network_id: int) -> dict[str, Any]:
    """The network as the master key reads it."""
    row = Blockchain.objects.get(network_id=network_id)
    body: dict[str, Any] = Api(MASTER).get(f"/classes/Blockchain/{row.object_id}").json
    return body


@pytest.fixture
def world(node: Node) -> Iterator[Network]:
    """A network with a contract and events, read up to its head."""
    with network_of(node) as world:
        listen(world)
        world.follow()
        world.mint(2)
        world.mint(1)
        world.follow()
        world.check()
        yield world


# -- add, set --------------------------------------------------------------------------------------


def test_a_network_is_added_with_every_field(node: Node) -> None:
    values = {
        "name": "Local",
        "symbol": "ETH",
        "code": "eth",
        "explorer": "https://explorer.example",
        "rpcEndpoint": node.url,
        "wssEndpoint": "wss://node.example/",
        "confirmations": 3,
        "pollInterval": 5000,
        "finalityDepth": 0,
        "verify": "all",
    }
    assert [*values] == [field.name for field in FIELDS]
    options = [text for field in FIELDS for text in (field.option, values[field.name])]
    assert run("add", node.chain_id, *options) == f"Network {node.chain_id} is added.\n"
    shown = wire(node.chain_id)
    assert {name: shown[name] for name in values} == values
    assert shown["active"] is True
    head.follow(node.chain_id)
    assert Cursor.objects.get().number is not None


def test_every_field_of_the_class_and_of_the_admin_is_an_option() -> None:
    schema = Api(MASTER).get("/schemas/Blockchain").json
    names = {field.name for field in FIELDS} | {"networkId", "active"}
    assert {*schema["fields"]} - {"objectId", "createdAt", "updatedAt", "ACL", "finality"} == names
    columns = {re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name) for name in names}
    assert {*BlockchainAdmin.fields} <= columns


def test_a_network_without_an_endpoint_is_added_with_advice() -> None:
    output = run("add", 5, "--name", "Five", "--paused")
    assert output.startswith("Network 5 is added, paused.\nIt has no endpoint yet")
    assert wire(5)["active"] is False


def test_what_changed_is_listed(node: Node) -> None:
    run("add", node.chain_id, "--rpc-endpoint", node.url, "--finality-depth", 7)
    output = run(
        "set", node.chain_id, "--confirmations", 3, "--poll-interval", 2000, "--name", "New"
    )
    assert output.splitlines() == [
        f"Network {node.chain_id}: name none -> New",
        f"Network {node.chain_id}: confirmations 0 -> 3",
    ]
    output = run("set", node.chain_id, "--unset", "finalityDepth", "--unset", "confirmations")
    assert output.splitlines() == [
        f"Network {node.chain_id}: finalityDepth 7 -> none",
        f"Network {node.chain_id}: confirmations 3 -> 0",
    ]
    again = run("set", node.chain_id, "--confirmations", 0)
    assert again == f"Network {node.chain_id}: nothing changed.\n"
    run("set", node.chain_id, "--finality-depth", 3)
    output = run("set", node.chain_id, "--unset", "finality-depth")
    assert output == f"Network {node.chain_id}: finalityDepth 3 -> none\n"
    assert run("set", node.chain_id, "--unset", "name").endswith("name New -> none\n")


def test_addresses_are_never_printed(node: Node) -> None:
    url = f"{node.url}/?key={KEY}"
    output = run("add", node.chain_id, "--rpc-endpoint", url)
    output += run("set", node.chain_id, "--wss-endpoint", f"wss://node.example/{KEY}")
    output += run("set", node.chain_id, "--unset", "rpcEndpoint")
    for wrong in (
        ("set", node.chain_id, "--rpc-endpoint", f"ftp://node.example/{KEY}"),
        ("set", node.chain_id, "--rpc-endpoint", f"http://127.0.0.1:9/{KEY}"),
        ("set", node.chain_id, "--wss-endpoint", f"https://node.example/{KEY}"),
    ):
        with pytest.raises(CommandError) as raised:
            run(*wrong)
        output += str(raised.value)
    assert KEY not in output
    assert "rpcEndpoint was removed" in output
    assert "wssEndpoint was changed" in output


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("add", 0), "networkId: "),
        (("add", -1), "networkId: "),
        (("add", 2**70), "networkId: "),
        (("add", 31337), "Network 31337 exists already."),
        (("add", 5, "--confirmations", "-1"), "confirmations: expected a whole number"),
        (("add", 5, "--poll-interval", "0"), "pollInterval: Ensure this value is greater"),
        (("add", 5, "--finality-depth", "-1"), "finalityDepth: "),
        (("add", 5, "--verify", "some"), "verify: expected sample or all"),
        (("add", 5, "--confirmations", 2**40), "confirmations: "),
        (("add", 5, "--confirmations", "two"), "invalid int value"),
        (("add", 5, "--rpc-endpoint", "node"), "--rpc-endpoint: expected an address"),
        (("add", 5, "--rpc-endpoint", "{node}"), "It answers for network 31337, not for 5."),
        (("set", 5, "--name", "Five"), "There is no network 5."),
        (("set", 2**70, "--name", "Five"), f"There is no network {2**70}."),
        (("set", 31337), "Nothing to set"),
        (("set", 31337, "--unset", "networkId"), "invalid choice"),
        (("set", 31337, "--name", "New", "--unset", "name"), "contradict"),
        (("set", 31337, "--name", "New", "--confirmations", "-1"), "confirmations: "),
        (("pause", 5), "There is no network 5."),
        (("resume", 5), "There is no network 5."),
        (("remove", 5), "There is no network 5."),
        (("remove", 5, "--delete-data"), "There is no network 5."),
        (("remove", 31337, "--keep-data", "--delete-data"), "not allowed with"),
    ],
)
def test_what_is_wrong_is_a_sentence_and_changes_nothing(
    node: Node, args: tuple[Any, ...], message: str
) -> None:
    run("add", node.chain_id, "--rpc-endpoint", node.url)
    before = [*Blockchain.objects.values()]
    with pytest.raises(CommandError) as raised:
        run(*(str(arg).replace("{node}", node.url) for arg in args))
    assert message in str(raised.value)
    assert [*Blockchain.objects.values()] == before


def test_an_endpoint_that_does_not_answer_is_set_unchecked() -> None:
    run("add", 5, "--rpc-endpoint", "http://127.0.0.1:9/", "--unchecked")
    assert wire(5)["rpcEndpoint"] == "http://127.0.0.1:9/"


@pytest.mark.parametrize("action", ["add", "set", "pause", "resume", "remove"])
def test_each_subcommand_explains_itself(action: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run(action, "--help")
    text = capsys.readouterr().out
    assert "the network's chain id" in text
    if action in ("add", "set"):
        assert all(field.option in text for field in FIELDS)


@pytest.mark.django_db(transaction=True)
def test_nothing_is_changed_during_maintenance() -> None:
    run("add", 5)
    maintenance.on("Back at noon")
    try:
        for args in (("add", 6), ("set", 5, "--name", "New"), ("pause", 5), ("remove", 5)):
            with pytest.raises(CommandError, match="Back at noon"):
                run(*args)
    finally:
        maintenance.off()
    assert wire(5)["active"] is True


# -- pause, resume ---------------------------------------------------------------------------------


def test_a_paused_network_is_not_read_until_it_is_resumed(world: Network) -> None:
    number = world.cursor.number
    assert run("pause", world.network_id) == f"Network {world.network_id} is paused.\n"
    assert "was paused already" in run("pause", world.network_id)
    world.mint(1)
    assert world.follow().number == number
    assert run("resume", world.network_id) == f"Network {world.network_id} is synced again.\n"
    assert "wasn't paused" in run("resume", world.network_id)
    world.follow()
    world.check()


def test_resuming_a_halted_network_names_the_command_that_ends_the_halt(world: Network) -> None:
    Cursor.objects.update(halted="Another chain.")
    output = run("resume", world.network_id)
    assert f"It is halted: Another chain. chain_resume {world.network_id} ends that." in output


# -- remove ----------------------------------------------------------------------------------------


def indexed(network_id: int) -> dict[str, int]:
    """How many rows there are of what the index has stored."""
    models = (Block, Coverage, Backfill, Reorganisation)
    results = {
        model.__name__: model.objects.filter(network_id=network_id).count() for model in models
    }
    events = ContractEvent.objects.filter(network_id=str(network_id))
    return results | {"ContractEvent": events.count()}


def test_a_network_without_data_is_removed_with_its_providers() -> None:
    run("add", 5)
    provider("https://node.example/", "main", 5)
    other = provider("https://node.example/", "main", 6)
    assert run("remove", 5) == "Network 5 is removed.\n"
    assert not Blockchain.objects.exists()
    assert [*Provider.objects.all()] == [other]


def test_a_network_with_data_is_not_removed_without_a_choice(world: Network) -> None:
    before = indexed(world.network_id)
    with pytest.raises(CommandError) as raised:
        run("remove", world.network_id)
    message = str(raised.value)
    assert f"has data: read up to block {world.cursor.number}, 3 events" in message
    assert "1 contract, 0 transactions (0 pending)" in message
    for option in ("--keep-data", "--delete-data", f"chain_network pause {world.network_id}"):
        assert option in message
    assert indexed(world.network_id) == before
    world.mint(1)
    world.follow()
    world.check()


def test_a_contract_alone_is_data(node: Node) -> None:
    now = timezone.now()
    SmartContract.objects.create(object_id="c" * 10, created_at=now, updated_at=now, network_id=5)
    run("add", 5)
    with pytest.raises(CommandError, match="1 contract,"):
        run("remove", 5)
    run("remove", 5, "--delete-data")
    assert SmartContract.objects.count() == 1


def test_a_network_that_kept_its_data_goes_on_when_it_is_added_again(world: Network) -> None:
    own = provider(world.proxy.url, "own", world.network_id)
    before = indexed(world.network_id)
    output = run("remove", world.network_id, "--keep-data")
    assert f"Kept: read up to block {world.cursor.number}, 3 events" in output
    assert not Blockchain.objects.exists()
    world.mint(1)
    world.follow()
    assert indexed(world.network_id) == before
    assert Provider.objects.get() == own
    assert "goes on with the data" in run("add", world.network_id)
    world.follow()
    world.check()


def test_deleting_the_data_leaves_what_belongs_to_the_application(world: Network) -> None:
    network_id = world.network_id
    provider(world.proxy.url, "own", network_id)
    now = timezone.now()
    common = {"created_at": now, "updated_at": now}
    for object_id, network in (("a" * 10, str(network_id)), ("b" * 10, "6")):
        Transaction.objects.create(
            object_id=object_id, hash=object_id, network_id=network, status="pending", **common
        )
        ContractEvent.objects.create(
            object_id=object_id, network_id=network, block_number=1, log_index=99, **common
        )
    Reorganisation.objects.create(
        network_id=network_id, fork_number=1, fork_hash="0x", old_number=2, old_hash="0x",
        depth=1, removed_events=0, seen_at=now,
    )  # fmt: skip
    outbox = world.cursor.outbox
    assert outbox > 1
    output = run("remove", network_id, "--delete-data")
    assert "Deleted: 4 events" in output
    assert "Kept: 1 contracts, 1 transactions, wallets." in output
    assert not any(indexed(network_id).values())
    assert not Provider.objects.exists()
    assert (Transaction.objects.count(), SmartContract.objects.count()) == (2, 1)
    assert ContractEvent.objects.get().network_id == "6"
    cursor = world.cursor
    assert (cursor.number, cursor.hash, cursor.looked_at, cursor.outbox) == (
        None,
        None,
        None,
        outbox,
    )
    assert [*OutboxEntry.objects.values_list("seq", flat=True)] == [outbox]


def test_a_network_whose_data_was_deleted_is_read_from_scratch(world: Network) -> None:
    network_id = world.network_id
    outbox = world.cursor.outbox
    run("remove", network_id, "--delete-data")
    run("add", network_id, "--rpc-endpoint", world.proxy.url)
    indexer.forget()
    world.follow()
    world.mint(2)
    world.follow()
    assert world.shown() == world.on_chain()
    assert world.cursor.outbox == outbox + len(world.on_chain())


def test_what_a_removal_with_kept_data_left_is_deleted_later(world: Network) -> None:
    run("remove", world.network_id, "--keep-data")
    run("remove", world.network_id, "--delete-data")
    assert not any(indexed(world.network_id).values())
    assert not ContractEvent.objects.exists()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("choice", ["--keep-data", "--delete-data"])
def test_a_reader_that_was_in_the_middle_of_it_stores_nothing(world: Network, choice: str) -> None:
    before = indexed(world.network_id)
    world.mint(1)
    removed = []

    def remove() -> None:
        try:
            removed.append(run("remove", world.network_id, choice))
        finally:
            connections.close_all()  # of the proxy's thread

    world.proxy.on("eth_getLogs", after(remove), times=1)
    world.follow()
    assert len(removed) == 1
    rows = indexed(world.network_id)
    if choice == "--keep-data":
        assert rows == before
    else:
        assert not any(rows.values())
    assert not Blockchain.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_backfill_that_was_in_the_middle_of_it_stores_nothing(node: Node) -> None:
    with network_of(node) as world:
        for _ in range(3):
            world.mint(2)
        node.mine(100)
        listen(world)
        world.follow()
        assert Backfill.objects.filter(done_at=None).exists()

        def remove() -> None:
            try:
                run("remove", world.network_id, "--delete-data")
            finally:
                connections.close_all()

        world.proxy.on("eth_getLogs", after(remove), times=1)
        backfill.advance(world.network_id)
        assert not Blockchain.objects.exists()
        assert not any(indexed(world.network_id).values())


def test_the_first_block_of_a_network_that_was_removed_is_not_stored(node: Node) -> None:
    run("add", node.chain_id, "--rpc-endpoint", node.url)
    position.make(node.chain_id)
    at = position.read(node.chain_id)
    assert at is not None
    run("remove", node.chain_id)
    header = Header(**{**dict.fromkeys(Header.__struct_fields__, "0x0")})
    with pytest.raises(Elsewhere):
        commits.begin(at, header, 0, indexer.Heights(0, 0))
    assert not any(indexed(node.chain_id).values())


def test_removing_is_the_same_over_rest_as_keeping_the_data(world: Network) -> None:
    before = indexed(world.network_id)
    row = Blockchain.objects.get()
    assert Api(MASTER).delete(f"/classes/Blockchain/{row.object_id}").status == 200
    assert indexed(world.network_id) == before
    assert configuration.stored(world.network_id).events == 3
