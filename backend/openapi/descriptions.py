"""What a view says of itself: ``describes`` beside each handler, and the reading of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar

from django.urls import URLPattern

from backend.http.permissions import Requires
from backend.http.views import METHODS
from backend.kernel.json_types import Schema
from backend.openapi.operations import JSON_TYPE, Body, Operation, Response, answer

Handler = TypeVar("Handler", bound=Callable[..., Any])

_ATTRIBUTE: Final = "described_as"
_NAME: Final = re.compile(r"<(?:\w+:)?(\w+)>")


@dataclass(frozen=True, slots=True)
class Route:
    """A route of the URL configuration: its path (``/classes/{className}``), its view, what the
    configuration passes to it, and its operations by method."""

    path: str
    view: Any
    arguments: Mapping[str, Any]
    operations: Mapping[str, Operation] = field(default_factory=dict)

    def resolved(self, schema: Callable[[Any], Schema]) -> Route:
        """Return it with the schemas of all types, which ``schema`` makes."""
        operations = {name: each.resolved(schema) for name, each in self.operations.items()}
        return replace(self, operations=operations)


@dataclass(frozen=True, slots=True)
class _Declared:
    operation: Operation
    has_own_rights: bool
    method: str


def describes(
    id_: str,
    summary: str,
    *,
    response: Any,
    request: Any = None,
    parameters: tuple[Schema, ...] = (),
    errors: tuple[Response, ...] = (),
    description: str = "",
    requires: Requires | None = None,
    is_public: bool = False,
    can_refuse: bool = True,
    tag: str = "",
    setting: str = "",
    method: str = "",
) -> Callable[[Handler], Handler]:
    """Describe the handler of one method, for the API document.

    ``response`` and ``request`` are types (``schemas.schema_of``), or ``Response`` and ``Body``
    where there is more to say; ``response`` may be a tuple of several. Errors that every route has
    need no mention. What isn't declared comes from the view: ``requires``, ``tag`` and the
    ``parameters`` of all of its methods. ``is_public`` is a handler that needs no header.
    ``method`` is for handlers that aren't named by their method.
    """
    if request is not None and not isinstance(request, Body):
        request = Body({JSON_TYPE: request})
    operation = Operation(
        id_,
        tag,
        summary,
        (*_responses(response), *errors),
        None if is_public else requires or Requires.CLIENT_KEY,
        description,
        parameters,
        request,
        can_refuse,
        setting=setting,
    )
    has_own_rights = is_public or requires is not None

    def mark(handler: Handler) -> Handler:
        name = method or handler.__name__
        setattr(handler, _ATTRIBUTE, _Declared(operation, has_own_rights, name))
        return handler

    return mark


def _responses(response: Any) -> Iterable[Response]:
    if isinstance(response, tuple):
        return response
    return [response if isinstance(response, Response) else answer("The result.", response)]


def routes_of(patterns: Iterable[URLPattern]) -> list[Route]:
    """Return the routes of a URL configuration with what their views say of themselves."""
    return [_route(pattern) for pattern in patterns]


def _route(pattern: URLPattern) -> Route:
    path = "/" + _NAME.sub(_camel_case, str(pattern.pattern))
    view = getattr(pattern.callback, "view_class", None)
    if view is None:
        declared = getattr(pattern.callback, _ATTRIBUTE, None)
        operations = {} if declared is None else {"get": declared.operation}
        return Route(path, pattern.callback, pattern.default_args, operations)
    return Route(path, view, pattern.default_args, _operations(view))


def _operations(view: Any) -> dict[str, Operation]:
    declared: dict[str, _Declared] = {}
    # From the base on: an override without a description keeps the one of what it overrides.
    for kind in reversed(view.__mro__):
        handlers = (getattr(handler, _ATTRIBUTE, None) for handler in vars(kind).values())
        declared |= {each.method: each for each in handlers if each is not None}
    operations = {}
    for method in map(str.lower, METHODS):
        if method in declared:
            own, operation = declared[method], declared[method].operation
            operations[method] = replace(
                operation,
                tag=operation.tag or view.tag,
                requires=operation.requires if own.has_own_rights else view.requires,
                parameters=(*getattr(view, "parameters", ()), *operation.parameters),
            )
    return operations


def _camel_case(match: re.Match[str]) -> str:
    first, *more = match[1].split("_")
    return "{" + first + "".join(word.title() for word in more) + "}"
