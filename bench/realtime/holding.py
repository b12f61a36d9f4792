"""Connections that are held: what ten thousand of them cost while nothing happens, and how soon all
of them hear of something.

The service's processes may not have more than two gigabytes of memory (``MEMORY_LIMIT``).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench.measure import say
from bench.realtime import contenders, fanning_out, live_queries, writing
from bench.realtime.clients import clients, percentile
from bench.realtime.contenders import Server
from bench.servers import Engines

_EVENTS = 5
_AT_REST = 2.0
"""Seconds after the last connection before memory is measured."""

Script = Callable[[int], Sequence[str]]
Publish = Callable[[], tuple[int, Sequence[int]]]


def measure(engines: Engines, count: int, rounds: int) -> dict[str, list[dict[str, Any]]]:
    """Figures of every round, by kind of connection."""
    results: dict[str, list[dict[str, Any]]] = {}
    for number in range(rounds):
        for name, hold in (("event channel", _events), ("live queries, one each", _queries)):
            figures = hold(engines, count)
            results.setdefault(name, []).append(figures)
            say(
                f"round {number + 1}/{rounds}  {count:,} connections, {name}: open after"
                f" {figures['open_seconds']:.1f} s, {figures['kib']:.1f} KiB each and"
                f" {figures['kernel_kib']:.1f} of the kernel, {figures['mib']:.0f} MiB in all; idle"
                f" {figures['idle_core']:.1%} of a core; heard by {figures['share']:.1%},"
                f" by the last after {figures['most_ms']:.0f} ms"
            )
    return results


def _events(engines: Engines, count: int) -> dict[str, Any]:
    with fanning_out.event_writer(engines) as writer, contenders.ours(engines) as server:

        def publish() -> tuple[int, Sequence[int]]:
            written = writer.write(_EVENTS, 1)
            return _EVENTS * count, [0] * written["first"] + written["began"]

        return _hold(engines, server, count, fanning_out.MARKER, None, publish)


def _queries(engines: Engines, count: int) -> dict[str, Any]:
    with live_queries.ours(engines) as pair:

        def script(client: int) -> Sequence[str]:
            return live_queries.script(pair.rest, [{"room": client % writing.ROOMS}])

        def publish() -> tuple[int, Sequence[int]]:
            written = writing.write(pair.rest, 1, _EVENTS, 1)
            return _EVENTS * count // writing.ROOMS, written.began

        return _hold(engines, pair.sockets, count, live_queries.MARKER, script, publish)


def _hold(
    engines: Engines,
    server: Server,
    count: int,
    marker: str,
    script: Script | None,
    publish: Publish,
) -> dict[str, Any]:
    place = engines.folder, server.port, server.path
    with clients(*place, 10, marker, script):
        pass  # warm up: a process creates some objects once
    before, kernel = server.memory(), _kernel_memory()
    with clients(*place, count, marker, script) as crowd:
        time.sleep(_AT_REST)
        full, held = server.memory(), _kernel_memory()
        cpu = server.sockets_cpu()
        time.sleep(_AT_REST)
        idle = (server.sockets_cpu() - cpu) / _AT_REST
        expected, written = publish()
        crowd.wait_for(expected, server.cpu)
        got = crowd.stop(1)
    ordered = got.latencies(written)
    return {
        "connections": count,
        "open_seconds": crowd.open_seconds,
        "kib": (full - before) / count / 1024,
        "kernel_kib": (held - kernel) / count / 1024,
        "mib": full / 1024 / 1024,
        "idle_core": idle,
        "share": got.count / expected,
        "lost": got.lost,
        "p50_ms": percentile(ordered, 0.5),
        "most_ms": percentile(ordered, 1.0),
    }


def _kernel_memory() -> int:
    """Bytes in the kernel's own structures; both ends of a connection are on this machine."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Slab:")) * 1024
