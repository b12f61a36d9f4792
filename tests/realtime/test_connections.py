"""One client's connection: what it may send, what it receives, and how it ends."""

from __future__ import annotations

import asyncio

import pytest
from django.test import override_settings

from realtime.process.process import Process
from tests.realtime.in_process import Client, Echo, eventually, run
from tests.settings import SERVICE


@pytest.fixture(autouse=True)
def no_sockets() -> None:
    Echo.opened.clear()
    Echo.closed.clear()


def limits(**values: object) -> override_settings:
    return override_settings(SERVICE={**SERVICE, **values})


def test_texts_are_received_and_sent_in_order():
    async def scenario() -> None:
        client = await Client().open()
        await client.send_messages("one", "zwei - ü", "three")
        assert [await client.next_text() for _ in range(3)] == ["one", "zwei - ü", "three"]
        Echo.opened[0].enqueue("über".encode())
        assert await client.next_text() == "über"
        await client.leave()
        assert Echo.closed == Echo.opened

    run(scenario())


@pytest.mark.parametrize(
    ("messages", "answer"),
    [
        ("ping", "pong"),
        ('{"event":"ping"}', '{"event":"pong"}'),
        (' { "event" : "ping" } ', '{"event":"pong"}'),
        ('{"event":"ping","more":1}', '{"event":"ping","more":1}'),
        ('["ping"]', '["ping"]'),
        ('{"ping"', '{"ping"'),
        ("[" * 40 + '"ping"', "[" * 40 + '"ping"'),
    ],
)
def test_only_a_ping_is_answered_with_a_pong(messages, answer):
    async def scenario() -> None:
        client = await Client().open()
        await client.send_messages(messages)
        assert await client.next_text() == answer
        await client.leave()

    run(scenario())


@pytest.mark.parametrize(
    ("budget", "kind"),
    [(3, "junk"), (3, b"binary"), (3, b""), (2, b"x" * 2048)],
    ids=["nonsense", "binary", "empty binary", "large"],
)
def test_invalid_messages_are_ignored_until_their_budget_is_used_up(budget, kind):
    async def scenario() -> None:
        client = await Client().open()
        if kind != b"x" * 2048:
            await client.send_messages(*[kind] * budget, "still here")
            assert await client.next_text() == "still here"
        await client.send_messages(kind)
        assert await client.close_code() == 1008

    with limits(WS_JUNK_PER_MINUTE=budget):
        run(scenario())


def test_pings_and_messages_have_a_rate_limit():
    async def scenario() -> None:
        client = await Client().open()
        await client.send_messages(*["ping"] * 5)
        assert [await client.next_text() for _ in range(5)] == ["pong"] * 5
        await client.send_messages("ping")
        assert await client.close_code() == 1008

    with limits(WS_MESSAGES_PER_MINUTE=5):
        run(scenario())


def test_a_message_above_the_size_limit_closes_the_connection():
    async def scenario() -> None:
        client = await Client().open()
        await client.send_messages("x" * 2000)
        assert await client.next_text() == "x" * 2000
        await client.send_messages("x" * 2001)
        assert await client.close_code() == 1009

    with limits(WS_MESSAGE_SIZE=2000):
        run(scenario())


def test_after_a_close_only_queued_frames_are_sent():
    async def scenario() -> None:
        client = await Client().open()
        await client.send_messages("bye", "more")
        assert await client.next_text() == "the last"
        assert await client.close_code() == 4001
        assert await client.receive_nothing()
        assert len(Echo.closed) == 1

    run(scenario())


class Waiting(Echo):
    """Answers nothing before it is let."""

    started: list[str] = []
    let: asyncio.Event

    async def on_message(self, text: str) -> None:
        Waiting.started.append(text)
        await Waiting.let.wait()
        self.enqueue(text)


@pytest.fixture
def nothing_started() -> None:
    Waiting.started.clear()
    Waiting.let = asyncio.Event()


def test_pending_messages_are_dropped_when_the_client_disconnects(nothing_started):
    async def scenario() -> None:
        client = await Client(kind=Waiting).open()
        await client.send_messages(*map(str, range(300)))
        await eventually(lambda: Process.current().pending_messages.total)
        await client.send_input({"type": "websocket.disconnect", "code": 1006})
        await eventually(lambda: Echo.closed)
        Waiting.let.set()
        await client.wait(5)
        assert Waiting.started == ["0"]
        assert Process.current().pending_messages.total == 0
        assert Process.current().admission.total == 0

    run(scenario())


def test_a_connection_counts_until_its_requests_are_finished(nothing_started):
    async def scenario() -> None:
        client = await Client(kind=Waiting).open()
        await client.send_messages("one")
        await eventually(lambda: Waiting.started)
        await client.send_input({"type": "websocket.disconnect", "code": 1006})
        await eventually(lambda: Echo.closed)
        assert Process.current().admission.total == 1
        Waiting.let.set()
        await client.wait(5)
        assert Process.current().admission.total == 0

    run(scenario())


def test_too_many_pending_messages_close_the_connection(nothing_started):
    async def scenario() -> None:
        client = await Client(kind=Waiting).open()
        await client.send_messages("x" * 2000, *["x" * 2000] * 8)
        await eventually(lambda: Process.current().pending_messages.total > 8 * 2000)
        await client.send_messages("x" * 2000)
        message = await client.receive_output(5)
        assert (message["type"], message["code"]) == ("websocket.close", 1008)
        Waiting.let.set()
        await client.leave(1008)
        assert Waiting.started == ["x" * 2000]
        assert Process.current().pending_messages.total == 0

    with limits(WS_MESSAGE_SIZE=2000):
        run(scenario())


def test_pending_messages_of_one_address_are_limited_separately(nothing_started):
    async def scenario() -> None:
        crowd = [await Client(kind=Waiting, peer=("192.0.2.1", 1)).open() for _ in range(6)]
        for item in crowd:
            await item.send_messages(*["x" * 250_000] * 9)
        for item in crowd[4:]:
            assert (await item.receive_output(5))["code"] == 1013
        Waiting.let.set()
        other = await Client(kind=Waiting, peer=("192.0.2.2", 1)).open()
        await other.send_messages("one", "two")
        assert [await other.next_text() for _ in range(2)] == ["one", "two"]
        for item in (*crowd, other):
            await item.leave()
        assert Process.current().pending_messages.total == 0

    run(scenario())


def test_a_memory_error_closes_the_connection_without_a_traceback(caplog):
    class Full(Echo):
        async def on_message(self, text: str) -> None:
            raise MemoryError

    async def scenario() -> None:
        client = await Client(kind=Full).open()
        await client.send_messages("one")
        assert await client.close_code() == 1013

    run(scenario())
    assert not any(record.exc_info for record in caplog.records)


def test_a_close_reason_is_cut_to_the_size_of_a_close_frame():
    async def scenario() -> None:
        client = await Client().open()
        Echo.opened[0].close_with(1008, "ü" * 200)
        message = await client.receive_output(5)
        assert message["reason"] == "ü" * 60
        await client.leave(1008)

    run(scenario())


def test_an_internal_error_closes_only_its_connection():
    async def scenario() -> None:
        client, other = await Client().open(), await Client().open()
        await client.send_messages("fail")
        assert await client.close_code() == 1011
        await other.send_messages("still here")
        assert await other.next_text() == "still here"
        await other.leave()
        assert len(Echo.closed) == 2

    run(scenario())


def test_a_slow_reader_is_closed_and_others_are_not_delayed():
    async def scenario() -> None:
        may_read = asyncio.Event()
        sent: list[dict[str, object]] = []
        messages: asyncio.Queue[dict[str, object]] = asyncio.Queue()
        messages.put_nowait({"type": "websocket.connect"})

        async def send(message: dict[str, object]) -> None:
            if message["type"] != "websocket.accept":
                await may_read.wait()
            sent.append(message)

        scope = {"type": "websocket", "path": "/echo", "headers": [], "query_string": b""}
        slow = asyncio.create_task(Echo.as_asgi()(scope, messages.get, send))
        await eventually(lambda: Echo.opened)
        fast = await Client().open()
        frame = "x" * 10_000
        for _ in range(12):
            for socket in tuple(Process.current().sockets):
                socket.enqueue(frame)
            assert await fast.next_text() == frame
        assert not Echo.opened[0].is_open
        assert Echo.opened[1].is_open
        assert Process.current().closed == {1013: 1}
        may_read.set()
        await eventually(lambda: sent[-1]["type"] == "websocket.close")
        assert sent[-1]["code"] == 1013
        # What was queued before is sent, and nothing after it.
        assert len(sent) == 1 + 11 + 1
        messages.put_nowait({"type": "websocket.disconnect", "code": 1013})
        await slow
        await fast.leave()

    with limits(WS_SEND_QUEUE=100_000):
        run(scenario())


def test_drain_waits_until_queued_pages_are_sent():
    async def scenario() -> None:
        may_read = asyncio.Event()
        messages: asyncio.Queue[dict[str, object]] = asyncio.Queue()
        messages.put_nowait({"type": "websocket.connect"})

        async def send(message: dict[str, object]) -> None:
            if message["type"] != "websocket.accept":
                await may_read.wait()

        scope = {"type": "websocket", "path": "/echo", "headers": [], "query_string": b""}
        task = asyncio.create_task(Echo.as_asgi()(scope, messages.get, send))
        await eventually(lambda: Echo.opened)
        socket = Echo.opened[0]
        await socket.drain()
        socket.enqueue("x" * 200_000)
        waiting = asyncio.create_task(socket.drain())
        await asyncio.sleep(0)
        assert not waiting.done()
        may_read.set()
        await waiting
        messages.put_nowait({"type": "websocket.disconnect", "code": 1000})
        await task

    run(scenario())


def test_an_undecodable_query_string_is_rejected():
    async def scenario() -> None:
        client = await Client("/echo?a=1&a=2&b=%C3%BC&empty=").open()
        assert Echo.opened[0].query == {"a": ["1", "2"], "b": ["ü"], "empty": [""]}
        await client.leave()
        for bad in ("a=%FF", "&".join(f"p{number}=1" for number in range(101))):
            status, body = await Client(f"/echo?{bad}").rejection()
            assert status == 400
            assert b'"code":107' in body

    run(scenario())


def test_a_disconnect_before_the_handshake_leaves_nothing_behind():
    async def scenario() -> None:
        client = Client()
        await client.send_input({"type": "websocket.disconnect", "code": 1006})
        await client.wait(5)
        assert Process.current().admission.total == 0
        assert not Process.current().sockets

    run(scenario())
