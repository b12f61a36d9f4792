"""Descriptions of registered functions, triggers and jobs for display."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from backend.kernel.principal import READ_ONLY_MASTER
from backend.settings.conf import service_settings
from functions.runtime.registry import Function, Job, Trigger, registry
from functions.runtime.requirements import RateLimit, Requirements
from functions.webhooks import service as hooks

_IN_TRANSACTION = {"saved": "after_save", "deleted": "after_delete"}


@dataclass(frozen=True)
class Registered:
    """A row of a list: the name, description and source location.

    ``of`` is the class of a trigger, ``url`` the address of a webhook, without its secrets.
    """

    name: str
    description: str
    place: str
    asks: str
    notes: tuple[str, ...] = ()
    of: str = ""
    url: str = ""
    is_shadowed: bool = False

    def has(self, text: str) -> bool:
        """Whether the row contains the text."""
        texts = (self.name, self.description, self.place, self.of, self.url)
        return any(text.lower() in each.lower() for each in texts)


def functions() -> list[Registered]:
    """All functions by name, those of webhooks among them."""
    rows = [described(function) for function in registry.functions.values()]
    rows += [
        Registered(
            function["functionName"],
            "",
            "webhook",
            who(Requirements()),
            url=without_secrets(function["url"]),
            is_shadowed="shadowed" in function,
        )
        for function in hooks.functions(READ_ONLY_MASTER)
    ]
    return sorted(rows, key=lambda function: (function.name.lower(), function.is_shadowed))


def described(function: Function) -> Registered:
    """A function that is written in Python."""
    notes = [f"at most {_seconds(_limit(function))}"]
    if function.in_transaction:
        notes.insert(0, "one transaction")
    if function.requirements.rate_limit is not None:
        notes.append(_rate(function.requirements.rate_limit))
    return Registered(
        function.name,
        function.description,
        function.place,
        who(function.requirements),
        tuple(notes),
    )


def triggers() -> list[Registered]:
    """All triggers by class and event, those of webhooks among them."""
    rows = [_trigger(trigger) for trigger in registry.triggers.values()]
    rows += [
        Registered(
            trigger["triggerName"],
            "",
            "webhook",
            "",
            of=trigger["className"],
            url=without_secrets(trigger["url"]),
        )
        for trigger in hooks.triggers(READ_ONLY_MASTER)
    ]
    return sorted(rows, key=lambda trigger: (trigger.of.lower(), trigger.name))


def _trigger(trigger: Trigger) -> Registered:
    notes = [f"at most {_seconds(_limit(trigger))}"]
    if trigger.background:
        notes.insert(0, "in the background")
    if trigger.event in _IN_TRANSACTION:
        notes.insert(0, "in the transaction")
    asks = trigger.requirements
    return Registered(
        _IN_TRANSACTION.get(trigger.event, trigger.event),
        inspect.getdoc(trigger.body) or "",
        trigger.place,
        who(asks) if asks.master or asks.asks_for_user else "",
        tuple(notes),
        of=trigger.class_name,
    )


def jobs() -> list[Registered]:
    """All jobs by name."""
    return [_job(job) for _, job in sorted(registry.jobs.items())]


def _job(job: Job) -> Registered:
    notes = []
    if isinstance(job.schedule, str):
        notes.append(f"scheduled {job.schedule} (UTC)")
    elif job.schedule is not None:
        notes.append(f"every {_seconds(job.schedule)}")
    if job.overlap:
        notes.append("several at once")
    if job.restart:
        notes.append("begun again if its worker dies")
    return Registered(job.name, job.description, job.place, "the master key", tuple(notes))


def who(requirements: Requirements) -> str:
    """Who may call."""
    if requirements.master:
        return "the master key"
    if not requirements.asks_for_user:
        return "everybody"
    text = f"a user {', '.join(_of_user(requirements))}".strip()
    return f"{text}; {'also requirements of' if requirements.even_master else 'or'} the master key"


def _of_user(requirements: Requirements) -> Iterator[str]:
    if requirements.any_role:
        yield f"with one of the roles {_listed(requirements.any_role)}"
    if requirements.all_roles:
        yield f"with all of the roles {_listed(requirements.all_roles)}"
    for name, allowed in requirements.user_keys.items():
        yield f"with {name}" if allowed is None else f"with {name} among {_listed(allowed)}"


def _listed(values: Any) -> str:
    return ", ".join(sorted(map(str, values)))


def _rate(limit: RateLimit) -> str:
    master = ", the master key too" if limit.include_master else ""
    return f"{limit.count} calls in {_seconds(limit.window)} per {limit.per}{master}"


def _limit(handler: Function | Trigger) -> float:
    return (
        service_settings.FUNCTION_TIME_LIMIT if handler.time_limit is None else handler.time_limit
    )


def _seconds(seconds: float) -> str:
    return f"{seconds:g} s"


def without_secrets(url: str) -> str:
    """Return a URL without its query, which often contains a secret."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}{parts.path}{'?…' if parts.query else ''}"
