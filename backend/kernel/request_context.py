"""The request under way, for code far from the HTTP edge that needs to know of it.

Server functions and triggers learn where a call came from. In between is the object service, whose
signatures have objects only, so the request travels beside them, one per thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from backend.kernel.errors import ServiceError
from backend.kernel.memory_pool import ResultMemory

# Credentials go no further than the edge.
_SECRET_ENDINGS = ("-key", "-session-token")
_BARE_HEADERS = ("CONTENT_TYPE", "CONTENT_LENGTH")  # without a prefix in WSGI
_SECRET_HEADERS = frozenset(("authorization", "proxy-authorization", "cookie"))


CLIENT_CONNECTION: Final = "service.client_connection"
"""The key of the ``ClientConnection`` in a WSGI environment."""


@dataclass(slots=True)
class ClientConnection:
    """The connection that a request came over, as its threads may know it."""

    is_closed: bool = False
    """Whether no response can be sent any more: the client has gone."""


@dataclass(slots=True)
class Budget:
    """What a request with a client's key may ask of the database; see ``limits.statements``."""

    address: str
    """The client's address, or the network that counts as one."""
    spent: float = 0.0
    """Seconds that the request's limited statements have taken so far."""
    written: int = 0
    """Bytes of the objects that it has written so far; see ``limits.written``."""
    client: ClientConnection = field(default_factory=ClientConnection)


@dataclass(slots=True)
class WebhookUse:
    """What the webhooks of a request have done so far."""

    seconds: float = 0.0
    """Time that all of them have taken."""
    seconds_after: float = 0.0
    """Time that those after an operation have taken, which can't change it any more."""
    refusal: ServiceError | None = None
    """The error that one of those has responded with, which the client gets as in Parse."""


@dataclass
class Current:
    """One request, or one task of the service's own.

    ``context`` is the client's (``X-Svc-Cloud-Context``), shared by all triggers and functions of
    the request: what a trigger before a write puts there, the one after it finds.
    """

    request_id: str = "-"
    address: str = ""
    meta: Mapping[str, Any] = field(default_factory=dict, repr=False)
    context: dict[str, Any] = field(default_factory=dict)
    budget: Budget | None = None
    """None for the master key, and where there is no HTTP request."""
    results: ResultMemory | None = None
    """None where there is no HTTP request to the API."""
    depth: int = 0
    """How many functions and triggers are under way, one inside of the other."""
    method: str = ""
    """What the request does, which SDKs send in its body (``_method``)."""
    user_id: str | None = None
    session_id: str | None = None
    key: str = ""
    """The kind of its key, for its log line: "master", "rest key", …"""
    names: Mapping[str, str] = field(default_factory=dict)
    """The names in the path of its route: of a class, an object, a function, …"""
    item: str = ""
    """Method and path of the item of a batch that ``error`` and ``names`` are about."""
    ran: tuple[str, ...] = ()
    """The first functions, triggers and jobs that ran for it, such as "function pay"."""
    error: ServiceError | None = None
    """The error that is its response."""
    webhooks: WebhookUse | None = None
    """None until a webhook is called."""

    @cached_property
    def headers(self) -> Mapping[str, str]:
        """The request's headers by lower-case name, without keys, tokens and cookies."""
        headers = {
            name.removeprefix("HTTP_").replace("_", "-").lower(): str(value)
            for name, value in self.meta.items()
            if name.startswith("HTTP_") or (name in _BARE_HEADERS and value)
        }
        return {
            name: value
            for name, value in headers.items()
            if name not in _SECRET_HEADERS and not name.endswith(_SECRET_ENDINGS)
        }


_current: ContextVar[Current | None] = ContextVar("current", default=None)


def current() -> Current:
    """The request under way; outside of one, a new and empty one that holds from now on."""
    context = _current.get()
    if context is None:
        context = Current()
        _current.set(context)
    return context


def take_refusal() -> ServiceError | None:
    """Return the error of a webhook after an operation, once, or None."""
    use = current().webhooks
    if use is None or use.refusal is None:
        return None
    refusal, use.refusal = use.refusal, None
    return refusal


def begin(context: Current) -> None:
    """Let this be what is under way, until something else is; for a worker's tasks."""
    _current.set(context)


@contextmanager
def as_current(context: Current) -> Iterator[Current]:
    """Let this be the request under way."""
    token = _current.set(context)
    try:
        yield context
    finally:
        _current.reset(token)
