"""``script/attack``: attack a service of its own on loopback, and measure a client meanwhile."""

from __future__ import annotations

import argparse
import asyncio
import datetime as dt
import os
import resource
import signal
import sys
from collections.abc import Sequence

from backend.instance.errors import StartError
from bench import report
from bench.accounting import machine
from bench.attack import rows, service
from bench.attack.attacks import Attack
from bench.attack.rows import ATTACKS, Nothing, Outcome, Stage
from bench.attack.table import describe, render
from bench.attack.victim import Victim
from bench.failure import BenchFailure
from bench.measure import say

_SECONDS, _SHORT_SECONDS = 10.0, 2.0
_CORPUS, _SHORT_CORPUS = 10_000, 2_000
_NICENESS = 5
"""The attackers share the machine with the service, which an attacker elsewhere doesn't."""


def _arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="script/attack",
        description="Start the service on a loopback port with data of its own, attack it, and "
        "measure an ordinary client meanwhile. Nothing else than this service is attacked.",
        epilog="The exit status is 1 if a row misses a target.",
    )
    parser.add_argument("--short", action="store_true", help="some rows only, 2 seconds each")
    parser.add_argument("--seconds", type=float, help="seconds a row (10; with --short 2)")
    parser.add_argument(
        "--only",
        action="append",
        metavar="ATTACK",
        choices=[attack.name for attack in ATTACKS],
        help="this attack; may be repeated",
    )
    parser.add_argument(
        "--addresses",
        type=int,
        default=1,
        help="loopback addresses from which each attack comes (%(default)s)",
    )
    parser.add_argument(
        "--correctness-only",
        action="store_true",
        help="don't judge the victim's latencies: for a machine that is busy with other things",
    )
    parser.add_argument("--report-only", action="store_true", help="exit with status 0 anyway")
    parser.add_argument("--list", action="store_true", help="list the attacks, and run none")
    return parser.parse_args(arguments)


def run(
    attacks: Sequence[type[Attack]], seconds: float, corpus: int, addresses: int = 1
) -> list[Outcome]:
    """Start a service, and run these attacks on it, one after the other."""
    _raise_file_limit()
    outcomes: list[Outcome] = []
    with service.running(corpus) as target, Victim(target.scene) as victim:
        stage = Stage.prepare(target, victim, addresses)
        # Only this process: the service and the victim are there already.
        os.nice(_NICENESS)
        planned: list[type[Attack]] = [Nothing, *attacks, Nothing]
        for number, attack in enumerate(planned):
            outcome = asyncio.run(rows.run(attack(), stage, number, seconds))
            outcomes.append(outcome)
            misses = "; ".join(outcome.misses) or "passed"
            say(f"{number}/{len(attacks)}  {attack.name}: {misses}")
    return outcomes


def main(words: Sequence[str]) -> int:
    arguments = _arguments(words)
    if arguments.list:
        print(describe(ATTACKS))
        return 0
    if arguments.only:
        attacks = [attack for attack in ATTACKS if attack.name in arguments.only]
    else:
        attacks = [attack for attack in ATTACKS if attack.short or not arguments.short]
    seconds = arguments.seconds or (_SHORT_SECONDS if arguments.short else _SECONDS)
    facts = {
        "date": dt.datetime.now(dt.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": service.commit(),
        "machine": machine(),
        "seconds": seconds,
        "addresses": arguments.addresses,
    }
    corpus = _SHORT_CORPUS if arguments.short else _CORPUS
    outcomes = run(attacks, seconds, corpus, arguments.addresses)
    path = report.keep(facts, attacks=[outcome.as_dict() for outcome in outcomes])
    print(render(facts, outcomes))
    say(f"all figures: {path.relative_to(report.RESULTS.parent.parent)}")
    missed = any(
        outcome.breaches if arguments.correctness_only else outcome.misses for outcome in outcomes
    )
    return 1 if missed and not arguments.report_only else 0


def _raise_file_limit() -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    try:
        sys.exit(main(sys.argv[1:]))
    except (BenchFailure, StartError) as failure:
        sys.exit(f"script/attack: {failure}")
    except KeyboardInterrupt:
        sys.exit(130)
