"""Health checks: each runs in a thread of its own, within its time limit."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import inf
from time import monotonic
from typing import Literal

from django.db import connection, connections
from django.utils.module_loading import autodiscover_modules

from backend.kernel.texts.redaction import mask_text

Level = Literal["ok", "warn", "fail", "skipped"]
DATABASE = "database"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a check has found, and what to do about it. Never a secret."""

    level: Level
    text: str
    advice: str = ""


def ok(text: str) -> Finding:
    return Finding("ok", text)


def warn(text: str, advice: str) -> Finding:
    """The service works, and something about it should be changed."""
    return Finding("warn", text, advice)


def fail(text: str, advice: str) -> Finding:
    """Something doesn't work, or is dangerous as it is."""
    return Finding("fail", text, advice)


Run = Callable[[], Iterator[Finding]]


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    run: Run
    needs: tuple[str, ...]
    seconds: float


@dataclass(slots=True)
class Outcome:
    """What a check has found."""

    check: str
    findings: list[Finding] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        return any(finding.level == "fail" for finding in self.findings)


_checks: dict[str, Check] = {}


def _load_of_apps() -> None:
    """Import the checks of the apps."""
    autodiscover_modules("doctor")


_load: Callable[[], None] = _load_of_apps


def load_with(load: Callable[[], None]) -> None:
    """Have ``load`` import the modules with checks, before ``run_all`` runs for the first time."""
    global _load
    _load = load


def group_of(name: str) -> str:
    """Return the part of the service that a check belongs to, such as ``engines``."""
    registered = _checks.get(name)
    if registered is None:
        return ""
    room, _, module = registered.run.__module__.rpartition(".")
    return room.partition(".")[0] if module == "doctor" else module


def check(name: str, *, needs: tuple[str, ...] = (), seconds: float = 5.0) -> Callable[[Run], Run]:
    """Have ``doctor`` run this function, which yields findings.

    It runs in a thread of its own and is given up after so many seconds. It is skipped if a check
    that it needs has failed or been skipped. An exception is a failure with the exception's text.
    """

    def register(run: Run) -> Run:
        _checks[name] = Check(name, run, needs, seconds)
        return run

    return register


def run_all(*, seconds: float = inf) -> Iterator[Outcome]:
    """Run every check, those first that others need.

    After that many ``seconds``, the remaining checks are skipped.
    """
    _load()
    end = monotonic() + seconds
    bad: set[str] = set()
    done: set[str] = set()
    waiting = [*_checks.values()]
    while waiting:
        ready = [check for check in waiting if all(need in done for need in check.needs)]
        # Needs that aren't registered, or that need each other, mustn't block the others.
        for check in ready or waiting:
            lacking = [need for need in check.needs if need in bad]
            remaining = end - monotonic()
            if lacking:
                outcome = _skipped(check, f"{lacking[0]} failed")
            elif remaining <= 0:
                outcome = _skipped(check, "there was no time left")
            else:
                outcome = _run(check, min(check.seconds, remaining))
            if lacking or outcome.failed:
                bad.add(check.name)
            done.add(check.name)
            yield outcome
        waiting = [check for check in waiting if check.name not in done]


def _skipped(check: Check, reason: str) -> Outcome:
    return Outcome(check.name, [Finding("skipped", f"not looked at, since {reason}")])


def _run(check: Check, seconds: float) -> Outcome:
    outcome = Outcome(check.name)
    findings: list[Finding] = []

    def run() -> None:
        try:
            if DATABASE in check.needs:
                with connection.cursor() as cursor:
                    limit = f"{max(1, int(seconds * 1000))}"
                    cursor.execute("SELECT set_config('statement_timeout', %s, false)", [limit])
            findings.extend(check.run())
        except Exception as error:
            reason = mask_text(str(error).strip().partition("\n")[0]) or "no reason given"
            findings.append(fail(f"{type(error).__name__}: {reason}", "The check itself failed."))
        finally:
            connections.close_all()  # this thread's

    begun = monotonic()
    thread = threading.Thread(target=run, name=f"doctor {check.name}", daemon=True)
    thread.start()
    thread.join(seconds)
    outcome.findings = [*findings]
    if thread.is_alive():
        waited = f"{monotonic() - begun:.0f} seconds"
        outcome.findings.append(
            fail(f"no answer in {waited}", "Look at what it asks, and try again.")
        )
    return outcome
