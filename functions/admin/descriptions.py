"""What is registered, in words for people."""

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
    """A row of a list: what it is called, what it does, where it is written.

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
        """Whether the text is somewhere in it."""
        said = (self.name, self.description, self.place, self.of, self.url)
        return any(text.lower() in one.lower() for one in said)


def functions() -> list[Registered]:
    """All functions by name, those of webhooks among them."""
    found = [described(one) for one in registry.functions.values()]
    found += [
        Registered(
            one["functionName"],
            "",
            "webhook",
            who(Requirements()),
            url=without_secrets(one["url"]),
            is_shadowed="shadowed" in one,
        )
        for one in hooks.functions(READ_ONLY_MASTER)
    ]
    return sorted(found, key=lambda one: (one.name.lower(), one.is_shadowed))


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
    found = [_trigger(one) for one in registry.triggers.values()]
    found += [
        Registered(
            one["triggerName"],
            "",
            "webhook",
            "",
            of=one["className"],
            url=without_secrets(one["url"]),
        )
        for one in hooks.triggers(READ_ONLY_MASTER)
    ]
    return sorted(found, key=lambda one: (one.of.lower(), one.name))


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
    return [_job(one) for _, one in sorted(registry.jobs.items())]


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


def who(asked: Requirements) -> str:
    """Who may call."""
    if asked.master:
        return "the master key"
    if not asked.asks_for_user:
        return "everybody"
    said = f"a user {', '.join(_of_user(asked))}".strip()
    return f"{said}; {'also asked of' if asked.even_master else 'or'} the master key"


def _of_user(asked: Requirements) -> Iterator[str]:
    if asked.any_role:
        yield f"with one of the roles {_listed(asked.any_role)}"
    if asked.all_roles:
        yield f"with all of the roles {_listed(asked.all_roles)}"
    for name, allowed in asked.user_keys.items():
        yield f"with {name}" if allowed is None else f"with {name} among {_listed(allowed)}"


def _listed(values: Any) -> str:
    return ", ".join(sorted(map(str, values)))


def _rate(limit: RateLimit) -> str:
    master = ", the master key too" if limit.include_master else ""
    return f"{limit.count} calls in {_seconds(limit.window)} per {limit.per}{master}"


def _limit(one: Function | Trigger) -> float:
    return service_settings.FUNCTION_TIME_LIMIT if one.time_limit is None else one.time_limit


def _seconds(seconds: float) -> str:
    return f"{seconds:g} s"


def without_secrets(url: str) -> str:
    """An address without what comes after the question mark, which often is a secret."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}{parts.path}{'?…' if parts.query else ''}"
