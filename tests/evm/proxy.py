"""A JSON-RPC proxy that stands between the service and a node, and fails on demand.

    with proxied(node) as proxy:
        proxy.on("eth_getLogs", before(lambda: node.reorg(2)), times=1)
        proxy.on("eth_getTransactionReceipt", gives(None))
        proxy.on_request(too_many_requests(retry_after=3), times=2)

What it can do stands in ``tests.evm.faults``. Without a word it passes everything on as it
is, and counts.
"""

from __future__ import annotations

import json
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import urllib3

from tests.evm.node import Node
from tests.evm.socket_proxy import SocketProxy


class RpcError(Exception):
    """Raised by a hook: this call is answered with an error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.error = {"code": code, "message": message} | ({} if data is None else {"data": data})


class HttpAnswer(Exception):
    """Raised by a hook: the whole request is answered with this."""

    def __init__(self, status: int, body: bytes = b"", **headers: str) -> None:
        super().__init__(status)
        self.status = status
        self.body = body
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


class Dropped(Exception):
    """Raised by a hook: the connection ends without an answer, or after these bytes of one."""

    def __init__(self, sent: bytes = b"") -> None:
        super().__init__()
        self.sent = sent


@dataclass(frozen=True)
class Call:
    """A call on its way to the node; ``forward`` asks the node, with ``params`` of its own or with
    others, as often as one likes."""

    method: str
    params: list[Any]
    ask: Callable[[str, Sequence[Any]], Any] = field(repr=False)

    def forward(self, *params: Any) -> Any:
        return self.ask(self.method, list(params) or self.params)


Hook = Callable[[Call], Any]
RequestHook = Callable[[list[dict[str, Any]]], None]
ReplyHook = Callable[[list[dict[str, Any]]], "list[dict[str, Any]] | bytes"]


@dataclass
class _Told:
    """A hook, and how often it is still used; None is always."""

    hook: Callable[..., Any]
    left: int | None


class Proxy:
    """The proxy of one node; its ``url`` and ``socket_url`` are a provider's."""

    def __init__(self, node: Node) -> None:
        self.node_url = node.url
        self.requests = 0
        self.calls: Counter[str] = Counter()
        self.bytes_answered = 0
        self.closes_connections = False
        """Whether each response announces the end of its connection, and ends it."""
        self.log: list[str] = []
        self._told: dict[str, list[_Told]] = {}
        self._lock = threading.Lock()
        self._pool = urllib3.PoolManager(maxsize=32, retries=False)
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self.port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.socket = SocketProxy(node)
        self._threads = [threading.Thread(target=self._server.serve_forever, args=(0.02,))]

    @property
    def socket_url(self) -> str:
        return self.socket.url

    # -- Behaviour ------------------------------------------------------------------------------

    def on(self, method: str, hook: Hook, times: int | None = None) -> None:
        """Answer calls of a method (``*`` is any) with what ``hook`` returns. The newest hook of
        a method is called; when it has been used so many ``times``, the one before."""
        self._tell(method, hook, times)

    def on_request(self, hook: RequestHook, times: int | None = None) -> None:
        """Ask ``hook`` with the calls of each HTTP request before they are handled."""
        self._tell("request", hook, times)

    def on_reply(self, hook: ReplyHook, times: int | None = None) -> None:
        """Let ``hook`` exchange the answers of each HTTP request, or give the bytes of a body."""
        self._tell("reply", hook, times)

    def be_good(self) -> None:
        """Forget all behaviours."""
        with self._lock:
            self._told.clear()
        self.socket.be_good()

    def forget_counts(self) -> None:
        with self._lock:
            self.requests, self.bytes_answered = 0, 0
            self.calls.clear()
            self.log.clear()

    def refuse(self) -> None:
        """Refuse connections, as a machine does where nothing listens."""
        self._server.refusing = True
        self._server.end_connections()

    def accept(self) -> None:
        """End of ``refuse``."""
        self._server.refusing = False

    # -- Its work ------------------------------------------------------------------------------

    def start(self) -> None:
        for thread in self._threads:
            thread.start()
        self.socket.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._server.end_connections()
        self.socket.stop()
        for thread in self._threads:
            thread.join(10)
        self._pool.clear()

    def answer(self, body: bytes) -> bytes:
        """The answer to a request. Raises what a hook raises for the whole of it."""
        document = json.loads(body)
        calls = document if isinstance(document, list) else [document]
        with self._lock:
            self.requests += 1
            for call in calls:
                self.calls[call["method"]] += 1
                self.log.append(call["method"])
        if (hook := self._hook("request")) is not None:
            hook(calls)
        methods = {call["method"] for call in calls}
        if self._told.keys() & ({"reply", "*"} | methods):
            answer = self._by_hooks(calls, single=not isinstance(document, list))
        else:
            answer = self._post(body)
        self.bytes_answered += len(answer)
        return answer

    def ask(self, method: str, params: Sequence[Any]) -> Any:
        """The node's result. Raises ``RpcError`` for its error."""
        body = {"jsonrpc": "2.0", "id": 0, "method": method, "params": params}
        reply = json.loads(self._post(json.dumps(body).encode()))
        if "error" in reply:
            error = reply["error"]
            raise RpcError(error["code"], error["message"], error.get("data"))
        return reply["result"]

    def _by_hooks(self, calls: list[dict[str, Any]], *, single: bool) -> bytes:
        replies: list[dict[str, Any]] | bytes = [self._reply(call) for call in calls]
        if (hook := self._hook("reply")) is not None:
            replies = hook(replies)
        if isinstance(replies, bytes):
            return replies
        return json.dumps(replies[0] if single and len(replies) == 1 else replies).encode()

    def _reply(self, call: dict[str, Any]) -> dict[str, Any]:
        method, params = call["method"], call.get("params", [])
        hook = self._hook(method) or self._hook("*")
        reply = {"jsonrpc": "2.0", "id": call["id"]}
        try:
            if hook is None:
                return {**reply, "result": self.ask(method, params)}
            return {**reply, "result": hook(Call(method, params, self.ask))}
        except RpcError as refused:
            return {**reply, "error": refused.error}

    def _post(self, body: bytes) -> bytes:
        headers = {"Content-Type": "application/json"}
        try:
            response = self._pool.request("POST", self.node_url, body=body, headers=headers)
        except urllib3.exceptions.HTTPError:
            raise HttpAnswer(502, b"<html>Bad Gateway</html>") from None
        return response.data

    def _tell(self, key: str, hook: Callable[..., Any], times: int | None) -> None:
        with self._lock:
            self._told[key] = [*self._told.get(key, []), _Told(hook, times)]

    def _hook(self, key: str) -> Callable[..., Any] | None:
        with self._lock:
            behaviours = self._told.get(key, [])
            while behaviours and behaviours[-1].left == 0:
                behaviours.pop()
            if not behaviours:
                self._told.pop(key, None)
                return None
            if behaviours[-1].left is not None:
                behaviours[-1].left -= 1
            return behaviours[-1].hook


@contextmanager
def proxied(node: Node) -> Iterator[Proxy]:
    """A proxy before a node."""
    proxy = Proxy(node)
    proxy.start()
    try:
        yield proxy
    finally:
        proxy.stop()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], handler: Any) -> None:
        super().__init__(address, handler)
        self.refusing = False
        self._open: set[socket.socket] = set()

    def verify_request(self, request: Any, client_address: Any) -> bool:
        return not self.refusing

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is none of ours."""

    def end_connections(self) -> None:
        for item in [*self._open]:
            with suppress(OSError):
                item.shutdown(socket.SHUT_RDWR)


def _handler(proxy: Proxy) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            try:
                self._send(200, proxy.answer(body), {"Content-Type": "application/json"})
            except HttpAnswer as told:
                self._send(told.status, told.body, told.headers)
            except Dropped as told:
                self.wfile.write(told.sent)
                self.close_connection = True

        def _send(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            if proxy.closes_connections:
                self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Silence."""

    return Handler
