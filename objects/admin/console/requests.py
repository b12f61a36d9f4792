"""A request to the API that a page makes: run in this process, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from time import perf_counter
from typing import Any, Final

import msgspec

from backend.http.bodies.parsers import query_parameters
from backend.http.call import Call
from backend.http.exceptions import as_service_error
from backend.http.renderers import Answer, json_response, render
from backend.http.targets import answer_apart, target_of
from backend.kernel.errors import CommandUnavailable, ServiceError
from backend.kernel.interruptions import is_from_outside
from backend.kernel.principal import Principal
from backend.kernel.request_context import current
from backend.settings.conf import service_settings

_MOST_SHOWN: Final = 100_000  # bytes of a response


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """A request to the API. ``path`` follows the mount, is escaped and may have a query string."""

    method: str
    path: str
    params: dict[str, str] = field(default_factory=dict)
    body: dict[str, Any] = field(default_factory=dict)


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


def run(principal: Principal, request: ApiRequest, address: str) -> Outcome:
    """Carry out a request for the page whose client has this address.

    Rights, rules and triggers are those of a request over HTTP. Never raises what the request
    raises: that is its outcome.
    """
    request_id = current().request_id
    begin = perf_counter()
    error = None
    try:
        answer = render(_answer(principal, request, address))
        status, content = answer.status_code, answer.content
    except BaseException as failure:  # of the deployment's code: SystemExit, KeyboardInterrupt
        if is_from_outside(failure):
            raise
        error = as_service_error(failure, request_id)
        status, content = error.status, json_response(error.body()).content
    ms = round((perf_counter() - begin) * 1000, 1)
    return Outcome(status, content, error, ms, request_id)


def _answer(principal: Principal, request: ApiRequest, address: str) -> Answer:
    target = target_of(f"{service_settings.MOUNT_PATH}{request.path}")
    if target is None:
        raise CommandUnavailable("There is no such route.", status=404)
    query = request.path.partition("?")[2]
    params: dict[str, Any] = {**(query_parameters(query) if query else {}), **request.params}
    if request.method == "GET":
        params.update(request.body)
    call = Call(principal, request.method, params, request.body, current().request_id, address)
    return answer_apart(target.view_class(), call, target.names)
