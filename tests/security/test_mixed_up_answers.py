"""No caller gets an answer that is meant for another one, whatever a server sends and when."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.conf import settings

from backend.kernel.outgoing import Unreachable
from chain.core.failures import NodeFailure
from chain.rpc.client.json_rpc import Endpoint
from functions.webhooks import client
from objects.files.s3 import ObjectStorage
from objects.users.adapters import http
from tests.random_seeds import DRAWN, seed_of
from tests.security.confusing_server import FAULTS, LATE, WHOLE, ConfusingServer, confusing

CALLS = 150
THREADS = 4
TAG = re.compile(rb"tag-\d+-")
SEEDS = [1, DRAWN]


def tagged(head: bytes, body: bytes) -> bytes:
    """JSON with the tag of the request."""
    tag = TAG.search(body) or TAG.search(head)
    assert tag is not None
    return b'{"success": "%s"}' % tag.group()


def replied(head: bytes, body: bytes) -> bytes:
    """JSON-RPC's reply with the tag of the request."""
    calls = json.loads(body)
    replies = [
        {"jsonrpc": "2.0", "id": call["id"], "result": call["params"][0]}
        for call in (calls if isinstance(calls, list) else [calls])
    ]
    return json.dumps(replies if isinstance(calls, list) else replies[0]).encode()


def call_webhook(server: ConfusingServer, tag: bytes) -> bytes:
    seconds = 0.2 if LATE in server.moments else 10
    return client.send(server.url, b'{"of": "%s"}' % tag, {}, seconds).body


def call_provider(server: ConfusingServer, tag: bytes) -> bytes:
    return http.fetch(f"{server.url}/{tag.decode()}").body


def has_own_answer(call: Callable[[bytes], bytes], number: int) -> bool:
    """Make a call; whether its own answer came. An answer to another one fails the test."""
    tag = b"tag-%d-" % number
    try:
        answer = call(tag)
    except (Unreachable, NodeFailure, OSError):
        return False
    assert {*TAG.findall(answer)} <= {tag}
    return tag in answer


def check(
    server: ConfusingServer,
    moments: tuple[str, ...],
    call: Callable[[bytes], bytes],
    whole: tuple[str, ...] = WHOLE,
    *,
    settles: bool = True,
) -> None:
    """Check the answers to many calls, and then those of a server that sends interim responses at
    most: all of them arrive, without a pause between the calls of several threads.

    ``settles`` lets everything arrive before the next call: later, no client that uses a connection
    again could tell."""
    server.moments = moments
    answered = 0
    for number in range(CALLS):
        answered += has_own_answer(call, number)
        if settles:
            server.settle()
    assert server.used == {*moments}
    assert answered > CALLS / 4
    server.moments = whole
    with ThreadPoolExecutor(settings.WEB_THREADS // 2) as pool:  # as many have a turn
        assert all(pool.map(lambda number: has_own_answer(call, number), range(CALLS, CALLS + 60)))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("call", [call_webhook, call_provider])
def test_a_caller_over_http_gets_its_own_answer(
    call: Callable[[ConfusingServer, bytes], bytes], seed: int | str, settings: Any
) -> None:
    settings.SERVICE = {**settings.SERVICE, "WEBHOOK_ALLOW_PRIVATE": ("127.0.0.0/8",)}
    moments = (*WHOLE, *FAULTS, *([LATE] if call is call_webhook else []))
    with confusing(tagged, seed_of(seed)) as server:
        check(server, moments, lambda tag: call(server, tag), settles=False)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_a_caller_over_json_rpc_gets_its_own_answer_while_others_call(seed: int | str) -> None:
    """Without waiting until a second response has come: ids tell them apart."""
    mixed_up: list[object] = []
    with confusing(replied, seed_of(seed)) as server:
        server.moments = (*WHOLE, *FAULTS, LATE)
        endpoint = Endpoint(server.url, timeout=0.5)

        def call_each(first: int) -> None:
            for number in range(first, first + CALLS // 2):
                tags = [f"tag-{number}-", f"tag-{number}-batch"]
                try:
                    if number % 2:
                        results = [endpoint.call(("eth_echo", (tags[0],)))]
                    else:
                        results = endpoint.batch([("eth_echo", (tag,)) for tag in tags], [str] * 2)
                except NodeFailure:
                    continue
                wrong = {item for item in results if not isinstance(item, NodeFailure)} - {*tags}
                mixed_up.extend(wrong)

        threads = [
            threading.Thread(target=call_each, args=(place * CALLS,)) for place in range(THREADS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert mixed_up == []
        server.moments = WHOLE
        endpoint.call(("eth_echo", ("tag-0-",)))


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_a_reader_of_object_storage_gets_its_own_file(
    seed: int | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with confusing(tagged, seed_of(seed)) as server:
        storage = ObjectStorage(
            bucket_name="files", endpoint_url=server.url, access_key="a", secret_key="b"
        )

        def read(tag: bytes) -> bytes:
            try:
                opened = storage.open_range(tag.decode(), 0, 0)
                return b"" if opened is None else opened[0].read()
            except Exception as error:  # botocore's have no class in common
                raise OSError from error

        # An object whose length isn't announced is refused.
        whole = tuple(moment for moment in WHOLE if moment != "chunked")
        check(server, (*WHOLE, *FAULTS), read, whole)


@pytest.mark.parametrize("reply", ["another", "none", "twice"])
def test_a_reply_to_another_request_ends_the_connections(reply: str) -> None:
    replies = {
        "another": b'{"jsonrpc": "2.0", "id": 0, "result": "0x1"}',
        "none": b'{"jsonrpc": "2.0", "result": "0x1"}',
        "twice": b"",
    }

    def answer(head: bytes, body: bytes) -> bytes:
        right = json.loads(replied(head, body))
        return json.dumps([*right, right[0]]).encode() if reply == "twice" else replies[reply]

    with confusing(answer, seed=1) as server:
        endpoint = Endpoint(server.url, timeout=5)
        calls = [("eth_echo", ("tag-1-",)), ("eth_echo", ("tag-2-",))]
        calls = calls if reply == "twice" else calls[:1]
        with pytest.raises(NodeFailure, match="an answer to another request"):
            endpoint.batch(calls, [str] * len(calls))
        assert endpoint.reconnections == 1
        assert endpoint.health.failures == 1
