"""The usual way with Channels: a consumer in a group, and a publisher that sends to the group
through Redis. Nothing of ours.

``python -m bench.realtime.group_layer`` is the publisher, woken by the same notification as our
service; ``application`` is served by the same server as our sockets. ``GROUP_LAYER`` names the
layer: ``core`` or ``pubsub``.
"""

from __future__ import annotations

import asyncio
import json
import os
from typing import Any

from django.conf import settings

_LAYERS = {
    "core": "channels_redis.core.RedisChannelLayer",
    "pubsub": "channels_redis.pubsub.RedisPubSubChannelLayer",
}
_GROUP = "events"

if not settings.configured:
    settings.configure(
        CHANNEL_LAYERS={
            "default": {
                "BACKEND": _LAYERS[os.environ.get("GROUP_LAYER", "core")],
                "CONFIG": {"hosts": [os.environ.get("REDIS_URL", "")], "prefix": "bench"},
            }
        }
    )

from channels.generic.websocket import AsyncWebsocketConsumer  # noqa: E402
from channels.layers import get_channel_layer  # noqa: E402


class Listening(AsyncWebsocketConsumer):
    """A client that is sent everything."""

    groups = [_GROUP]

    async def publish_text(self, message: dict[str, Any]) -> None:
        await self.send(text_data=message["text"])


_consumer = Listening.as_asgi()


async def application(scope: Any, receive: Any, send: Any) -> None:
    """ASGI."""
    if scope["type"] == "websocket":
        await _consumer(scope, receive, send)
    elif scope["type"] == "lifespan":
        while True:
            message = await receive()
            await send({"type": f"{message['type']}.complete"})
            if message["type"] == "lifespan.shutdown":
                return
    else:
        await send({"type": "http.response.start", "status": 404, "headers": []})
        await send({"type": "http.response.body", "body": b""})


async def _publish() -> None:
    import psycopg

    layer = get_channel_layer()
    url = os.environ["DATABASE_URL"]
    listening = await psycopg.AsyncConnection.connect(url, autocommit=True)
    reading = await psycopg.AsyncConnection.connect(url, autocommit=True)
    await listening.execute("LISTEN chain_outbox")
    print("ready", flush=True)
    last = 0
    async for notification in listening.notifies():
        network, newest = map(int, notification.payload.split())
        if newest <= last:
            continue
        rows = await reading.execute(
            "SELECT seq, payload FROM chain_outbox WHERE network_id = %s AND seq > %s"
            " AND op = 'added' ORDER BY seq",
            (network, last),
        )
        for seq, payload in await rows.fetchall():
            last = seq
            event = json.loads(payload)
            text = json.dumps({"event": event["eventName"], "data": event["args"]})
            await layer.group_send(_GROUP, {"type": "publish_text", "text": text})


if __name__ == "__main__":
    asyncio.run(_publish())
