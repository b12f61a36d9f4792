"""The lag of a network is true while no provider answers, and unknown where it isn't known."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.utils import timezone

from backend.site.staff import VIEWERS
from chain import doctor, rpc
from chain.models import Blockchain, Cursor, Provider
from chain.networks import status
from chain.networks.lag import UNKNOWN, lags
from chain.networks.metrics import ChainCollector
from chain.rpc import pool
from objects.database import maintenance
from tests.chain.indexed_network import Network, listen, network
from tests.chain.rpc.networks import network as network_without_blocks
from tests.chain.rpc.networks import provider
from tests.chromium import NEEDS_CHROMIUM, browser
from tests.evm import faults
from tests.evm.node import Node
from tests.objects.admin.browser import look, staff_page
from tests.objects.admin.staff import logged_in

pytestmark = pytest.mark.django_db

OUTAGE = 600.0
"""Seconds."""


@pytest.fixture
def world(node: Node) -> Iterator[Network]:
    """A network that has been read up to its head."""
    node.mine(3)
    with network(node, name="Local") as world:
        listen(world)
        world.follow()
        node.mine(2)
        world.follow()
        world.check()
        yield world


def let_pass(seconds: float) -> None:
    """Move the last poll of every network back."""
    for cursor in Cursor.objects.filter(looked_at__isnull=False):
        assert cursor.looked_at is not None
        Cursor.objects.filter(pk=cursor.pk).update(
            looked_at=cursor.looked_at - timedelta(seconds=seconds)
        )


def go_down(world: Network) -> None:
    """The only provider stops answering, while the chain grows; ten minutes later."""
    world.proxy.refuse()
    world.node.mine(5)
    world.follow()
    let_pass(OUTAGE)
    world.follow()


def metric(name: str, network_id: int) -> float | None:
    """The value of a gauge of this network, None if it has no sample."""
    for family in ChainCollector().collect():
        for sample in family.samples:
            is_wanted = sample.labels.get("network") == str(network_id)
            if sample.name == f"svc_chain_{name}" and is_wanted:
                return sample.value
    return None


def described(network_id: int) -> dict[str, Any]:
    out = StringIO()
    call_command("chain_status", str(network_id), "--json", stdout=out)
    [row] = json.loads(out.getvalue())["networks"]
    assert isinstance(row, dict)
    return row


def text_of(network_id: int) -> str:
    out = StringIO()
    call_command("chain_status", str(network_id), stdout=out)
    return out.getvalue()


def findings() -> list[tuple[str, str]]:
    return [
        (followed_chain.level, followed_chain.text) for followed_chain in doctor.indexed_networks()
    ][1:]


def cells() -> list[str]:
    """The cells of the first network in the admin: head, read up to, behind, …, last poll."""
    page = logged_in(VIEWERS).get("/admin/networks/").text
    row = page.split("<tbody><tr>")[1].split("</tr>")[0]
    return [cell.split(">", 1)[1].split("</td>")[0] for cell in row.split("<td ")[1:]]


# -- What a successful poll is ---------------------------------------------------------------------


def test_a_poll_that_finds_nothing_new_is_a_successful_one(world: Network) -> None:
    let_pass(OUTAGE)
    world.follow()
    lag = lags()[world.network_id]
    assert lag.blocks == 0
    assert lag.seconds is not None
    assert lag.seconds < OUTAGE


@pytest.mark.parametrize("fault", ["refused", "no newest block", "no block", "an error"])
def test_a_poll_without_a_usable_newest_block_is_no_successful_one(
    world: Network, fault: str
) -> None:
    let_pass(OUTAGE)
    if fault == "refused":
        world.proxy.refuse()
    else:
        answer = {
            "no newest block": faults.gives(None),
            "no block": faults.gives({"number": "0xlatest"}),
            "an error": faults.fails(-32000, "internal error"),
        }[fault]
        world.proxy.on("eth_getBlockByNumber", answer)
    cursor = world.follow()
    assert cursor.trouble
    seconds = lags()[world.network_id].seconds
    assert seconds is not None
    assert seconds >= OUTAGE


def test_a_node_that_is_behind_does_not_tell_the_head(world: Network) -> None:
    faults.stay_at(world.proxy, world.node.head - 2)
    let_pass(OUTAGE)
    assert "behind" in str(world.follow().trouble)
    lag = lags()[world.network_id]
    assert lag.blocks is None
    assert lag.seconds is not None
    assert lag.seconds >= OUTAGE
    world.proxy.be_good()
    assert world.follow().trouble is None
    assert lags()[world.network_id].blocks == 0


def test_the_head_is_current_for_three_polling_intervals(world: Network) -> None:
    let_pass(OUTAGE)
    assert lags()[world.network_id].blocks is None
    Blockchain.objects.update(poll_interval=300_000)
    assert lags()[world.network_id].blocks == 0
    let_pass(OUTAGE)
    assert lags()[world.network_id].blocks is None


def test_blocks_behind_are_unknown_without_a_head_or_a_cursor(world: Network) -> None:
    for column in ("head", "number"):
        Cursor.objects.update(looked_at=timezone.now(), **{column: None})
        assert lags()[world.network_id].blocks is None
    Cursor.objects.all().delete()
    assert lags() == {}
    assert status.networks()[0]["lagSeconds"] is None


# -- Where it is shown -----------------------------------------------------------------------------


def test_a_network_whose_provider_answers_has_its_lag_everywhere(world: Network) -> None:
    network_id = world.network_id
    Cursor.objects.update(head=world.node.head + 3)
    assert metric("lag_blocks", network_id) == 3
    seconds = metric("lag_seconds", network_id)
    assert seconds is not None
    assert seconds < 60
    row = described(network_id)
    assert row["lag"] == 3
    assert 0 <= row["lagSeconds"] < 60
    assert "3 blocks behind" in text_of(network_id)
    [(level, finding)] = findings()
    assert level == "ok"
    assert finding.startswith("Local (31337): 3 blocks behind, last poll ")
    shown = cells()
    assert shown[2] == "3"
    assert shown[5].endswith(" s ago")


def test_ten_minutes_without_an_answer_are_ten_minutes_of_lag_everywhere(world: Network) -> None:
    network_id = world.network_id
    go_down(world)
    assert metric("lag_blocks", network_id) is None
    for name in ("lag_seconds", "look_age_seconds"):
        seconds = metric(name, network_id)
        assert seconds is not None
        assert OUTAGE <= seconds < OUTAGE + 60
    row = described(network_id)
    assert row["lag"] is None
    assert OUTAGE <= row["lagSeconds"] < OUTAGE + 60
    text = text_of(network_id)
    assert "lag unknown" in text
    assert "head and lag are unknown since then" in text
    assert "0 blocks behind" not in text
    [(level, finding)] = findings()
    assert level == "fail"
    assert finding.startswith("Local (31337): lag unknown, no successful poll for 60")
    shown = cells()
    assert shown[2] == "unknown"
    assert shown[5].startswith("60")


def test_the_lag_is_known_again_after_the_outage(world: Network) -> None:
    go_down(world)
    world.proxy.accept()
    pool.forget()
    world.follow()
    world.check()
    assert described(world.network_id)["lag"] == 0
    assert metric("lag_blocks", world.network_id) == 0
    assert [level for level, _ in findings()] == ["ok"]


@pytest.mark.parametrize("has_cursor", [False, True])
def test_a_network_that_was_never_polled_has_an_unknown_lag_everywhere(has_cursor: bool) -> None:
    network_without_blocks(5, name="New", rpc_endpoint="http://127.0.0.1:9/")
    if has_cursor:
        Cursor.objects.create(network_id=5)
    for name in ("lag_blocks", "lag_seconds", "look_age_seconds", "head_block"):
        assert metric(name, 5) is None
    row = described(5)
    assert (row["lag"], row["lagSeconds"], row["head"]) == (None, None, None)
    assert "last poll   unknown" in text_of(5)
    assert findings() == [("warn", "New (5): lag unknown, no successful poll yet.")]
    shown = cells()
    assert [shown[place] for place in (0, 2, 3, 4, 5)] == ["unknown"] * 5
    assert lags().get(5, UNKNOWN) == UNKNOWN


def test_a_halted_network_is_a_failure_of_its_own(world: Network) -> None:
    Cursor.objects.update(halted="another chain")
    let_pass(OUTAGE)
    assert findings() == []
    assert described(world.network_id)["lag"] is None


def test_a_network_that_is_not_active_is_no_failure(world: Network) -> None:
    Blockchain.objects.update(active=False)
    let_pass(OUTAGE)
    assert findings() == []
    assert described(world.network_id)["lag"] is None


def test_a_provider_that_does_not_answer_has_an_unknown_lag(world: Network) -> None:
    network_id = world.network_id
    [public] = rpc.health(network_id)
    assert (public.lag, public.head) == (0, world.node.head)
    go_down(world)
    [public] = rpc.health(network_id)
    assert public.failures > 0
    assert public.lag is None
    assert [item["lag"] for item in described(network_id)["providers"]] == [None]


def test_a_provider_that_was_not_queried_for_a_minute_has_an_unknown_lag() -> None:
    network_without_blocks(5)
    recent = provider("http://127.0.0.1:9/", "recent", 5)
    old = provider("http://127.0.0.1:9/", "old", 5)
    now = timezone.now()
    Provider.objects.filter(pk=recent.pk).update(head=90, checked_at=now)
    Provider.objects.filter(pk=old.pk).update(head=100, checked_at=now - timedelta(minutes=2))
    assert {item.name: item.lag for item in rpc.health(5)} == {"recent": 0, "old": None}


@pytest.mark.slow
@NEEDS_CHROMIUM
@pytest.mark.django_db(transaction=True)
def test_the_admin_shows_each_state_in_a_browser(node: Node, live_server: Any) -> None:
    root = User.objects.create_superuser("root")
    network_without_blocks(7, name="Never polled", rpc_endpoint="http://127.0.0.1:9/")
    with network(node, name="Local") as world, browser() as chromium:
        world.follow()
        with staff_page(chromium, live_server.url, root) as page:
            page.goto("/admin/networks/")
            look(page, "networks-healthy")
            never = page.get_by_role("region", name="Never polled (7)")
            local = page.get_by_role("region", name="Local (31337)")
            assert "No successful poll yet." in never.inner_text()
            assert "unknown" not in local.inner_text()
            go_down(world)
            page.goto("/admin/networks/")
            look(page, "networks-provider-down")
            assert "No successful poll for 60" in local.inner_text()
            assert local.get_by_role("cell", name="unknown").count() == 1


def test_a_paused_chain_is_named_by_doctor_instead_of_each_lag(world: Network) -> None:
    let_pass(OUTAGE)
    maintenance.on(pause_chain=True)
    assert [level for level, _ in findings()] == ["warn"]
