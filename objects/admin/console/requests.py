"""A request to the API that a page makes: run in this process, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from time import perf_counter
from typing import Any, Final

import msgspec

from backend.http.bodies.parsers import query_parameters
from backend.http.call import Call
from backend.http.exceptions import as_service_error
from backend.http.renderers import json_response, render
from backend.http.targets import target_of
from backend.kernel.errors import CommandUnavailable, ServiceError
from backend.kernel.interruptions import is_from_outside
from backend.kernel.principal import Principal
from backend.kernel.request_context import current, take_refusal
from backend.settings.conf import service_settings

_MOST_SHOWN: Final = 100_000  # bytes of a response


@dataclass(frozen=True)
class Outcome:
    """The response that a client would have received."""

    status: int
    content: bytes
    error: ServiceError | None
    ms: float
    request_id: str

    @cached_property
    def value(self) -> Any:
        """The response as plain values."""
        return msgspec.json.decode(self.content)

    @cached_property
    def text(self) -> str:
        """The response with line breaks, or its beginning."""
        if self.is_cut:
            return self.content[:_MOST_SHOWN].decode(errors="ignore")
        return msgspec.json.format(self.content, indent=2).decode()

    @property
    def is_cut(self) -> bool:
        return len(self.content) > _MOST_SHOWN


def run(
    principal: Principal,
    method: str,
    path: str,
    body: dict[str, Any],
    address: str,
    params: Mapping[str, Any] | None = None,
) -> Outcome:
    """Carry out a request. ``path`` may have a query string, with or without the mount.

    Rights, rules and triggers are those of a request over HTTP. Never raises what the request
    raises: that is its outcome.
    """
    request_id = current().request_id
    begin = perf_counter()
    error = None
    try:
        status, content = _answer(principal, method, path, body, address, params, request_id)
    except BaseException as failure:  # of the deployment's code: SystemExit, KeyboardInterrupt
        if is_from_outside(failure):
            raise
        error = as_service_error(failure, request_id)
        status, content = error.status, json_response(error.body()).content
    ms = round((perf_counter() - begin) * 1000, 1)
    return Outcome(status, content, error, ms, request_id)


def with_mount(path: str) -> str:
    """Return a path with the mount in front, which people may leave out."""
    mount = service_settings.MOUNT_PATH
    path = path if path.startswith("/") else f"/{path}"
    return path if path.startswith(f"{mount}/") else f"{mount}{path}"


def _answer(
    principal: Principal,
    method: str,
    path: str,
    body: dict[str, Any],
    address: str,
    params: Mapping[str, Any] | None,
    request_id: str,
) -> tuple[int, bytes]:
    target = target_of(with_mount(path))
    if target is None:
        raise CommandUnavailable("There is no such route.", status=404)
    query = path.partition("?")[2]
    parameters: dict[str, Any] = {**(query_parameters(query) if query else {}), **(params or {})}
    if method == "GET":
        parameters.update(body)
    take_refusal()  # of what the page did before
    call = Call(principal, method, parameters, body, request_id, address)
    answer = target.view_class().answer(call, **target.names)
    refusal = take_refusal()
    if refusal is not None:
        raise refusal
    return answer.status, render(answer).content
