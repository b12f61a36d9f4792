"""The table that ``script/attack`` prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from bench.attack.attacks import Attack
from bench.attack.rows import Outcome

_GROWN = 10
"""Megabytes of growth from which a role is named."""


def render(facts: Mapping[str, Any], outcomes: Sequence[Outcome]) -> str:
    """One line a row, and below it what each row missed."""
    found = facts["machine"]
    heading = (
        f"{facts['date']}, commit {facts['commit']}. {found['cpu']}, {found['memory']}, "
        f"{found['system']}, load before {found['load']}. {facts['seconds']:g} s a row, attackers "
        f"from {facts['addresses']} address(es). Idle: {_roles(outcomes[0].idle.roles)}."
    )
    lines = [
        "| attack | victim's requests | p50 ms | p99 ms | max ms | errors | connections | answers "
        "| peak MB (x idle) | grown by MB | recovery s | |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- | ---: | --- | ---: | --- |",
    ]
    lines += [_line(outcome) for outcome in outcomes]
    missed = [f"- {one.name}: {'; '.join(one.misses)}" for one in outcomes if one.misses]
    passed = len(outcomes) - len(missed)
    summary = f"{passed} of {len(outcomes)} rows meet their targets."
    return "\n".join([heading, "", *lines, "", summary, *missed])


def describe(attacks: Sequence[type[Attack]]) -> str:
    """The attacks, with what each does and its targets."""
    lines = ["| attack | | clients | victim's p99 ms | MB |", "| --- | --- | ---: | ---: | ---: |"]
    lines += [
        f"| {one.name} | {one.description} | {one.attackers:,} | {one.p99:.0f} | {one.allowance} |"
        for one in attacks
    ]
    return "\n".join(lines)


def _line(outcome: Outcome) -> str:
    measured = outcome.measured
    cells = [
        outcome.name,
        measured.requests,
        *(f"{measured.percentile(share):.1f}" for share in (0.5, 0.99, 1.0)),
        measured.failed,
        outcome.tally.connections,
        _counts(outcome.tally.answers),
        f"{outcome.peak.total:.0f} ({outcome.peak.total / outcome.idle.total:.2f})",
        _growth(outcome),
        f"{outcome.recovery:.1f}",
        "**missed**" if outcome.misses else "passed",
    ]
    return f"| {' | '.join(map(str, cells))} |"


def _counts(answers: Counter[str]) -> str:
    return ", ".join(f"{name} x {count}" for name, count in answers.most_common())


def _growth(outcome: Outcome) -> str:
    growth = outcome.peak.growth(outcome.before)
    return ", ".join(f"{role} {size:.0f}" for role, size in growth.items() if size >= _GROWN)


def _roles(roles: Mapping[str, float]) -> str:
    ordered = sorted(roles.items(), key=lambda item: -item[1])
    total = sum(roles.values())
    return f"{total:.0f} MB ({', '.join(f'{role} {size:.0f}' for role, size in ordered)})"
