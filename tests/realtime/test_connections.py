"""One client's connection: what it may send, what it receives, and how it ends."""

from __future__ import annotations

import asyncio

import pytest
from django.test import override_settings

from realtime.process.process import Process
from tests.realtime.in_process import Client, Echo, eventually, run
from tests.settings import SERVICE


@pytest.fixture(autouse=True)
def nobody_yet() -> None:
    Echo.came.clear()
    Echo.went.clear()


def limits(**values: object) -> override_settings:
    return override_settings(SERVICE={**SERVICE, **values})


def test_texts_are_received_and_sent_in_order():
    async def scenario() -> None:
        client = await Client().open()
        await client.say("one", "zwei - ü", "three")
        assert [await client.heard() for _ in range(3)] == ["one", "zwei - ü", "three"]
        Echo.came[0].enqueue("über".encode())
        assert await client.heard() == "über"
        await client.leave()
        assert Echo.went == Echo.came

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
def test_a_ping_is_answered_and_nothing_else_is_taken_for_one(messages, answer):
    async def scenario() -> None:
        client = await Client().open()
        await client.say(messages)
        assert await client.heard() == answer
        await client.leave()

    run(scenario())


@pytest.mark.parametrize(
    ("budget", "kind"),
    [(3, "junk"), (3, b"binary"), (3, b""), (2, b"x" * 2048)],
    ids=["nonsense", "binary", "empty binary", "large"],
)
def test_junk_is_ignored_within_a_budget_and_then_the_connection_is_closed(budget, kind):
    async def scenario() -> None:
        client = await Client().open()
        if kind != b"x" * 2048:
            await client.say(*[kind] * budget, "still here")
            assert await client.heard() == "still here"
        await client.say(kind)
        assert await client.closed() == 1008

    with limits(WS_JUNK_PER_MINUTE=budget):
        run(scenario())


def test_pings_and_all_other_messages_have_a_limit_of_rate():
    async def scenario() -> None:
        client = await Client().open()
        await client.say(*["ping"] * 5)
        assert [await client.heard() for _ in range(5)] == ["pong"] * 5
        await client.say("ping")
        assert await client.closed() == 1008

    with limits(WS_MESSAGES_PER_MINUTE=5):
        run(scenario())


def test_a_message_that_is_too_large_closes_the_connection():
    async def scenario() -> None:
        client = await Client().open()
        await client.say("x" * 2000)
        assert await client.heard() == "x" * 2000
        await client.say("x" * 2001)
        assert await client.closed() == 1009

    with limits(WS_MESSAGE_SIZE=2000):
        run(scenario())


def test_after_a_close_nothing_is_sent_and_what_was_queued_is():
    async def scenario() -> None:
        client = await Client().open()
        await client.say("bye", "more")
        assert await client.heard() == "the last"
        assert await client.closed() == 4001
        assert await client.receive_nothing()
        assert len(Echo.went) == 1

    run(scenario())


class Waiting(Echo):
    """Answers nothing before it is let."""

    begun: list[str] = []
    let: asyncio.Event

    async def received(self, text: str) -> None:
        Waiting.begun.append(text)
        await Waiting.let.wait()
        self.enqueue(text)


@pytest.fixture
def nothing_begun() -> None:
    Waiting.begun.clear()
    Waiting.let = asyncio.Event()


def test_what_a_client_has_said_is_dropped_when_it_is_gone(nothing_begun):
    async def scenario() -> None:
        client = await Client(kind=Waiting).open()
        await client.say(*map(str, range(300)))
        await eventually(lambda: Process.current().unanswered.total)
        await client.send_input({"type": "websocket.disconnect", "code": 1006})
        await eventually(lambda: Echo.went)
        Waiting.let.set()
        await client.wait(5)
        assert Waiting.begun == ["0"]
        assert Process.current().unanswered.total == 0
        assert Process.current().admission.total == 0

    run(scenario())


def test_a_connection_counts_until_what_it_has_asked_is_done(nothing_begun):
    async def scenario() -> None:
        client = await Client(kind=Waiting).open()
        await client.say("one")
        await eventually(lambda: Waiting.begun)
        await client.send_input({"type": "websocket.disconnect", "code": 1006})
        await eventually(lambda: Echo.went)
        assert Process.current().admission.total == 1
        Waiting.let.set()
        await client.wait(5)
        assert Process.current().admission.total == 0

    run(scenario())


def test_what_waits_for_answers_is_limited_and_then_the_connection_is_closed(nothing_begun):
    async def scenario() -> None:
        client = await Client(kind=Waiting).open()
        await client.say("x" * 2000, *["x" * 2000] * 8)
        await eventually(lambda: Process.current().unanswered.total > 8 * 2000)
        await client.say("x" * 2000)
        message = await client.receive_output(5)
        assert (message["type"], message["code"]) == ("websocket.close", 1008)
        Waiting.let.set()
        await client.leave(1008)
        assert Waiting.begun == ["x" * 2000]
        assert Process.current().unanswered.total == 0

    with limits(WS_MESSAGE_SIZE=2000):
        run(scenario())


def test_what_waits_of_one_address_is_limited_and_others_may_say_more(nothing_begun):
    async def scenario() -> None:
        crowd = [await Client(kind=Waiting, peer=("192.0.2.1", 1)).open() for _ in range(6)]
        for item in crowd:
            await item.say(*["x" * 250_000] * 9)
        for item in crowd[4:]:
            assert (await item.receive_output(5))["code"] == 1013
        Waiting.let.set()
        other = await Client(kind=Waiting, peer=("192.0.2.2", 1)).open()
        await other.say("one", "two")
        assert [await other.heard() for _ in range(2)] == ["one", "two"]
        for item in (*crowd, other):
            await item.leave()
        assert Process.current().unanswered.total == 0

    run(scenario())


def test_for_want_of_memory_a_connection_is_closed_without_a_traceback(caplog):
    class Full(Echo):
        async def received(self, text: str) -> None:
            raise MemoryError

    async def scenario() -> None:
        client = await Client(kind=Full).open()
        await client.say("one")
        assert await client.closed() == 1013

    run(scenario())
    assert not any(record.exc_info for record in caplog.records)


def test_a_reason_is_cut_to_what_a_close_can_hold():
    async def scenario() -> None:
        client = await Client().open()
        Echo.came[0].close_with(1008, "ü" * 200)
        message = await client.receive_output(5)
        assert message["reason"] == "ü" * 60
        await client.leave(1008)

    run(scenario())


def test_a_fault_of_ours_closes_this_connection_alone():
    async def scenario() -> None:
        client, other = await Client().open(), await Client().open()
        await client.say("fail")
        assert await client.closed() == 1011
        await other.say("still here")
        assert await other.heard() == "still here"
        await other.leave()
        assert len(Echo.went) == 2

    run(scenario())


def test_who_reads_too_slowly_is_closed_and_others_are_not_delayed():
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
        await eventually(lambda: Echo.came)
        fast = await Client().open()
        frame = "x" * 10_000
        for _ in range(12):
            for socket in tuple(Process.current().sockets):
                socket.enqueue(frame)
            assert await fast.heard() == frame
        assert not Echo.came[0].is_open
        assert Echo.came[1].is_open
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


def test_who_sends_pages_can_wait_until_they_are_on_their_way():
    async def scenario() -> None:
        may_read = asyncio.Event()
        messages: asyncio.Queue[dict[str, object]] = asyncio.Queue()
        messages.put_nowait({"type": "websocket.connect"})

        async def send(message: dict[str, object]) -> None:
            if message["type"] != "websocket.accept":
                await may_read.wait()

        scope = {"type": "websocket", "path": "/echo", "headers": [], "query_string": b""}
        task = asyncio.create_task(Echo.as_asgi()(scope, messages.get, send))
        await eventually(lambda: Echo.came)
        socket = Echo.came[0]
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


def test_the_query_is_decoded_and_one_that_cannot_be_is_refused():
    async def scenario() -> None:
        client = await Client("/echo?a=1&a=2&b=%C3%BC&empty=").open()
        assert Echo.came[0].query == {"a": ["1", "2"], "b": ["ü"], "empty": [""]}
        await client.leave()
        for bad in ("a=%FF", "&".join(f"p{number}=1" for number in range(101))):
            status, body = await Client(f"/echo?{bad}").refused()
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
