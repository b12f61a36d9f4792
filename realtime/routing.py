"""The routes of the sockets to their consumers."""

from __future__ import annotations

import re
from typing import Any, cast

from channels.consumer import AsyncConsumer
from django.urls import URLPattern, re_path

from backend.settings.conf import service_settings
from realtime.channel.consumer import EventSocket
from realtime.livequery.consumer import LiveQuerySocket


def _at(path: str, consumer: type[AsyncConsumer]) -> URLPattern:
    """With or without a slash at the end, as clients have it."""
    return re_path(f"^{re.escape(path.strip('/'))}/?\\Z", cast(Any, consumer.as_asgi()))


websocket_urlpatterns: list[URLPattern] = [
    _at("/ws", EventSocket),
    _at("/livequery", LiveQuerySocket),
    # Addresses that Parse's clients derive from that of the server: with its path and without.
    _at(service_settings.MOUNT_PATH, LiveQuerySocket),
    _at("/", LiveQuerySocket),
]
