"""The base of every REST view.

A view says which methods it has and what it requires, and each method reads: decode, call the
door, encode. The base does what all have in common, in this order: body, credentials, method
override, rate limits, route permission, method, and at the end any exception.

It is DRF's ``APIView`` with a ``dispatch`` of its own: DRF's negotiation, wrapped request and
response cost more than a whole get by id (``docs/decisions/requests.md``), while its place in the
class tree keeps DRF's tools (schema generation, routers, test client) usable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ClassVar

from django.http import HttpRequest, HttpResponse
from rest_framework.views import APIView

from backend.http import authentication, idempotency, rate_limits
from backend.http.authentication import Credentials
from backend.http.bodies import parsers
from backend.http.call import Call
from backend.http.context import client_address
from backend.http.exceptions import error_response
from backend.http.headers import header_names, read_header
from backend.http.idempotency import Keeping
from backend.http.permissions import Requires, check_route
from backend.http.renderers import Answer, render
from backend.kernel.errors import CommandUnavailable, InvalidJSON, ServiceError
from backend.kernel.interruptions import is_from_outside
from backend.kernel.principal import Principal
from backend.kernel.request_context import current, take_refusal
from backend.logs.setup import get_logger
from backend.settings.conf import service_settings

METHODS = ("GET", "POST", "PUT", "DELETE")
_CONTEXT_HEADER = header_names("CLOUD_CONTEXT")


class MethodNotAllowed(CommandUnavailable):
    """The route is there, but not for this method."""

    status = 405

    def __init__(self, method: str, allowed: tuple[str, ...]) -> None:
        super().__init__(f"The method {method} is not available here.")
        self.headers = {"Allow": ", ".join(allowed)}


class ServiceView(APIView):
    """A REST route. Subclasses define ``get``, ``post``, ``put``, ``delete`` as
    ``(call, **names from the path) -> Answer``."""

    requires: ClassVar[Requires] = Requires.CLIENT_KEY
    with_session: ClassVar[bool] = True
    """Whether a session token that comes along has to be a valid one."""
    gives_refusals: ClassVar[bool] = True
    """Whether the error of a webhook after the operation becomes the response."""
    in_transaction: ClassVar[bool] = True
    """Whether it may be part of a batch that is undone as a whole."""
    serves_files: ClassVar[bool] = False
    """Whether it answers with uploaded content: on ``FILE_HOST`` alone, where that is set."""
    keeping: ClassVar[Keeping] = Keeping.IN_TRANSACTION
    """How its answers are kept for requests with an id that are sent again."""
    tag: ClassVar[str] = ""
    """The group of its operations in the API document."""
    parameters: ClassVar[tuple[dict[str, Any], ...]] = ()
    """Parameters of all its methods, for the API document: names in its path that need words."""
    source: ClassVar[Any] = None
    """What generates its operations in the API document (``backend.openapi.Source``), or None if
    it describes them itself."""

    @classmethod
    def as_view(cls, **initkwargs: Any) -> Callable[..., HttpResponse]:
        """As Django's, but with one instance for all requests and threads: views must not store a
        request's state on ``self``. Handlers get a ``Call`` and the names from the path.
        """
        view = super().as_view(**initkwargs)
        instance = cls(**initkwargs)

        @wraps(view)  # with the attributes by which Django's and DRF's tools know a view
        def shared_view(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            return instance.dispatch(request, *args, **kwargs)

        return shared_view

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            call = read_call(request, with_session=self.with_session)
            request_id = idempotency.request_id(request.META)
            if request_id is None:
                answer = self.answer(call, **kwargs)
            else:
                answer = idempotency.answer(
                    request_id,
                    call,
                    request.path_info[len(service_settings.MOUNT_PATH) :],
                    self.keeping_of(call, **kwargs),
                    lambda call: self.answer(call, **kwargs),
                )
            refusal = take_refusal()
            if refusal is not None and self.gives_refusals:
                raise refusal
            response = render(answer)
        except BaseException as error:  # of the deployment's code: SystemExit, KeyboardInterrupt
            if is_from_outside(error):
                raise
            response = error_response(error, request)
        return rate_limits.stamped(response, request)

    def answer(self, call: Call, **kwargs: str) -> Answer:
        """Check the route's permission and the method, and run it. Raises ``ServiceError``."""
        check_route(self.requires, call.principal)
        handler: Callable[..., Answer] | None = None
        if call.method in METHODS:
            handler = getattr(self, call.method.lower(), None)
        if handler is None:
            raise MethodNotAllowed(call.method, self._methods())
        return handler(call, **self.parse_names(kwargs))

    def parse_names(self, names: Mapping[str, str]) -> dict[str, str]:
        """Return the parameters of the route as the checked types that handlers take.

        Views whose routes have names of classes, objects or networks override this.
        """
        return dict(names)

    def keeping_of(self, call: Call, **kwargs: str) -> Keeping:
        """As ``keeping``, for a route where it depends on the call."""
        if self.keeping is Keeping.IN_TRANSACTION and not self.in_transaction:
            return Keeping.AFTERWARDS
        return self.keeping

    def _methods(self) -> tuple[str, ...]:
        return tuple(method for method in METHODS if hasattr(self, method.lower()))


def read_call(request: HttpRequest, *, with_session: bool = True) -> Call:
    """Decode a request that may pass. Raises the errors of ``parsers``, ``authentication`` and
    ``gate``."""
    method = request.method or ""
    credentials = authentication.of_request(request.META)
    proven = None
    if credentials.application_id is not None and parsers.has_body(request.META):
        proven = _check_keys(request, credentials, method)
    try:
        body = parsers.read_body(request)
    except ServiceError:
        rate_limits.enter_unreadable(request)
        raise
    params: Mapping[str, Any] = parsers.read_query(request)
    context = _context(request, body)
    if body:
        if method == "POST" and "_method" in body:
            method = _override(body["_method"])
        credentials = authentication.take_from_body(body, credentials)
        if method == "GET":
            params = {**params, **body}
    elif method == "HEAD":
        method = "GET"
    principal, address, key = rate_limits.admitted(
        request, credentials, method, params, body, with_session=with_session, proven=proven
    )
    if principal.is_maintenance:
        get_logger("http").info(
            "maintenance key", method=method, path=request.path_info, address=address
        )
    if context is not None:
        current().context = context
    return Call(principal, method, params, body, getattr(request, "id", "-"), address, key)


def _check_keys(request: HttpRequest, credentials: Credentials, method: str) -> Principal | None:
    """Refuse wrong keys in headers before the body is decoded, and count the attempt.

    The principal holds for the whole request: where headers name an application, credentials in the
    body are ignored.
    """
    proven = authentication.proven_by_keys(credentials, client_address(request.META))
    if proven is None:
        rate_limits.admitted(request, credentials, method, with_session=False)
    return proven


def _override(method: object) -> str:
    if not isinstance(method, str) or method.upper() not in METHODS:
        raise InvalidJSON("_method: expected one of GET, POST, PUT, DELETE")
    return method.upper()


def _context(request: HttpRequest, body: dict[str, Any]) -> dict[str, Any] | None:
    """Return the client's context for triggers, from the header or the body, or None.

    Raises ``InvalidJSON`` for anything but an object.
    """
    context: Any = body.pop("_context", None) if body else None
    if context is None:
        text = read_header(request.META, _CONTEXT_HEADER)
        if text is None:
            return None
        # WSGI decodes header bytes as Latin-1.
        context = text.encode("latin-1", "replace")
    return check_context(context)


def check_context(context: Any) -> dict[str, Any]:
    """Return a context, an object or its JSON. Raises ``InvalidJSON``."""
    if isinstance(context, str | bytes):
        raw = context.encode(errors="replace") if isinstance(context, str) else context
        try:
            context = parsers.decode_json(raw, "context")
        except InvalidJSON:
            context = None
    if not isinstance(context, dict):
        raise InvalidJSON("Invalid object for context.")
    return context


class UnknownRoute(ServiceView):
    """What is answered where there is no route: the same error contract as everywhere."""

    requires = Requires.APPLICATION

    def answer(self, call: Call, **kwargs: str) -> Answer:
        raise CommandUnavailable("There is no such route.", status=404)
