"""What a client sends is forgotten when it is answered, however long it is."""

from __future__ import annotations

import gc
import secrets
import tracemalloc
import weakref
from collections.abc import Callable, Iterator
from urllib.parse import quote, urlsplit

import pytest
from django.dispatch import dispatcher

from tests.rest import Api, Reply
from tests.security.hostile import HEADERS, calls

LENGTH = 30_000
ROUNDS = 2
# Django's test client connects a signal for each request, which is never forgotten.
SIGNALS = [
    tracemalloc.Filter(False, weakref.__file__),
    tracemalloc.Filter(False, dispatcher.__file__),
]


def fresh() -> str:
    """A text that no client has sent before."""
    return "a" + secrets.token_hex(LENGTH // 2)


def other_places(api: Api, text: str) -> Iterator[Callable[[], Reply]]:
    """Where a text may stand apart from objects, queries and schemas."""
    for path in ("functions", "jobs", "files", "users", "roles", "sessions", "config"):
        yield lambda p=path: api.post(f"/{p}/{quote(text)}")
        yield lambda p=path: api.get(f"/{p}/{quote(text)}")
    for path, body in (
        ("/functions/loadAllBlockchains", {text: text}),
        ("/functions/viewMethod", {"contract": text, "method": text, text: {text: text}}),
        ("/login", {"username": text, "password": text}),
        ("/users", {"username": text, "password": text, "authData": {text: {"id": text}}}),
        ("/requestPasswordReset", {"email": text}),
        ("/roles", {"name": text, "ACL": {text: {"read": True}}}),
        ("/installations", {"installationId": text, "deviceType": text}),
        ("/events/a", {text: text}),
        ("/hooks/functions", {"functionName": text, "url": text}),
        ("/schemas", {"className": text}),
    ):
        yield lambda p=path, b=body: api.post(p, b)
    for name in HEADERS:
        yield lambda n=name: api.call("GET", "/classes/Game", headers={n: text})


@pytest.mark.slow
def test_what_was_sent_is_forgotten(client: Api, master: Api, game: str) -> None:
    def send_everything() -> None:
        for api in (client, master):
            for _, call in calls(api, game, fresh()):
                call()
            for call in other_places(api, fresh()):
                call()
        # The client of these tests keeps the addresses that it has asked for.
        urlsplit.cache_clear()
        gc.collect()

    tracemalloc.start(6)
    try:
        send_everything()
        before = tracemalloc.take_snapshot()
        for _ in range(ROUNDS):
            send_everything()
        after = tracemalloc.take_snapshot()
    finally:
        tracemalloc.stop()
    traces = [item.filter_traces(SIGNALS) for item in (after, before)]
    # A place that keeps what it gets has one of every round and caller.
    texts = [
        "\n".join(item.traceback.format())
        for item in traces[0].compare_to(traces[1], "traceback")
        if item.size_diff >= ROUNDS * LENGTH
    ]
    assert texts == []
