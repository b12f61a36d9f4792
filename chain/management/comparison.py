"""Comparing blocks for a command, with its progress on a terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click
from django.core.management.base import BaseCommand, CommandError

from backend.kernel.errors import ServiceError
from chain.core.failures import NodeFailure
from chain.indexing.history.progress import Lost
from chain.indexing.repair.examination import examine
from chain.indexing.repair.findings import Findings
from chain.management.contracts import contracts_named, network_read, range_of

_SHOWN = 20


def run(
    command: BaseCommand,
    options: dict[str, Any],
    *,
    repairing: bool,
    notify_changes: bool,
    by_filters: bool = False,
) -> Findings:
    """The findings for the network, contracts and blocks that a command was told; see
    ``examine``."""
    cursor = network_read(options)
    first, last = range_of(options, 0, cursor.number or 0)
    try:
        with _shown(first, min(last, cursor.number or 0)) as progress:
            return examine(
                options["network"],
                first,
                last,
                addresses=contracts_named(options),
                repairing=repairing,
                notify_changes=notify_changes,
                by_filters=by_filters,
                progress=progress,
            )
    except NodeFailure as failure:
        raise CommandError(f"The network can't be read at the moment: {failure}.") from failure
    except Lost:
        raise CommandError(
            "The contracts or the chain have changed meanwhile; try again."
        ) from None
    except ServiceError as error:
        raise CommandError(error.message) from error


def report(command: BaseCommand, options: dict[str, Any], findings: Findings) -> None:
    """Write what was found. ``CommandError`` if some of it is unclear."""
    if options["json"]:
        command.stdout.write(json.dumps({"networkId": options["network"], **findings.as_json()}))
    else:
        command.stdout.write(describe(findings))
    if findings.unclear:
        raise CommandError(
            "A provider contradicts itself about some blocks, or lacks their receipts; nothing was"
            " changed in them."
        )


def describe(findings: Findings) -> str:
    """Lines about what was found."""
    lines = [
        f"{findings.events:,} events in the blocks {findings.first:,} to {findings.last:,}:"
        f" {findings.counts['missing']:,} missing, {findings.counts['superfluous']:,} superfluous,"
        f" {findings.counts['different']:,} different; {findings.mended:,} mended"
    ]
    for kind in ("missing", "superfluous", "different"):
        places = getattr(findings, kind)
        lines += [
            f"  {kind}: block {place[0]:,}, log {place[1]}, {place[2]}" for place in places[:_SHOWN]
        ]
        if findings.counts[kind] > _SHOWN:
            lines.append(f"  {kind}: … {findings.counts[kind] - _SHOWN:,} more")
    if findings.undated or findings.dated:
        lines.append(
            f"  {findings.undated:,} without the time of their block;"
            f" {findings.dated:,} have been given it"
        )
    lines += [f"  unclear: block {height:,}" for height in findings.unclear[:_SHOWN]]
    return "\n".join(lines)


@contextmanager
def _shown(first: int, last: int) -> Iterator[Callable[[int], object]]:
    """Something to tell progress to: a bar on a terminal."""
    if not sys.stderr.isatty():
        yield lambda reached: None
        return
    at = first - 1
    with click.progressbar(length=max(0, last - at), label="blocks", file=sys.stderr) as bar:

        def progress(reached: int) -> None:
            nonlocal at
            bar.update(reached - at)
            at = reached

        yield progress
