"""The realtime process as it is, with one more socket at ``/echo`` for tests of sockets alone."""

from __future__ import annotations

import asyncio
import os

import django
from django.urls import re_path

os.environ["DJANGO_SETTINGS_MODULE"] = "backend.settings.django"
django.setup()

from realtime import routing  # noqa: E402
from realtime.process.process import Process  # noqa: E402
from realtime.sockets.connections import Socket  # noqa: E402


class Echo(Socket):
    """Echoes messages. ``all 3 1000`` sends three frames of 1,000 bytes to everybody,
    ``count`` says how many are connected, ``address`` what the client's is. ``wait`` is answered
    when somebody says ``go on``, ``waits`` says how many have begun."""

    kind = "echo"
    waits = 0
    may_go_on: asyncio.Event

    async def received(self, text: str) -> None:
        word, _, remaining = text.partition(" ")
        if word == "all":
            times, size = map(int, remaining.split())
            for number in range(times):
                for socket in tuple(Process.current().sockets):
                    socket.enqueue(f"{number} ".ljust(size, "x"))
        elif word == "count":
            self.enqueue(str(len(Process.current().sockets)))
        elif word == "wait":
            Echo.waits += 1
            if Echo.waits == 1:
                Echo.may_go_on = asyncio.Event()
            await Echo.may_go_on.wait()
        elif text == "go on":
            Echo.may_go_on.set()
        elif word == "waits":
            self.enqueue(str(Echo.waits))
        elif word == "address":
            self.enqueue(self.address)
        else:
            self.enqueue(text)


routing.websocket_urlpatterns.append(re_path("^echo$", Echo.as_asgi()))  # type: ignore[arg-type]

if __name__ == "__main__":
    from backend.serve import serve

    serve("realtime")
