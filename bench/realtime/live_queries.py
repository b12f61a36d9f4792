"""Live queries beside Parse Server's: ten thousand subscriptions on one class, a hundredth of which
match a change."""

from __future__ import annotations

import contextlib
import json
import statistics
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from bench import servers
from bench.measure import say
from bench.realtime import contenders, writing
from bench.realtime.clients import Received, clients, percentile
from bench.realtime.contenders import Server
from bench.realtime.fanning_out import Cpu
from bench.servers import HERE, LOGS, Engines, Target, free_port, peer_environment, running

MARKER = '"number":'
PATH = "/livequery"
_WARM = 4
_RATE = 20
_PATIENCE = 60
_NAME = {"ours": "this service", "peer": "Parse Server"}
Where = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Scene:
    """Who subscribes to what: so many clients with subscriptions each, ``matching`` of which see an
    object. ``burst`` objects are written at full speed, where that is measured."""

    name: str
    clients: int
    wheres: Callable[[int], Sequence[Where]]
    matching: int
    burst: dict[str, int]


def _all_rooms(client: int) -> list[Where]:
    return [{"room": room} for room in range(writing.ROOMS)]


def _some_rooms(client: int) -> list[Where]:
    return [{"room": (client * 10 + number) % writing.ROOMS} for number in range(10)]


def _ranges(client: int) -> list[Where]:
    width = writing.SCORES // 100
    # Each of them a query of its own; together every score is in as many as are matched.
    return [
        {"score": {"$gte": low, "$lt": low + width}} for low in range(client, writing.SCORES, width)
    ]


def _everything(client: int) -> list[Where]:
    return [{}]


SCENES = (
    Scene("100 clients x 100 rooms", 100, _all_rooms, 100, {"ours": 2_000, "peer": 40}),
    Scene("1,000 clients x 10 rooms", 1_000, _some_rooms, 100, {"ours": 2_000, "peer": 40}),
    Scene("100 clients x 100 ranges", 100, _ranges, 100, {"ours": 200, "peer": 20}),
    Scene("1,000 clients, one query", 1_000, _everything, 1_000, {"ours": 300, "peer": 40}),
)


@dataclass(frozen=True, slots=True)
class Pair:
    """A server: REST, and the process with the sockets."""

    rest: Target
    sockets: Server


@contextlib.contextmanager
def ours(engines: Engines) -> Iterator[Pair]:
    """Two web processes and a realtime process."""
    with (
        servers.ours(engines, 2) as rest,
        contenders.ours(engines, LIVE_QUERY_MAX_SUBSCRIPTIONS="1000") as sockets,
    ):
        writing.make_class(rest)
        yield Pair(rest, Server("ours", sockets.port, PATH, (*sockets.pids, *rest.pids)))


@contextlib.contextmanager
def peer(engines: Engines) -> Iterator[Pair]:
    """Two processes for REST, one for sockets, Redis between them."""
    more = {
        "PEER_LIVE_CLASSES": writing.CLASS,
        "PEER_REDIS_SOCKET": urlsplit(engines.redis_url).path,
    }
    with servers.peer(engines, 2, **more) as rest:
        writing.make_class(rest)
        port = free_port()
        environment = peer_environment(engines, port) | more
        command, log = ["node", "peer.js", "sockets"], LOGS / "peer-sockets.log"
        with running("peer's sockets", command, HERE, environment, log, until="ready") as pid:
            redis = contenders.redis_pid(engines)
            yield Pair(rest, Server("peer", port, "/", (pid, *rest.pids, redis)))


_SIDES = {"ours": ours, "peer": peer}


def measure(
    engines: Engines, names: Sequence[str], scenes: Sequence[Scene], rounds: int, seconds: float
) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """Figures of every round, by scene and server; their order alternates."""
    results: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for number in range(rounds):
        for name in names if number % 2 else names[::-1]:
            with _SIDES[name](engines) as pair:
                for scene in scenes:
                    figures = run(engines, pair, scene, seconds)
                    results.setdefault(scene.name, {}).setdefault(name, []).append(figures)
                    _report(f"round {number + 1}/{rounds}  {scene.name:26} {name:5}", figures)
    return results


def run(engines: Engines, pair: Pair, scene: Scene, seconds: float) -> dict[str, Any]:
    """Objects written at a rate, then at full speed, with the same subscriptions."""
    port, path = pair.sockets.port, pair.sockets.path

    def messages_of(client: int) -> Sequence[str]:
        return script(pair.rest, scene.wheres(client))

    results: dict[str, Any] = {}
    for pace in ("paced", "burst"):
        with clients(engines.folder, port, path, scene.clients, MARKER, messages_of) as crowd:
            writing.write(pair.rest, 1, _WARM, 10)
            crowd.wait_for(_WARM * scene.matching, pair.sockets.cpu)
            crowd.clear()
            cpu = Cpu(engines, pair.sockets)
            if pace == "paced":
                written = writing.write(pair.rest, _WARM + 1, int(seconds * _RATE), _RATE)
            else:
                written = writing.write(pair.rest, _WARM + 1, scene.burst[pair.sockets.name], None)
            crowd.wait_for(written.count * scene.matching, pair.sockets.cpu, _PATIENCE)
            cost = cpu.since()
            got = crowd.stop(_WARM + 1)
        results[pace] = _figures(got, written, written.count * scene.matching, cost)
        results["open_seconds"] = crowd.open_seconds
    return results


def script(target: Target, wheres: Sequence[Where]) -> Sequence[str]:
    """What a client says: who it is, then a subscription for each ``where``."""
    keys = target.headers
    connect = {
        "op": "connect",
        "applicationId": keys[f"{target.prefix}-Application-Id"],
        "restAPIKey": keys[f"{target.prefix}-REST-API-Key"],
    }
    subscriptions = [
        {
            "op": "subscribe",
            "requestId": number,
            "query": {"className": writing.CLASS, "where": where},
        }
        for number, where in enumerate(wheres, 1)
    ]
    return [json.dumps(message) for message in (connect, *subscriptions)]


def _figures(
    got: Received, written: writing.Written, expected: int, cost: dict[str, float]
) -> dict[str, Any]:
    began = array("q", [0]) * _WARM + written.began
    answered = array("q", [0]) * _WARM + written.answered
    ordered = got.latencies(began)
    since_answer = got.latencies(answered)
    rest = [(end - begin) / 1000 for begin, end in zip(began, answered, strict=True)][_WARM + 1 :]
    count = max(got.count, 1)
    seconds = (max(got.times) - began[_WARM + 1]) / 1e6 if got.count else cost["clock"]
    return {
        "writes": written.count,
        "writes_rate": written.count / written.seconds,
        "rest_p50_ms": statistics.median(rest),
        "expected": expected,
        "received": got.count,
        "share": got.count / expected,
        "lost": got.lost,
        "rate": got.count / seconds,
        "p50_ms": percentile(ordered, 0.5),
        "p99_ms": percentile(ordered, 0.99),
        "answer_p50_ms": percentile(since_answer, 0.5),
        "answer_p99_ms": percentile(since_answer, 0.99),
        "sockets_us": cost["sockets"] / count * 1e6,
        "all_us": (cost["server"] + cost["postgres"]) / count * 1e6,
        "per_sockets_cpu_s": got.count / max(cost["sockets"], 0.01),
        "per_cpu_s": got.count / max(cost["server"] + cost["postgres"], 0.01),
        "clients_core": got.core,
    }


def _report(what: str, results: dict[str, Any]) -> None:
    for pace in ("paced", "burst"):
        figures = results[pace]
        say(
            f"{what} {pace}: {figures['writes']:5} writes {figures['writes_rate']:6.0f}/s"
            f" {figures['share']:7.1%}  {figures['rate']:9,.0f}/s  p50 {figures['p50_ms']:8.1f}"
            f" p99 {figures['p99_ms']:8.1f} ms  a CPU second of the sockets"
            f" {figures['per_sockets_cpu_s']:8,.0f}, of all {figures['per_cpu_s']:8,.0f}"
        )
