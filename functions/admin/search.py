"""What the search of the admin finds in this app: functions, triggers, jobs, webhooks and flags."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from django.http import HttpRequest
from django.urls import reverse

from backend.site.search import Result, search_source
from functions.admin.descriptions import without_secrets
from functions.admin.function_pages import VIEW
from functions.admin.jobs import VIEW as VIEW_JOBS
from functions.models import FeatureFlag
from functions.runtime.registry import registry
from functions.webhooks.models import Hook

_MOST: Final = 1000


@search_source("Functions", icon="function", position=50, permission=VIEW)
def functions(request: HttpRequest, text: str) -> Iterator[Result]:
    """Functions by their names and descriptions."""
    for name, function in registry.functions.items():
        link = reverse("admin:code_function", args=(name,))
        yield Result(name, link, _first_line(function.description), function.place)


@search_source("Triggers", icon="bolt", position=52, permission=VIEW)
def triggers(request: HttpRequest, text: str) -> Iterator[Result]:
    """Triggers by their class and event."""
    for trigger in registry.triggers.values():
        link = reverse("admin:code_functions", query={"q": trigger.class_name})
        yield Result(f"{trigger.event} of {trigger.class_name}", link, trigger.place)


@search_source("Jobs", icon="work_history", position=54, permission=VIEW_JOBS)
def jobs(request: HttpRequest, text: str) -> Iterator[Result]:
    """Jobs by their names and descriptions."""
    link = reverse("admin:jobs")
    for name, job in registry.jobs.items():
        yield Result(name, link, _first_line(job.description), job.place)


@search_source("Webhooks", icon="webhook", position=56, permission="functions.view_hook")
def webhooks(request: HttpRequest, text: str) -> Iterator[Result]:
    """Webhooks by their function or trigger, and by their addresses."""
    for hook in Hook.objects.order_by("pk")[:_MOST]:
        link = reverse("admin:functions_hook_change", args=(hook.pk,))
        yield Result(str(hook), link, without_secrets(hook.url))


@search_source("Feature flags", icon="flag", position=58, permission="functions.view_featureflag")
def feature_flags(request: HttpRequest, text: str) -> Iterator[Result]:
    """Flags by their names and descriptions."""
    for flag in FeatureFlag.objects.order_by("name")[:_MOST]:
        link = reverse("admin:functions_featureflag_change", args=(flag.pk,))
        yield Result(flag.name, link, flag.description)


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]
