"""A new head wakes the polling, and nothing is lost when it doesn't."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from time import monotonic, sleep

import pytest

from chain.indexing import head as following
from chain.indexing.schedule import wakeups
from chain.indexing.schedule.wakeups import Waker
from chain.models import Cursor
from chain.rpc.endpoints import seal, socket_urls
from chain.rpc.subscriptions import Subscriptions
from tests.chain.rpc.networks import network, provider
from tests.evm.node import Node
from tests.evm.proxy import Proxy, proxied


def until(condition: Callable[[], object], seconds: float = 15) -> None:
    """Wait for something that another thread does."""
    end = monotonic() + seconds
    while not condition():
        assert monotonic() < end, "it has not happened"
        sleep(0.005)


class Heads:
    """What was heard."""

    def __init__(self) -> None:
        self.count = 0
        self.ended = 0
        self.networks: set[int] = set()
        self.heights: list[int | None] = []

    def opened(self, network_id: int) -> None:
        self.count += 1
        self.networks.add(network_id)

    def announced(self, network_id: int, height: int | None) -> None:
        self.count += 1
        self.heights.append(height)

    def closed(self, network_id: int) -> None:
        self.ended += 1


@pytest.fixture
def proxy(node: Node) -> Iterator[Proxy]:
    with proxied(node) as proxy:
        yield proxy


@pytest.fixture
def heads() -> Heads:
    return Heads()


@pytest.fixture
def listen(heads: Heads) -> Iterator[Callable[..., Subscriptions]]:
    started: list[Subscriptions] = []

    def listening(urls: dict[int, str], **options: float) -> Subscriptions:
        options = {"look_every": 0.02, **options}
        subscriptions = Subscriptions(lambda: dict(urls), heads, **options)
        subscriptions.start()
        started.append(subscriptions)
        return subscriptions

    yield listening
    for item in started:
        item.stop()


def test_a_new_block_is_heard_at_once(proxy: Proxy, node: Node, heads: Heads, listen) -> None:
    listen({31337: proxy.socket_url})
    until(lambda: heads.count == 1)  # the subscription itself
    began = monotonic()
    node.mine()
    until(lambda: heads.count == 2)
    assert monotonic() - began < 10
    assert heads.networks == {31337}


def test_a_closed_socket_is_opened_again(proxy: Proxy, node: Node, heads: Heads, listen) -> None:
    listen({31337: proxy.socket_url})
    until(lambda: heads.count == 1)
    proxy.socket.close_all()
    until(lambda: proxy.socket.opened == 2 and heads.count == 2)
    node.mine()
    until(lambda: heads.count == 3)


def test_a_socket_that_says_nothing_is_opened_again(
    proxy: Proxy, node: Node, heads: Heads, listen
) -> None:
    listen({31337: proxy.socket_url}, quiet=0.3)
    until(lambda: heads.count == 1)
    proxy.socket.fall_silent()
    until(lambda: proxy.socket.opened >= 2)
    proxy.socket.be_good()
    before = heads.count
    until(lambda: heads.count > before)


def test_a_node_without_subscriptions_is_queried_now_and_then(
    proxy: Proxy, heads: Heads, listen
) -> None:
    error = {"code": -32601, "message": "method not found"}
    proxy.socket.alter(lambda message: {"jsonrpc": "2.0", "id": message.get("id"), "error": error})
    listen({31337: proxy.socket_url})
    until(lambda: proxy.socket.opened >= 2)
    assert heads.count == 0


def test_a_head_comes_with_its_height(proxy: Proxy, node: Node, heads: Heads, listen) -> None:
    listen({31337: proxy.socket_url})
    until(lambda: heads.count == 1)
    head = node.mine()
    until(lambda: heads.heights == [head])
    proxy.socket.close_all()
    until(lambda: heads.ended == 1)


@pytest.mark.parametrize(
    "params",
    [
        None,
        5,
        [],
        {"result": None},
        {"result": {}},
        {"result": {"number": 7}},
        {"result": {"number": "7"}},
        {"result": {"number": "0x" + "f" * 100}},
        {"result": {"number": "-0x1"}},
    ],
)
def test_a_head_without_a_height_is_heard_as_one(
    proxy: Proxy, heads: Heads, listen, params: object
) -> None:
    listen({31337: proxy.socket_url})
    until(lambda: heads.count == 1)
    proxy.socket.tell({"jsonrpc": "2.0", "method": "eth_subscription", "params": params})
    until(lambda: heads.heights == [None])
    assert heads.ended == 0


@pytest.mark.parametrize(
    "message",
    [
        {"id": 1, "result": "0x1"},
        {"id": "1", "result": "0x1"},
        {"method": "eth_subscription", "params": {"subscription": "0xbad", "result": {}}},
    ],
)
def test_a_message_that_belongs_to_another_subscription_ends_the_socket(
    proxy: Proxy, heads: Heads, listen, message: dict[str, object]
) -> None:
    listen({31337: proxy.socket_url})
    until(lambda: heads.count == 1)
    proxy.socket.tell({"jsonrpc": "2.0", **message})
    until(lambda: proxy.socket.opened == 2 and heads.count == 2)
    assert (heads.ended, heads.heights) == (1, [])


def test_a_second_reply_ends_the_socket(proxy: Proxy, heads: Heads, listen) -> None:
    replies: list[dict[str, object]] = []

    def noted(message: dict[str, object]) -> dict[str, object]:
        if "id" in message:
            replies.append(message)
        return message

    proxy.socket.alter(noted)
    listen({31337: proxy.socket_url})
    until(lambda: heads.count == 1)
    proxy.socket.tell(replies[0])
    until(lambda: proxy.socket.opened == 2 and heads.count == 2)


def test_a_network_that_is_gone_has_no_subscription(proxy: Proxy, heads: Heads, listen) -> None:
    urls = {31337: proxy.socket_url}
    listen(urls)
    until(lambda: heads.count == 1)
    urls.clear()
    until(lambda: heads.ended == 1)


@pytest.mark.parametrize("message", ["no JSON", "[]", '{"method": 5}', '"text"', "null"])
def test_nonsense_ends_nothing(
    proxy: Proxy, node: Node, heads: Heads, listen, message: str
) -> None:
    listen({31337: proxy.socket_url})
    until(lambda: heads.count == 1)
    proxy.socket.tell(message)
    node.mine()
    until(lambda: heads.count == 2)
    assert proxy.socket.opened == 1


def test_networks_come_and_go(proxy: Proxy, heads: Heads, listen) -> None:
    urls = {1: "ws://127.0.0.1:9"}
    listen(urls)
    urls[2] = proxy.socket_url
    until(lambda: heads.networks == {2})
    del urls[2]
    until(lambda: proxy.socket.clients == 0)
    urls[3] = proxy.socket_url
    until(lambda: heads.networks == {2, 3})


def test_an_address_that_is_none_harms_no_other_network(proxy: Proxy, heads: Heads, listen) -> None:
    listen({1: "http://[", 2: "ws://", 3: "nonsense", 4: proxy.socket_url})
    until(lambda: heads.networks == {4})


def test_what_runs_goes_on_while_the_database_is_away(
    proxy: Proxy, node: Node, heads: Heads
) -> None:
    answers = iter([{7: proxy.socket_url}])

    def urls() -> dict[int, str]:
        for answer in answers:
            return answer
        raise OSError("the database is away")

    subscriptions = Subscriptions(urls, heads, look_every=0.01)
    subscriptions.start()
    try:
        until(lambda: heads.count == 1)
        node.mine()
        until(lambda: heads.count == 2)
        assert proxy.socket.clients == 1
    finally:
        subscriptions.stop()


def test_stopping_ends_the_connection(proxy: Proxy, heads: Heads, listen) -> None:
    subscriptions = listen({1: proxy.socket_url})
    until(lambda: heads.count == 1)
    subscriptions.stop()
    until(lambda: proxy.socket.clients == 0)
    assert not [thread for thread in threading.enumerate() if thread.name == "chain-heads"]


def test_a_network_is_worked_on_once_at_a_time_and_once_more_when_woken() -> None:
    began, go, done = threading.Semaphore(0), threading.Semaphore(0), []

    def work(network_id: int) -> None:
        began.release()
        assert go.acquire(timeout=15)
        done.append(network_id)

    waker = Waker(work, threads=4)
    try:
        waker.wake(1)
        assert began.acquire(timeout=15)
        for _ in range(1000):
            waker.wake(1)
        go.release()
        assert began.acquire(timeout=15)  # once more, for all of them
        go.release()
        until(lambda: done == [1, 1])
        until(lambda: not waker._busy)
        assert not began.acquire(timeout=0.05)
    finally:
        waker.stop()


def test_a_step_that_fails_is_logged_and_the_next_is_taken() -> None:
    done: list[int] = []

    def work(network_id: int) -> None:
        done.append(network_id)
        if len(done) == 1:
            raise ValueError("once")

    waker = Waker(work, threads=1)
    try:
        waker.wake(1)
        until(lambda: not waker._busy)
        waker.wake(1)
        until(lambda: done == [1, 1])
    finally:
        waker.stop()


@pytest.mark.django_db
def test_a_provider_s_socket_comes_before_the_public_one() -> None:
    network(1, wss_endpoint="wss://public.example/1")
    network(2, wss_endpoint="wss://public.example/2")
    network(3)
    network(4, wss_endpoint="wss://public.example/4", active=False)
    sealed = {name: seal(f"wss://{name}.example/") for name in ("light", "heavy", "off")}
    provider("https://a.example/", "a", 2, weight=1, socket_url=sealed["light"])
    provider("https://a.example/", "b", 2, weight=9, socket_url=sealed["heavy"])
    provider("https://a.example/", "c", 2, weight=99, socket_url=sealed["off"], active=False)
    provider("https://a.example/", "d", 2, weight=99)
    assert socket_urls() == {1: "wss://public.example/1", 2: "wss://heavy.example/"}


def read_up_to() -> int | None:
    return Cursor.objects.values_list("number", flat=True).first()


@pytest.mark.django_db(transaction=True)
def test_a_block_is_read_when_its_head_is_heard(proxy: Proxy, node: Node) -> None:
    network(rpc_endpoint=proxy.url, wss_endpoint=proxy.socket_url)
    Cursor.objects.create(network_id=31337)
    wakeups.begin()
    try:
        until(lambda: read_up_to() == node.head)
        for _ in range(3):
            head = node.mine()
            until(lambda head=head: read_up_to() == head)

        # A subscription that is dead and doesn't say so: the next look is the poll's.
        proxy.socket.fall_silent()
        head = node.mine()
        until(lambda: following.follow(31337) or read_up_to() == head)
    finally:
        wakeups.end()
    assert not [thread for thread in threading.enumerate() if thread.name == "chain-heads"]
