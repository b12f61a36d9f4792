"""What live queries cost those who write: creates and updates over REST without the triggers that
capture changes, with nobody subscribed, and with subscribers."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from backend.instance.folder import DATABASE
from bench import accounting, generator, servers
from bench.client import create_all
from bench.failure import BenchFailure
from bench.measure import say
from bench.realtime import contenders, live_queries, writing
from bench.realtime.clients import clients
from bench.realtime.contenders import Server
from bench.servers import Engines, Target

MODES = ("no triggers", "nobody subscribed", "one subscription", "10,000 subscriptions")
_OBJECTS = 2_000
_CONNECTIONS = 16


def measure(
    engines: Engines, rounds: int, seconds: float
) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """Figures of every round, by workload and mode; the order of the modes alternates."""
    results: dict[str, dict[str, list[dict[str, Any]]]] = {}
    which = generator.choose(None)
    with servers.ours(engines, 2) as rest:
        writing.make_class(rest)
        files = _requests(engines, rest)
        for number in range(rounds + 1):
            for mode in MODES if number % 2 else MODES[::-1]:
                with _mode(engines, rest, mode) as sockets:
                    runs = {
                        workload: _run(
                            engines, rest, sockets, which, file, seconds if number else 1
                        )
                        for workload, file in files.items()
                    }
                for workload, figures in runs.items():
                    if number:  # the first one only warms up
                        results.setdefault(workload, {}).setdefault(mode, []).append(figures)
                        say(
                            f"round {number}/{rounds}  {workload:7} {mode:20}"
                            f" {figures['rate']:7,.0f}/s  p99 {figures['p99_ms']:6.1f} ms  cpu"
                            f" {figures['rest_us']:5.0f} + {figures['postgres_us']:5.0f} us,"
                            f" sockets {figures['sockets_us']:5.0f} us"
                        )
    return results


def _requests(engines: Engines, rest: Target) -> dict[str, Path]:
    """Files of requests: creates, and updates of objects that are made here."""
    path = f"{rest.mount}/classes/{writing.CLASS}"
    bodies = [writing.body(number) for number in range(1, _OBJECTS + 1)]
    ids = create_all(rest.client, writing.CLASS, map(json.loads, bodies))
    change = json.dumps({"number": {"__op": "Increment", "amount": 1}})
    lines = {
        "create": [f"POST\t{path}\t{text}\n" for text in bodies],
        "update": [f"PUT\t{path}/{object_id}\t{change}\n" for object_id in ids],
    }
    files = {}
    for name, each in lines.items():
        files[name] = engines.folder / f"{name}.requests"
        files[name].write_text("".join(each))
    return files


@contextlib.contextmanager
def _mode(engines: Engines, rest: Target, mode: str) -> Iterator[Server | None]:
    """The process with the sockets, in modes with subscribers. Those have one of their own, so that
    what an earlier one wanted can be taken away."""
    clients_with_rooms = {"one subscription": (1, 1), "10,000 subscriptions": (100, writing.ROOMS)}
    engines.execute(DATABASE, "DELETE FROM objects_interest")
    if mode in clients_with_rooms:
        count, rooms = clients_with_rooms[mode]
        messages = live_queries.script(rest, [{"room": room} for room in range(rooms)])
        with contenders.ours(engines) as sockets:
            place = engines.folder, sockets.port, live_queries.PATH
            with clients(*place, count, live_queries.MARKER, lambda number: messages):
                yield sockets
        return
    triggers = "DISABLE" if mode == "no triggers" else "ENABLE"
    try:
        engines.execute(DATABASE, f"ALTER TABLE objects_object {triggers} TRIGGER objects_change")
        yield None
    finally:
        engines.execute(DATABASE, "ALTER TABLE objects_object ENABLE TRIGGER objects_change")


def _run(
    engines: Engines, rest: Target, sockets: Server | None, which: str, file: Path, seconds: float
) -> dict[str, Any]:
    def cpu() -> list[float]:
        own = sockets.sockets_cpu() if sockets else 0.0
        servers_cpu = sum(accounting.cpu_seconds(pid) for pid in rest.pids)
        return [servers_cpu, accounting.cpu_seconds(engines.postgres_pid), own]

    before = cpu()
    seen = generator.run(which, rest.port, rest.headers, file, _CONNECTIONS, int(seconds))
    if seen.failed or not seen.requests:
        raise BenchFailure(f"{seen.failed} of {seen.requests} writes failed")
    each = [(now - then) / seen.requests * 1e6 for now, then in zip(cpu(), before, strict=True)]
    return {
        "rate": seen.rate,
        "p50_ms": seen.p50_ms,
        "p99_ms": seen.p99_ms,
        "rest_us": each[0],
        "postgres_us": each[1],
        "sockets_us": each[2],
    }
