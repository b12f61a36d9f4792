"""Clients that come and go: what is left of them in the process that served them.

Groups of clients connect, hear of some changes, and are gone. The queries of each are its own, so
that nothing which is kept by query or by client can be used a second time.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from bench.measure import say
from bench.realtime import contenders, fanning_out, live_queries, writing
from bench.realtime.clients import clients
from bench.realtime.contenders import Server
from bench.servers import Engines

_CLIENTS = 200
"""Of one group."""
_QUERIES = 10
"""Of one client."""
_CHANGES = 2
"""While a group is there."""
_WARM = 10
"""Groups until a process has grown to its size."""


@dataclass(frozen=True, slots=True)
class Place:
    """The server that clients connect to: their messages, and how changes are published."""

    server: Server
    marker: str
    script: Callable[[int, int], Sequence[str]] | None
    publish: Callable[[int], object]
    queries: int


def measure(engines: Engines, count: int) -> dict[str, list[dict[str, Any]]]:
    """Figures of ``count`` connections, by their kind."""
    results: dict[str, list[dict[str, Any]]] = {}
    for name, opened in (("event channel", _events), ("live queries, ten each", _queries)):
        with opened(engines) as place:
            figures = results[name] = [_churn(engines, place, max(count // _CLIENTS, 2 * _WARM))]
        say(
            f"{figures[0]['connections']:,} connections came and went, {name}:"
            f" {figures[0]['share']:.1%} delivered in {figures[0]['seconds']:.0f} s;"
            f" {figures[0]['warm_mib']:.1f} MiB, half way"
            f" {figures[0]['half_mib']:.1f}, in the end {figures[0]['mib']:.1f}"
        )
    return results


@contextlib.contextmanager
def _events(engines: Engines) -> Iterator[Place]:
    with fanning_out.event_writer(engines) as writer, contenders.ours(engines) as server:
        yield Place(server, fanning_out.MARKER, None, lambda first: writer.write(_CHANGES, 100), 0)


@contextlib.contextmanager
def _queries(engines: Engines) -> Iterator[Place]:
    with live_queries.ours(engines) as pair:

        def script(first: int, client: int) -> Sequence[str]:
            queries: list[dict[str, Any]] = [
                {"room": -number, "sender": f"{first}-{client}", "score": {"$gt": first + number}}
                for number in range(1, _QUERIES)
            ]
            return live_queries.script(
                pair.rest, [{"number": {"$gte": first}, "text": {"$ne": f"{client}"}}, *queries]
            )

        def publish(first: int) -> object:
            return writing.write(pair.rest, first, _CHANGES, None)

        yield Place(pair.sockets, live_queries.MARKER, script, publish, _QUERIES)


def _churn(engines: Engines, place: Place, groups: int) -> dict[str, Any]:
    server, expected = place.server, _CLIENTS * _CHANGES
    memory: list[int] = []
    received = lost = 0
    begin = time.monotonic()
    for group in range(groups):
        first = 1 + group * _CHANGES
        messages = None
        if place.script is not None:
            messages = [place.script(first, client) for client in range(_CLIENTS)].__getitem__
        address = engines.folder, server.port, server.path
        with clients(*address, _CLIENTS, place.marker, messages) as crowd:
            place.publish(first)
            crowd.wait_for(expected, server.cpu)
            got = crowd.stop(first)
        received, lost = received + got.count, lost + got.lost
        memory.append(server.memory())
    mib = [each / 1024 / 1024 for each in memory]
    return {
        "connections": groups * _CLIENTS,
        "queries": groups * _CLIENTS * place.queries,
        "seconds": time.monotonic() - begin,
        "share": received / (groups * expected),
        "lost": lost,
        "warm_mib": mib[_WARM - 1],
        "half_mib": mib[len(mib) // 2 - 1],
        "most_mib": max(mib),
        "mib": mib[-1],
        "all_mib": mib,
    }
