"""What a deployment has registered: functions, triggers, jobs.

The decorators register when their module is imported. Two functions of one name, two jobs of one
name, or two triggers for the same event of the same class are a mistake, and the error names both
places.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from backend.kernel.errors import ScriptFailed
from backend.kernel.principal import Principal
from backend.kernel.texts.shown import shown
from backend.settings.timetables import check_schedule
from functions.runtime.parameters import Parameters, of_signature
from functions.runtime.requirements import RateLimit, Requirements, requirements
from objects.core.names import Subject, check_class_name
from objects.triggers import Event, check_event

_Body = TypeVar("_Body", bound=Callable[..., Any])
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,127}").fullmatch


class AlreadyRegistered(Exception):
    """Two registrations of one name."""


@dataclass(frozen=True)
class Function:
    """A registered function. ``time_limit`` is in seconds, None for the setting's."""

    name: str
    body: Callable[..., Any]
    parameters: Parameters
    requirements: Requirements
    description: str
    in_transaction: bool
    time_limit: float | None
    is_webhook: bool = False

    @property
    def place(self) -> str:
        return place_of(self.body)


@dataclass(frozen=True)
class Trigger:
    """A registered trigger. ``background`` ones run in a worker."""

    event: Event
    class_name: Subject
    body: Callable[..., Any]
    requirements: Requirements
    background: bool = False
    time_limit: float | None = None

    @property
    def place(self) -> str:
        return place_of(self.body)


@dataclass(frozen=True)
class Job:
    """A registered job. ``schedule`` is seconds between runs, or a crontab line ("0 3 * * *").
    ``restart`` ones are run again if their worker dies."""

    name: str
    body: Callable[..., Any]
    parameters: Parameters
    description: str
    schedule: float | str | None
    overlap: bool
    time_limit: float | None
    restart: bool = False

    @property
    def place(self) -> str:
        return place_of(self.body)


class Registry:
    """All registrations of a process."""

    def __init__(self) -> None:
        self.functions: dict[str, Function] = {}
        self.triggers: dict[tuple[Event, str], Trigger] = {}
        self.jobs: dict[str, Job] = {}
        self.on_trigger: Callable[[Trigger], Callable[[], None]] | None = None
        """Makes a trigger heard where its event happens; gives what undoes that."""
        self.caller: Callable[[str, Mapping[str, Any], Principal], Any] | None = None
        """Calls a function for other server code. These are put here by the modules above."""
        self.elsewhere: Callable[[str], Function | None] = lambda name: None
        """Finds a function that isn't Python."""
        self._undo: list[Callable[[], None]] = []

    def add_function(self, function: Function) -> None:
        _add(self.functions, function.name, function, f"function {function.name!r}")

    def add_job(self, job: Job) -> None:
        _add(self.jobs, job.name, job, f"job {job.name!r}")

    def add_trigger(self, trigger: Trigger) -> None:
        what = f"trigger {trigger.event} of {trigger.class_name!r}"
        if _add(self.triggers, (trigger.event, trigger.class_name), trigger, what):
            assert self.on_trigger is not None
            self._undo.append(self.on_trigger(trigger))

    @contextmanager
    def temporarily(self) -> Iterator[None]:
        """What is registered inside is forgotten at the end; for tests."""
        snapshot = dict(self.functions), dict(self.triggers), dict(self.jobs), len(self._undo)
        try:
            yield
        finally:
            self.functions, self.triggers, self.jobs = snapshot[:3]
            while len(self._undo) > snapshot[3]:
                self._undo.pop()()


_Key = TypeVar("_Key")


def _add(registered: dict[_Key, Any], key: _Key, new: Any, what: str) -> bool:
    """Add, and say whether it wasn't there: a module may be imported under two names."""
    old = registered.get(key)
    if old is not None:
        if old.place == new.place and old.body.__code__ == new.body.__code__:
            return False
        raise AlreadyRegistered(f"The {what} is registered twice: by {old.place} and {new.place}.")
    registered[key] = new
    return True


registry = Registry()


def place_of(body: Callable[..., Any]) -> str:
    """Return the source location of a function for display."""
    code = getattr(inspect.unwrap(body), "__code__", None)
    line = f":{code.co_firstlineno}" if code is not None else ""
    return f"{body.__module__}.{getattr(body, '__qualname__', body)}{line}"


def find_function(name: str) -> Function | None:
    """Return the function of this name: one in Python, else a webhook, else None."""
    return registry.functions.get(name) or registry.elsewhere(name)


def unknown_function(name: str) -> ScriptFailed:
    """Return the error for a call of an unknown function."""
    return ScriptFailed(f'Invalid function: "{shown(name)}"')


# -- Decorators -----------------------------------------------------------------------------------


def function(
    name: str | None = None,
    *,
    require_user: bool = False,
    require_master: bool = False,
    require_any_role: Collection[str] = (),
    require_all_roles: Collection[str] = (),
    require_user_keys: Collection[str] | Mapping[str, Any] = (),
    rate_limit: RateLimit | None = None,
    even_master: bool = False,
    transaction: bool = False,
    time_limit: float | None = None,
) -> Callable[[_Body], _Body]:
    """Let clients call this at ``POST /functions/NAME``, by default under its own name.

    Its first parameter is the ``Request``; the others are the function's, checked by their
    annotations before the body runs. What it returns is the ``result``. Requirements
    apply to the master key only with ``even_master``. With ``transaction`` the body runs in a
    transaction, which is retried after a conflict with another one. ``time_limit`` is in seconds.
    """
    required = requirements(
        require_user=require_user,
        require_master=require_master,
        require_any_role=require_any_role,
        require_all_roles=require_all_roles,
        require_user_keys=require_user_keys,
        rate_limit=rate_limit,
        even_master=even_master,
    )

    def register(body: _Body) -> _Body:
        _check_plain(body)
        registry.add_function(
            Function(
                _checked_name(name or body.__name__),
                body,
                of_signature(body),
                required,
                inspect.getdoc(body) or "",
                transaction,
                time_limit,
            )
        )
        return body

    return register


def job(
    name: str | None = None,
    *,
    schedule: float | str | None = None,
    overlap: bool = False,
    time_limit: float | None = None,
    restart: bool = False,
) -> Callable[[_Body], _Body]:
    """Register a job, started with the master key at ``POST /jobs/NAME`` or by a schedule.

    ``schedule`` is seconds between runs, or a crontab line in UTC (minute, hour, day of month,
    month, day of week). Without ``overlap`` a run isn't started while another one is queued or
    running. With ``restart`` a run whose worker has died starts again, so the job must be
    idempotent; without it the run fails.
    """
    if schedule is not None:
        check_schedule(schedule)

    def register(body: _Body) -> _Body:
        _check_plain(body)
        registry.add_job(
            Job(
                _checked_name(name or body.__name__),
                body,
                of_signature(body),
                inspect.getdoc(body) or "",
                schedule,
                overlap,
                time_limit,
                restart,
            )
        )
        return body

    return register


def trigger(
    event: Event,
    class_name: str,
    *,
    background: bool = False,
    time_limit: float | None = None,
    **options: Any,
) -> Callable[[_Body], _Body]:
    """Run this at an event of a class; ``triggers`` has a decorator for each event."""
    if "rate_limit" in options:
        raise TypeError("a trigger has no rate limit; what it belongs to may have one")
    subject = class_name if class_name.startswith(("@", "*")) else check_class_name(class_name)
    check_event(event, Subject(subject))

    def register(body: _Body) -> _Body:
        _check_plain(body)
        registry.add_trigger(
            Trigger(event, Subject(subject), body, requirements(**options), background, time_limit)
        )
        return body

    return register


def is_name(name: str) -> bool:
    """Whether a function or job may be called this."""
    return _NAME(name) is not None


def _checked_name(name: str) -> str:
    if not is_name(name):
        raise ValueError(f"{name!r} is no name for a function or job")
    return name


def _check_plain(body: Callable[..., Any]) -> None:
    if inspect.iscoroutinefunction(body) or inspect.isasyncgenfunction(body):
        raise TypeError(f"{place_of(body)} is async; functions, triggers and jobs are plain ones")
