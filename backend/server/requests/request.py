"""One complete request, as a thread runs it."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from backend.kernel.errors import InternalError, ServiceError
from backend.kernel.request_context import CLIENT_CONNECTION, ClientConnection
from backend.logs.setup import get_logger
from backend.server.refusals import Overloaded
from backend.server.requests.bodies import Body
from backend.server.responses.heads import Response, announced_length, compressed, error_response
from backend.server.responses.long_bodies import close_iterable, gather

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

log = get_logger("server")


class Owner(Protocol):
    """The connection of a request."""

    def answered(self, request: Request, response: Response) -> None: ...

    def drop(self) -> None: ...


class Receiver(Owner, Protocol):
    """The connection, as its parser sees it."""

    def may_begin(self) -> bool:
        """Whether one more request is accepted. Otherwise nothing more is parsed."""

    def body_begins(self) -> None:
        """The headers of a request are complete, and its body follows."""

    def receive(self, request: Request) -> None:
        """Answer a complete request."""

    def refuse(self, error: ServiceError) -> None:
        """Send an error after the pending responses, and end the connection."""

    def hand_over(self, data: bytes | None) -> None:
        """Hand over the connection with the bytes of its handshake; None behind a request."""


class Request:
    """A request with its body. Only ``run`` may be called in a thread."""

    __slots__ = (
        "_application",
        "address",
        "body",
        "connection",
        "environ",
        "keep_alive",
        "method",
        "owner",
        "version",
    )

    def __init__(
        self,
        application: Application,
        owner: Owner,
        environ: dict[str, Any],
        address: str,
        *,
        keep_alive: bool,
    ) -> None:
        self._application = application
        self.owner = owner
        self.environ = environ
        self.address = address
        self.method: str = environ["REQUEST_METHOD"]
        self.version: str = environ["SERVER_PROTOCOL"].removeprefix("HTTP/")
        self.keep_alive = keep_alive
        self.body: Body | None = None
        self.connection = ClientConnection()

    @property
    def is_abandoned(self) -> bool:
        """Whether the client has disconnected."""
        return self.connection.is_closed

    def run(self) -> Response:
        """Return the application's response, or an internal error if it raises.

        The application isn't called if the client has disconnected.
        """
        if self.is_abandoned:
            return Response(503)
        environ = self.environ
        started: list[Any] = []

        def start_response(status: str, headers: list[tuple[str, str]], *_: Any) -> None:
            started[:] = status, headers

        try:
            environ[CLIENT_CONNECTION] = self.connection
            environ["wsgi.input"] = io.BytesIO() if self.body is None else self.body.reader()
            result = self._application(environ, start_response)
            response = _response(started, result, has_body=self.method != "HEAD")
            accepted = environ.get("HTTP_ACCEPT_ENCODING")
            return response if accepted is None else compressed(response, accepted)
        except Overloaded as error:
            return error_response(error)
        except BaseException as error:  # SystemExit too: thread and connection survive
            log.error("the application failed", exc_info=error)
            return error_response(InternalError("Internal server error."))

    def finish(self, response: Response) -> None:
        """Give the response to the connection, and free the body."""
        self.free()
        try:
            self.owner.answered(self, response)
        except Exception as error:
            log.error("a response can't be sent", exc_info=error)
            self.owner.drop()

    def free(self) -> None:
        """Free the body's memory or file. Repeated calls have no effect."""
        if self.body is not None:
            self.body.close()

    def fail(self, error: ServiceError) -> None:
        """Refuse a request that wasn't started."""
        self.finish(error_response(error))


def _response(started: list[Any], result: Iterable[bytes], *, has_body: bool) -> Response:
    if type(result) is list:
        status, headers = started
        return Response(int(status[:3]), headers, b"".join(result))
    pieces = iter(result)
    try:
        body, is_whole = gather(pieces)
    except BaseException:
        close_iterable(result)
        raise
    status, headers = started
    if is_whole:
        close_iterable(result)
        if has_body and announced_length(headers) not in (None, len(body)):
            raise ValueError("The response isn't as long as its Content-Length.")
        return Response(int(status[:3]), headers, body)
    return Response(int(status[:3]), headers, body, pieces, result)
