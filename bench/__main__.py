"""``script/bench``: start the servers, load them, ask them, print the figures.

``script/bench chain``, ``curve``, ``realtime``, ``soak``, ``start`` and ``memory`` are commands of
their own (``bench.chain``, ``bench.curve``, ``bench.realtime``, ``bench.soak``, ``bench.whole``).
"""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from backend.instance.errors import StartError
from bench import delivered, generator, profiling, report, roles, servers
from bench.failure import BenchFailure
from bench.measure import Options, load, measure, say
from bench.workloads import WORKLOADS


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="script/bench",
        description="Measure the service, alone or beside Parse Server on the same PostgreSQL. "
        "script/bench chain measures the chain app, script/bench curve how costs grow with the "
        "number of objects, script/bench realtime the sockets, script/bench start, memory and soak "
        "the whole service.",
    )
    parser.add_argument("--peer", action="store_true", help="measure Parse Server as well")
    parser.add_argument(
        "--delivered",
        action="store_true",
        help="measure script/server through its public port, against what is aimed at, with --peer",
    )
    parser.add_argument(
        "--scene",
        action="append",
        choices=delivered.SCENES,
        help="this part of --delivered alone; may be repeated: %(choices)s",
    )
    parser.add_argument("--peer-only", action="store_true", help="measure Parse Server alone")
    parser.add_argument(
        "--only",
        action="append",
        choices=[workload.name for workload in WORKLOADS],
        metavar="WORKLOAD",
        help="this workload; may be repeated: %(choices)s",
    )
    parser.add_argument("--rounds", type=int, help="measured rounds (3, with --delivered 5)")
    parser.add_argument("--seconds", type=int, default=8, help="seconds a run (%(default)s)")
    parser.add_argument("--connections", type=int, default=16, help="kept open (%(default)s)")
    parser.add_argument("--objects", type=int, default=100_000, help="loaded (%(default)s)")
    parser.add_argument("--workers", type=int, default=2, help="processes a server (%(default)s)")
    parser.add_argument("--threads", type=int, help="threads a worker of ours")
    parser.add_argument("--generator", choices=("wrk", "autocannon"), help="what makes the load")
    parser.add_argument("--proxy", action="store_true", help="measure behind Caddy as well")
    parser.add_argument(
        "--roles",
        type=int,
        nargs="?",
        const=1_000,
        metavar="REQUESTS",
        help="what a member of 300 roles costs, by this many requests each (%(const)s)",
    )
    parser.add_argument("--profile", action="store_true", help="where the time of a request goes")
    parser.add_argument(
        "--learn",
        action="store_true",
        help="measure, build the learned indexes as the schedule would, measure again",
    )
    parser.add_argument(
        "--chart",
        type=Path,
        metavar="RESULTS",
        help="only draw the chart of the documentation, from kept results of --delivered",
    )
    arguments = parser.parse_args()
    if arguments.delivered and not arguments.peer:
        parser.error("--delivered compares with Parse Server: add --peer")
    if arguments.rounds is None:
        arguments.rounds = 5 if arguments.delivered else 3
    return arguments


def main() -> None:
    if sys.argv[1:2] == ["chain"]:
        from bench.chain import command

        return command.main(sys.argv[2:])
    if sys.argv[1:2] == ["curve"]:
        from bench import curve

        return curve.main(sys.argv[2:])
    if sys.argv[1:2] == ["realtime"]:
        from bench.realtime import command as realtime

        return realtime.main(sys.argv[2:])
    if sys.argv[1:2] == ["soak"]:
        from bench.soak import command as soak

        return soak.main(sys.argv[2:])
    if sys.argv[1:2] in (["start"], ["memory"]):
        from bench import whole

        command = whole.start_command if sys.argv[1] == "start" else whole.memory_command
        return command(sys.argv[2:])
    arguments = _arguments()
    if arguments.chart:
        delivered.CHART.write_text(delivered.draw(arguments.chart))
        return say(f"drawn: {delivered.CHART.relative_to(servers.ROOT)}")
    workloads = [
        workload for workload in WORKLOADS if not arguments.only or workload.name in arguments.only
    ]
    options = Options(
        arguments.rounds,
        arguments.seconds,
        arguments.connections,
        generator.choose(arguments.generator),
    )
    with contextlib.ExitStack() as stack:
        engines = stack.enter_context(servers.engines())
        if arguments.delivered:
            text, contents, facts = delivered.compare(
                engines,
                arguments.workers,
                arguments.objects,
                workloads,
                options,
                arguments.scene or delivered.SCENES,
            )
            return _show(text, facts, contents)
        running = []
        if not arguments.peer_only:
            running.append(
                stack.enter_context(servers.ours(engines, arguments.workers, arguments.threads))
            )
        if arguments.peer or arguments.peer_only:
            running.append(stack.enter_context(servers.peer(engines, arguments.workers)))
        facts = report.conditions(engines, running, options)
        if arguments.roles:
            facts |= {
                "load": "one request after the other, keep-alive",
                "rounds": f"{arguments.roles} requests each, medians",
            }
            text, contents = roles.compare(engines, running[0], arguments.roles)
        else:
            targets = [(target, load(target, engines, arguments.objects)) for target in running]
            if arguments.profile:
                text, contents = profiling.profile(engines, *targets[0], workloads, options)
            else:
                if arguments.proxy:
                    targets += [
                        (stack.enter_context(servers.proxied(target, engines.folder)), loaded)
                        for target, loaded in targets
                    ]
                runs = measure(engines, targets, workloads, options)
                if arguments.learn:
                    say(servers.learn(engines))
                    target, loaded = targets[0]
                    targets.insert(0, (replace(target, name=servers.LEARNED), loaded))
                    runs += measure(engines, targets[:1], workloads, options)
                text = report.tables(runs, workloads, [target.name for target, _ in targets])
                contents = {"runs": [run.as_dict() for run in runs]}
        _show(text, facts, contents)


def _show(text: str, facts: dict[str, Any], contents: dict[str, Any]) -> None:
    kept = report.keep(facts, **contents)
    print(f"{report.heading(facts)}\n\n{text}")
    say(f"all figures: {kept.relative_to(servers.ROOT)}")


if __name__ == "__main__":
    # Whoever ends it this way wants its servers to end as well.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    try:
        main()
    except (BenchFailure, StartError) as failure:
        sys.exit(f"script/bench: {failure}")
    except KeyboardInterrupt:
        sys.exit(130)
