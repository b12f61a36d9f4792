"""Which view answers a path below ``MOUNT_PATH``, for requests and for the items of a batch."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, Final, NamedTuple, cast

from django.http import HttpResponse
from django.urls import URLPattern

_NAME: Final = re.compile(r"<(?:\w+:)?(\w+)>")
View = Callable[..., HttpResponse]


class Route(NamedTuple):
    """The view for a path, the names in the path, and the form of all such paths
    (``/classes/{class_name}``)."""

    view: View
    names: dict[str, Any]
    form: str


@cache
def _routes() -> dict[str, list[tuple[URLPattern, str]]]:
    """The routes of ``backend.rest_urls`` (whose views use this module) by their first two words,
    those whose second word is none or a parameter by their first.

    Django's resolver would try one after the other, and build an object that nothing needs here.
    """
    routes: dict[str, list[tuple[URLPattern, str]]] = {}
    for route in import_module("backend.rest_urls").urlpatterns:
        text = str(route.pattern)
        form = "/" + _NAME.sub(r"{\1}", text)
        first, second = _first_words(text)
        beginning = first if not second or "<" in second else f"{first}/{second}"
        routes.setdefault(beginning, []).append((route, form))
    return routes


def resolve(path: str) -> Route | None:
    """The route of a path (``/classes/Foo``), or None.

    A slash at the end means nothing: the JavaScript SDK lists classes at ``/schemas/``.
    """
    if path.endswith("/"):
        path = path[:-1]
    bare = path[1:]
    first, second = _first_words(bare)
    for beginning in (f"{first}/{second}", first):
        for route, form in _routes().get(beginning, ()):
            match = route.pattern.match(bare)
            if match:
                return Route(cast(View, route.callback), {**match[2], **route.default_args}, form)
    return None


def _first_words(path: str) -> tuple[str, str]:
    first, _, rest = path.partition("/")
    return first, rest.partition("/")[0]
