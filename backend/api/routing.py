"""Which view answers a path below ``MOUNT_PATH``, for requests and for the items of a batch."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, cast

from django.http import HttpResponse
from django.urls import URLPattern

View = Callable[..., HttpResponse]


@cache
def _routes() -> dict[str, list[URLPattern]]:
    """The routes of ``backend.api.urls`` (whose views use this module) by their first word.

    Django's resolver would try one after the other, and build an object that nothing needs here.
    """
    found: dict[str, list[URLPattern]] = {}
    for route in import_module("backend.api.urls").urlpatterns:
        found.setdefault(str(route.pattern).partition("/")[0], []).append(route)
    return found


def resolve(path: str) -> tuple[View, dict[str, Any]] | None:
    """The view for a path (``/classes/Foo``) and the names in it, or None.

    A slash at the end means nothing: the JavaScript SDK lists classes at ``/schemas/``.
    """
    if path.endswith("/"):
        path = path[:-1]
    bare = path[1:]
    for route in _routes().get(bare.partition("/")[0], ()):
        match = route.pattern.match(bare)
        if match:
            return cast(View, route.callback), {**match[2], **route.default_args}
    return None
