"""The ASGI application of ``manage.py runserver``: REST, the admin and sockets in one process.

The service itself runs ``backend.wsgi`` and ``backend.asgi`` in processes of their own, with
``backend.server`` and uvicorn.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from asgiref.sync import sync_to_async
from asgiref.wsgi import WsgiToAsgiInstance
from channels.routing import ProtocolTypeRouter

from backend import asgi, wsgi

THREADS: Final = 8

# Threads stay, and so do their connections to the database: CONN_MAX_AGE has no limit.
_threads: Final = ThreadPoolExecutor(THREADS, "request")


class _Request(WsgiToAsgiInstance):
    """One request of the WSGI application, in one of several threads."""

    # Of the class itself: as an attribute it would be bound.
    run_wsgi_app = sync_to_async(
        vars(WsgiToAsgiInstance)["run_wsgi_app"].func, thread_sensitive=False, executor=_threads
    )


async def http(
    scope: dict[str, Any],
    receive: Callable[[], Awaitable[dict[str, Any]]],
    send: Callable[[dict[str, Any]], Awaitable[None]],
) -> None:
    """Answer a request as the web process does."""
    await _Request(wsgi.application)(scope, receive, send)


application = ProtocolTypeRouter(
    {"http": http, "lifespan": asgi.lifespan, "websocket": asgi.sockets}
)
