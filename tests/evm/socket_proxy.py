"""The WebSocket half of the proxy: passes messages on, and falls silent, closes or lies as it is
told."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect
from websockets.sync.server import ServerConnection, serve

from tests.evm.node import Node

Change = Callable[[dict[str, Any]], "dict[str, Any] | None"]


class SocketProxy:
    """A WebSocket address before a node."""

    def __init__(self, node: Node) -> None:
        self.node_url = node.socket_url
        self.opened = 0  # connections so far
        self.sent = 0  # messages that clients were sent
        self.methods: list[str] = []  # what clients have asked for
        self._silent = False
        self._refusing = False
        self._change: Change | None = None
        self._clients: list[ServerConnection] = []
        self._server = serve(self._serve, "127.0.0.1", 0, compression=None, ping_interval=None)
        port = self._server.socket.getsockname()[1]
        self.url = f"ws://127.0.0.1:{port}"
        self._thread = threading.Thread(target=self._server.serve_forever)

    @property
    def clients(self) -> int:
        """How many are connected now."""
        return len(self._clients)

    def fall_silent(self) -> None:
        """Pass nothing on any more; the connections stay as they are."""
        self._silent = True

    def refuse(self) -> None:
        """Close what is open, and what is opened from now on."""
        self._refusing = True
        self.close_all()

    def close_all(self) -> None:
        """Close what is open."""
        for client in [*self._clients]:
            with suppress(ConnectionClosed, OSError):
                client.close(1012, "the proxy was told to")

    def alter(self, change: Change) -> None:
        """Let ``change`` exchange each message of the node, or swallow it by None."""
        self._change = change

    def tell(self, message: dict[str, Any] | str) -> None:
        """Send all clients a message that the node did not send."""
        text = message if isinstance(message, str) else json.dumps(message)
        for client in [*self._clients]:
            with suppress(ConnectionClosed):
                client.send(text)
                self.sent += 1

    def be_good(self) -> None:
        self._silent = self._refusing = False
        self._change = None

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self.close_all()
        self._thread.join(10)

    def _serve(self, client: ServerConnection) -> None:
        self.opened += 1
        if self._refusing:
            client.close(1013, "try again later")
            return
        try:
            with connect(self.node_url, compression=None, max_size=None) as node:
                self._clients.append(client)
                self._pass_on(client, node)
        except OSError:
            client.close(1014, "no node")

    def _pass_on(self, client: ServerConnection, node: Any) -> None:
        back = threading.Thread(target=self._pass_back, args=(node, client))
        back.start()
        try:
            for text in client:
                self.methods.append(json.loads(text)["method"])
                node.send(text)
        except ConnectionClosed:
            pass
        finally:
            self._clients.remove(client)
            node.close()
            back.join(10)

    def _pass_back(self, node: Any, client: ServerConnection) -> None:
        with suppress(ConnectionClosed):
            for text in node:
                if self._silent:
                    continue
                if self._change is not None:
                    changed = self._change(json.loads(text))
                    if changed is None:
                        continue
                    text = json.dumps(changed)
                client.send(text)
                self.sent += 1
        with suppress(ConnectionClosed, OSError):
            client.close(1011, "the node is gone")
