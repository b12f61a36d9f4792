"""The ASGI application: sockets. Over HTTP it answers only whether it is alive and ready."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Any, cast

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "backend.settings.django")
get_asgi_application()  # sets Django up before anything below is imported

from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from django.urls import re_path  # noqa: E402

from backend.http.edge import file_host  # noqa: E402
from realtime.process.admission import Refusal, reject  # noqa: E402
from realtime.process.garbage import collect_rarely  # noqa: E402
from realtime.process.process import Process  # noqa: E402
from realtime.routing import websocket_urlpatterns  # noqa: E402

Send = Callable[[dict[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[dict[str, Any]]]


async def no_such_socket(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """Refuse the handshake with 404 and the usual JSON error."""
    await receive()
    await reject(scope, send, Refusal(404, 108, "no socket is served at this path"))


async def lifespan(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """Start and stop the garbage collection and the state of a realtime process."""
    collecting: asyncio.Task[None] | None = None
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            collecting = asyncio.create_task(collect_rarely(Process.current()))
        else:
            if collecting is not None:
                collecting.cancel()
            await Process.stop_current()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return


async def state(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """``/health``: whether this process had better not be started again. ``/ready``: whether all
    of it runs at the moment. 404 for everything else: REST is answered by the web process."""
    process = Process.current()
    if not scope["path"].isprintable():
        await _answer(send, 400, b'{"code":108,"error":"control characters in the path"}')
        return
    good = {"/health": not process.is_hopeless, "/ready": process.is_ready}.get(scope["path"])
    if good is None:
        status, body = 404, b'{"code":108,"error":"only sockets are served here"}'
    elif good:
        status, body = 200, b'{"status":"ok"}'
    else:
        status, body = 503, b'{"code":1,"error":"a part of this process does not run"}'
    await _answer(send, status, body)


async def _answer(send: Send, status: int, body: bytes) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


_sockets = URLRouter([*websocket_urlpatterns, re_path("", cast(Any, no_such_socket))])


async def sockets(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """The sockets, on every host but the one for files."""
    hosts = [value for name, value in scope.get("headers", ()) if name == b"host"]
    if any(file_host.is_requested(host.decode("latin-1")) for host in hosts):
        await no_such_socket(scope, receive, send)
    else:
        await _sockets(scope, receive, send)


application = ProtocolTypeRouter({"http": state, "lifespan": lifespan, "websocket": sockets})
