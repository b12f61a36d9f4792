"""How a provider's health is judged, and what others see of it."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from time import monotonic

import pytest
from django.db import connection, transaction

from chain import rpc
from chain.models import Provider
from chain.rpc import pool
from chain.rpc.client.health import FAILURE_PAUSE, Health
from tests.chain.rpc.networks import network, provider, proxies
from tests.evm import faults
from tests.evm.node import Node
from tests.evm.proxy import proxied

ID = 31337


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def health(clock: Clock) -> Health:
    return Health(clock)


def test_three_failures_in_a_row_are_a_minute_s_pause(health: Health, clock: Clock) -> None:
    for _ in range(2):
        health.failed("no answer")
        assert not health.is_paused
    health.answered(0.1)
    for _ in range(3):
        health.failed("no answer")
    assert health.is_paused
    clock.now += FAILURE_PAUSE - 1
    assert health.is_paused
    clock.now += 2
    assert not health.is_paused


def test_a_provider_that_refuses_what_others_answer_comes_after_them(
    health: Health, clock: Clock
) -> None:
    pauses = []
    for _ in range(9):
        for _ in range(2 if not pauses else 0):
            health.refused("refuses eth_getLogs")
            assert not health.is_avoided
        health.refused("refuses eth_getLogs")
        health.answered(0.1)  # other requests
        began = clock.now
        while health.is_avoided:
            clock.now += 1
        pauses.append(clock.now - began)
        assert not health.is_paused
    assert pauses[:5] == [60, 120, 240, 480, 600]
    assert pauses[-1] == 600
    assert health.trouble == "refuses eth_getLogs"


def test_refusals_that_are_far_apart_say_nothing(health: Health, clock: Clock) -> None:
    for _ in range(10):
        health.refused("refuses eth_getLogs")
        assert not health.is_avoided
        clock.now += FAILURE_PAUSE + 1


def test_pauses_for_the_rate_grow_up_to_five_seconds(health: Health, clock: Clock) -> None:
    pauses = []
    for _ in range(10):
        health.slowed("HTTP 429", None)
        pauses.append(health.pause_left())
        clock.now += pauses[-1]
    assert 0.05 <= pauses[0] <= 0.15
    assert all(pause <= 6.25 for pause in pauses)
    assert pauses[-1] > 3
    health.answered(0.1)
    health.slowed("HTTP 429", None)
    assert health.pause_left() <= 0.15


def test_no_provider_is_left_alone_for_hours(health: Health) -> None:
    health.slowed("HTTP 429", 86_400)
    assert health.pause_left() == 300


def test_latency_is_a_moving_average(health: Health) -> None:
    health.answered(0.1)
    assert health.latency == pytest.approx(100)
    health.answered(0.2)
    assert health.latency == pytest.approx(120)


def test_an_old_trouble_is_forgotten(health: Health, clock: Clock) -> None:
    health.failed("no answer")
    health.answered(0.1)
    assert health.trouble == "no answer"
    clock.now += 3600
    health.answered(0.1)
    assert health.trouble is None


def test_only_one_looks_whether_a_dead_provider_is_back(health: Health, clock: Clock) -> None:
    health.failed("HTTP 401", for_good=True)
    assert not health.probe()
    clock.now += 5
    assert [health.probe(), health.probe()] == [True, False]
    clock.now += 5
    assert health.probe()


def test_a_provider_that_stays_dead_is_looked_at_less_often(health: Health, clock: Clock) -> None:
    for _ in range(3):
        health.failed("no answer")
    began, looked = clock.now, 0
    while clock.now < began + 100:
        clock.now += 1
        if health.probe():
            looked += 1
            health.failed("no answer")
    assert looked == 8  # after 3, 9, 21, and then every 15 seconds


def test_a_requested_pause_is_not_cut_short_by_looking(health: Health, clock: Clock) -> None:
    health.slowed("HTTP 429", 30)
    clock.now += 10
    assert not health.probe()


def head(node: rpc.Node) -> str:
    assert node.header("latest") is not None
    return node.provider


@pytest.mark.django_db
def test_health_is_written_to_the_row_and_not_too_often(
    node: Node, django_assert_max_num_queries
) -> None:
    network()
    provider(node.url)
    rpc.attempt(ID, head)
    row = Provider.objects.get()
    assert (row.head, row.failures, row.trouble) == (node.head, 0, None)
    assert row.latency is not None
    assert row.checked_at is not None
    with django_assert_max_num_queries(20):  # one for each to read the rows
        for _ in range(20):
            rpc.attempt(ID, head)


@pytest.mark.django_db
def test_another_process_learns_of_a_pause_from_the_row(node: Node) -> None:
    network()
    with ExitStack() as stack:
        first, _ = proxies(stack, node, "first", "second")
        first.refuse()
        for _ in range(4):
            assert rpc.attempt(ID, head) == "second"
            pool.pool_of(ID)._kept = None
        assert Provider.objects.get(name="first").paused_until is not None

        pool.forget()  # as a process that begins now
        first.accept()
        first.forget_counts()
        rpc.attempt(ID, head)
        assert first.requests == 0


@pytest.mark.django_db
def test_health_of_endpoints_without_a_row_is_known_to_all_processes(node: Node, settings) -> None:
    with proxied(node) as own:
        network(rpc_endpoint="http://127.0.0.1:9")
        settings.SERVICE = {**settings.SERVICE, "RPC_URLS": {ID: ((own.url, 5),)}}
        rpc.attempt(ID, head)
        pool.forget()
        providers = rpc.health(ID)
        assert [(item.name, item.source, item.weight) for item in providers] == [
            ("setting 1", "setting", 5)
        ]
        assert (providers[0].head, providers[0].lag) == (node.head, 0)
        assert providers[0].checked_at is not None


@pytest.mark.django_db(transaction=True)
def test_no_one_waits_for_the_lock_of_the_row(node: Node) -> None:
    network()
    provider(node.url)
    locked, done = threading.Event(), threading.Event()

    def hold() -> None:
        try:
            with transaction.atomic():
                Provider.objects.select_for_update().get()
                locked.set()
                done.wait(30)
        finally:
            connection.close()

    holder = threading.Thread(target=hold)
    holder.start()
    try:
        assert locked.wait(30)
        began = monotonic()
        assert rpc.attempt(ID, head) == "first"
        assert monotonic() - began < 5
    finally:
        done.set()
        holder.join(30)
    assert Provider.objects.get().checked_at is None


@pytest.mark.django_db
def test_health_says_nothing_of_a_network_without_endpoints() -> None:
    assert rpc.health(5) == []


@pytest.mark.django_db
def test_a_network_s_health_without_redis_is_what_the_process_knows(node: Node, settings) -> None:
    network(rpc_endpoint=node.url)
    settings.REDIS_URL = "redis://127.0.0.1:9/0"
    assert rpc.attempt(ID, head) == "public"
    assert rpc.health(ID)[0].head == node.head


@pytest.mark.django_db
def test_faults_count_until_an_answer_comes(node: Node) -> None:
    network()
    with proxied(node) as proxy:
        provider(proxy.url)
        rpc.attempt(ID, head)
        proxy.on_request(faults.server_error(500), times=1)
        rpc.attempt(ID, head)
        providers = rpc.health(ID)[0]
        assert (providers.failures, providers.trouble) == (0, "HTTP 500")


def test_what_another_process_has_found_out_is_learned_and_forgotten(
    health: Health, clock: Clock
) -> None:
    health.answered(0.1)
    health.learn(clock.now + 60, clock.now - 5)  # older than what is known here
    assert not health.is_paused
    health.learn(clock.now + 60, clock.now + 1)
    assert health.is_paused
    health.learn(0.0, clock.now + 2)
    assert not health.is_paused


def test_what_a_process_has_found_out_itself_is_not_taken_back(
    health: Health, clock: Clock
) -> None:
    for _ in range(3):
        health.failed("no answer")
    health.learn(0.0, clock.now + 2)
    assert health.is_paused
