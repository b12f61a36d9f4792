"""``/security``: the checks of ``doctor`` as a report, in the form that Parse Dashboard shows."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from time import monotonic
from typing import Final, Literal, NotRequired, TypedDict

from backend.http.call import Call
from backend.http.permissions import Requires
from backend.http.renderers import Answer
from backend.http.views import ServiceView
from backend.kernel import doctor
from backend.kernel.doctor import Finding, Outcome
from backend.kernel.errors import OperationForbidden, ServiceUnavailable
from backend.openapi import answer, describes
from backend.settings.conf import service_settings

_VERSION: Final = "1.0.0"  # of the report's schema
_SECONDS: Final = 20.0  # for all checks together
_FRESH: Final = 30.0  # seconds that a report is answered again
# The dashboard shows a check that isn't a success as failed, so those that didn't run are left out.
_STATES: Final = {"ok": "success", "warn": "fail", "fail": "fail"}
_State = Literal["success", "fail"]


class SecurityCheck(TypedDict):
    title: str
    state: _State
    warning: NotRequired[str]
    solution: NotRequired[str]


class SecurityGroup(TypedDict):
    name: str
    state: _State
    checks: list[SecurityCheck]


class _Report(TypedDict):
    version: str
    state: _State
    groups: list[SecurityGroup]


class SecurityReport(TypedDict):
    """What the checks of `doctor` report."""

    report: _Report


class SecurityView(ServiceView):
    """The checks of ``doctor``, for the master key; the read-only one as well."""

    tag = "Service"
    requires = Requires.MASTER_KEY

    @describes(
        "checkSecurity",
        "Check the service and its settings",
        response=answer("What the checks report.", SecurityReport),
        description="The checks are those of the command `doctor`. A report may be 30 seconds old.",
    )
    def get(self, call: Call) -> Answer:
        if not service_settings.SECURITY_CHECK:
            raise OperationForbidden(
                "Enable Parse Server option `security.enableCheck` to run security check:"
                " SECURITY_CHECK=on",
                status=409,
            )
        return Answer({"report": _reports.latest()})


class _Reports:
    """The latest report of this process. One thread at a time runs the checks."""

    def __init__(self) -> None:
        self._running = threading.Lock()
        self._report: _Report | None = None
        self._made_at = 0.0

    def latest(self) -> _Report:
        """Return a fresh report, or the former one while another thread runs the checks.

        The first requests wait for the first report; they raise ``ServiceUnavailable`` if that
        takes too long.
        """
        former = self._report
        if not self._running.acquire(timeout=_SECONDS if former is None else 0):
            if former is not None:
                return former
            raise ServiceUnavailable("The checks are running. Repeat the request later.")
        try:
            if self._report is None or monotonic() - self._made_at > _FRESH:
                self._report = report_of(doctor.run_all(seconds=_SECONDS))
                self._made_at = monotonic()
            return self._report
        finally:
            self._running.release()


_reports = _Reports()


def report_of(outcomes: Iterable[Outcome]) -> _Report:
    """Return outcomes as a report, grouped by the part of the service."""
    groups: dict[str, list[SecurityCheck]] = {}
    for outcome in outcomes:
        checks = groups.setdefault(doctor.group_of(outcome.check), [])
        checks += [
            _check(outcome.check, finding)
            for finding in outcome.findings
            if finding.level in _STATES
        ]
    shown: list[SecurityGroup] = [
        {"name": name.replace("_", " ").capitalize(), "state": _state(checks), "checks": checks}
        for name, checks in groups.items()
        if checks
    ]
    return {
        "version": _VERSION,
        "state": _state(check for group in shown for check in group["checks"]),
        "groups": shown,
    }


def _check(name: str, finding: Finding) -> SecurityCheck:
    title = name[:1].upper() + name[1:]
    if finding.level == "ok":
        return {"title": title, "state": "success"}
    return {"title": title, "state": "fail", "warning": finding.text, "solution": finding.advice}


def _state(checks: Iterable[SecurityCheck]) -> _State:
    return "fail" if any(check["state"] == "fail" for check in checks) else "success"
