"""What the functions app plugs into other rooms, all of it in one list."""

from __future__ import annotations

from importlib import import_module

from django.core.checks import Tags, register

from backend.tasks.scheduler import Scheduler
from functions import checks
from functions.jobs import classes
from functions.runtime import runner
from functions.runtime.registry import registry
from functions.triggers import decorators
from functions.webhooks import class_hooks, synchronous_calls
from objects import triggers
from objects.database import hold


def wire() -> None:
    """Connect everything. ``FunctionsConfig.ready`` calls it once."""
    # Tasks are sent by their names (``backend.tasks.registered``).
    for room in ("jobs", "triggers", "webhooks"):
        import_module(f"functions.{room}.tasks")
    # Server code that calls a function by its name; names that are webhooks.
    registry.caller = runner.call_python
    registry.elsewhere = synchronous_calls.function
    # The object service calls what a deployment has registered as triggers, and webhooks.
    registry.on_trigger = decorators.connect
    triggers.add_source(class_hooks.handlers)
    # What beat doesn't start in a restored instance.
    Scheduler.is_held = staticmethod(hold.is_on)
    # The class ``_JobStatus``.
    classes.offer_classes()
    # ``manage.py check --deploy``.
    register(checks.user_keys, Tags.security, deploy=True)
    # The functions that the service itself brings register themselves.
    import_module("functions.library")
