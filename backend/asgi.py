"""The ASGI application: sockets. Over HTTP it answers only whether it is alive."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from typing import Any, cast

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "backend.settings")
get_asgi_application()  # sets Django up before anything below is imported

from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from django.urls import re_path  # noqa: E402

from realtime.routing import websocket_urlpatterns  # noqa: E402

Send = Callable[[dict[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[dict[str, Any]]]


async def no_such_socket(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """Refuse the handshake: the client sees 403, and nothing is logged as an error."""
    await receive()
    await send({"type": "websocket.close", "code": 4404})


async def alive(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """``/health``, and 404 for everything else: REST is answered by the web process."""
    if scope["path"] == "/health":
        status, body = 200, b'{"status":"ok"}'
    else:
        status, body = 404, b'{"code":108,"error":"only sockets are served here"}'
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


application = ProtocolTypeRouter(
    {
        "http": alive,
        "websocket": URLRouter([*websocket_urlpatterns, re_path("", cast(Any, no_such_socket))]),
    }
)
