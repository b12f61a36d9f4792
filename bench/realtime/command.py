"""The command: servers of sockets in rounds, tables."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

from bench import report, servers
from bench.measure import say
from bench.realtime import (
    capturing,
    churning,
    contenders,
    fanning_out,
    holding,
    live_queries,
    tables,
)
from bench.servers import ROOT, Engines

PARTS = ("fanout", "held", "livequery", "capture", "churn")


def arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="script/bench realtime",
        description="Measure the sockets beside ws, channels_redis and Parse Server's live "
        "queries. script/bench realtime --servers compares servers of ASGI; its --help says how.",
    )
    parser.add_argument("--rounds", type=int, default=3, help="measured rounds (%(default)s)")
    parser.add_argument("--seconds", type=float, default=10, help="of events (%(default)s)")
    parser.add_argument("--held", type=int, default=10_000, help="connections (%(default)s)")
    parser.add_argument(
        "--churn", type=int, default=20_000, help="connections that come and go (%(default)s)"
    )
    parser.add_argument("--alone", action="store_true", help="without the peers, from npm")
    parser.add_argument(
        "--only", action="append", choices=PARTS, help="this part; may be repeated: %(choices)s"
    )
    parser.add_argument(
        "--scene",
        action="append",
        metavar="WORDS",
        help="of fanout and livequery only the scenes with these words in their name",
    )
    return parser.parse_args(argv)


def main(argv: Sequence[str]) -> None:
    if "--servers" in argv:
        from bench.realtime import servers as compared

        return compared.main([word for word in argv if word != "--servers"])
    options = arguments(argv)
    if not options.alone:
        servers.install_peer()
    with servers.engines() as engines:
        servers.migrate(engines)
        facts = tables.conditions(engines, options.rounds, options.seconds, alone=options.alone)
        figures: dict[str, Any] = {}
        for part in options.only or PARTS:
            figures[part] = _PART[part](engines, options)
        report_file = report.keep(facts, realtime=figures)
    print(f"{report.heading_of_one(facts)}\n\n{tables.text(figures)}")
    say(f"all figures: {report_file.relative_to(ROOT)}")


def _fanout(engines: Engines, options: argparse.Namespace) -> Any:
    names = ["ours"] if options.alone else contenders.available()
    scenes = [scene for scene in fanning_out.SCENES if _wanted(scene.name, options)]
    return fanning_out.measure(engines, names, scenes, options.rounds, options.seconds)


def _held(engines: Engines, options: argparse.Namespace) -> Any:
    return holding.measure(engines, options.held, options.rounds)


def _livequery(engines: Engines, options: argparse.Namespace) -> Any:
    names = ["ours"] if options.alone else ["ours", "peer"]
    scenes = [scene for scene in live_queries.SCENES if _wanted(scene.name, options)]
    return live_queries.measure(engines, names, scenes, options.rounds, options.seconds)


def _capture(engines: Engines, options: argparse.Namespace) -> Any:
    return capturing.measure(engines, options.rounds, options.seconds)


def _churn(engines: Engines, options: argparse.Namespace) -> Any:
    return churning.measure(engines, options.churn)


def _wanted(name: str, options: argparse.Namespace) -> bool:
    return not options.scene or any(words in name for words in options.scene)


_PART: dict[str, Callable[[Engines, argparse.Namespace], Any]] = {
    "fanout": _fanout,
    "held": _held,
    "livequery": _livequery,
    "capture": _capture,
    "churn": _churn,
}
