"""A body is never taken for requests, however early the request is refused, at every hop."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.backend.server.processes import insecure, tls_proxy
from tests.backend.server.running import Reply, Wire
from tests.other_process import OtherProcess, other_process
from tests.rest import CLIENT, MASTER

pytestmark = [pytest.mark.process, pytest.mark.django_db]

INNER = b"GET /api/health HTTP/1.1\r\nHost: localhost\r\n\r\n"
ROW = INNER * 400
LAST = (
    b"GET /api/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    b"X-Request-Id: the-last-request\r\n\r\n"
)
LARGE = INNER * 20_000  # more than servers read of a body that was refused


def lines(headers: dict[str, str]) -> bytes:
    return "".join(f"{name}: {value}\r\n" for name, value in headers.items()).encode()


KEYS, MASTER_KEYS = lines(CLIENT), lines(MASTER)
JSON = b"Content-Type: application/json\r\n"
WRONG = lines({**CLIENT, "X-Svc-REST-API-Key": "wrong"})
# Request line and headers without the framing, body, statuses that are right.
CASES: dict[str, tuple[bytes, bytes, set[int]]] = {
    "upload without rights": (b"POST /api/files/a.html HTTP/1.1\r\n" + KEYS, ROW, {400, 403}),
    "media type": (
        b"POST /api/classes/Smuggled HTTP/1.1\r\nContent-Type: image/png\r\n" + KEYS,
        ROW,
        {415},
    ),
    "no json": (b"POST /api/classes/Smuggled HTTP/1.1\r\n" + JSON + KEYS, ROW, {400}),
    "too large": (b"POST /api/classes/Smuggled HTTP/1.1\r\n" + JSON + KEYS, LARGE, {413}),
    "too large for the master": (
        b"POST /api/classes/Smuggled HTTP/1.1\r\n" + JSON + MASTER_KEYS,
        LARGE,
        {413},
    ),
    "upload too large": (b"POST /api/files/a.txt HTTP/1.1\r\n" + MASTER_KEYS, LARGE, {413}),
    "unknown route": (b"POST /api/nowhere HTTP/1.1\r\n" + KEYS, ROW, {400, 404}),
    "outside of the API": (b"POST /nowhere HTTP/1.1\r\n", LARGE, {413}),
    "method": (b"PATCH /api/classes/Smuggled HTTP/1.1\r\n" + KEYS, ROW, {400, 404, 405}),
    "options": (b"OPTIONS /api/classes/Smuggled HTTP/1.1\r\n", ROW, {200, 204}),
    "large options": (b"OPTIONS /api/classes/Smuggled HTTP/1.1\r\n", LARGE, {200, 204, 413}),
    "get with a body": (b"GET /api/health HTTP/1.1\r\n", ROW, {200}),
    "headers too large": (
        b"POST /api/health HTTP/1.1\r\nX-Filler: " + b"x" * 70_000 + b"\r\n",
        ROW,
        {431},
    ),
    "target too long": (b"POST /api/" + b"x" * 40_000 + b" HTTP/1.1\r\n", ROW, {414, 431}),
    "bad method": (b"BREW /api/health HTTP/1.1\r\n", ROW, {400, 405, 501}),
    "wrong keys": (b"POST /api/classes/Smuggled HTTP/1.1\r\n" + JSON + WRONG, ROW, {403}),
    "wrong keys, large": (
        b"POST /api/classes/Smuggled HTTP/1.1\r\n" + JSON + WRONG,
        LARGE,
        {403, 413},
    ),
}
LIMITS = {
    "MAX_CLIENT_BODY_SIZE": "100000",
    "MAX_BODY_SIZE": "300000",
    "MAX_UPLOAD_SIZE": "300000",
}
# What Go's HTTP library says itself before Caddy sees the request.
GO_REFUSAL = b"431 Request Header Fields Too Large"
FRAMINGS = ("length", "chunks", "expect", "pipelined")


def message(case: str, framing: str) -> bytes:
    """The request; ``pipelined`` is one after a first request in the same packets."""
    head, body, _ = CASES[case]
    head += b"Host: localhost\r\n"
    if framing == "chunks":
        size = 64 * 1024
        pieces = (body[start : start + size] for start in range(0, len(body), size))
        chunks = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
        return head + b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n"
    head += b"Content-Length: %d\r\n" % len(body)
    if framing == "expect":
        head += b"Expect: 100-continue\r\n"
    return (INNER if framing == "pipelined" else b"") + head + b"\r\n" + body


class TlsWire(Wire):
    """The same by TLS."""

    def __init__(self, port: int) -> None:
        super().__init__(port)
        self.socket = insecure().wrap_socket(self.socket, server_hostname="localhost")
        self._read_from(self.socket)


def replies(wire: Wire, case: str, framing: str) -> list[Reply]:
    """Every response to the request. A client that is cut off while it sends still reads."""
    with wire:
        with suppress(OSError):
            wire.send(message(case, framing) + LAST)
        received = wire.responses()
    return [
        reply
        for reply in received
        if reply.status != 100 and reply.headers.get("x-request-id") != "the-last-request"
    ]


def check(case: str, framing: str, received: list[Reply]) -> None:
    if framing == "pipelined":
        assert received.pop(0).status == 200
    assert len(received) == 1, [reply.status for reply in received]
    (reply,) = received
    assert reply.status in CASES[case][2]
    if reply.status >= 400 and reply.body != GO_REFUSAL:
        assert set(reply.json) == {"code", "error"}, reply.body
        assert reply.headers["content-type"].startswith("application/json")


@pytest.fixture(scope="module")
def web(django_db_setup: None, django_db_blocker: Any) -> Iterator[OtherProcess]:
    with django_db_blocker.unblock(), other_process(**LIMITS) as process:
        yield process


@pytest.fixture(scope="module")
def proxy(
    web: OtherProcess, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[int]:
    folder = tmp_path_factory.mktemp("caddy")
    with (
        django_db_blocker.unblock(),
        other_process(**LIMITS, TRUSTED_PROXIES="127.0.0.1/32") as behind,
        tls_proxy(folder, behind.port) as port,
    ):
        yield port


@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.parametrize("case", CASES)
def test_one_request_has_one_response(web: OtherProcess, case: str, framing: str) -> None:
    check(case, framing, replies(Wire(web.port), case, framing))


@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.parametrize("case", CASES)
def test_one_request_has_one_response_by_the_proxy(proxy: int, case: str, framing: str) -> None:
    received = replies(TlsWire(proxy), case, framing)
    check(case, framing, received)


# curl itself refuses to send such a header by HTTP/2.
@pytest.mark.parametrize("case", [case for case in CASES if case != "headers too large"])
def test_one_request_has_one_response_by_http_2(proxy: int, case: str, tmp_path: Path) -> None:
    curl = shutil.which("curl")
    assert curl, "curl is needed for HTTP/2"
    head, body, statuses = CASES[case]
    request_line, *fields = head.decode().rstrip("\r\n").split("\r\n")
    method, target, _ = request_line.split(" ")
    (tmp_path / "body").write_bytes(body)
    (tmp_path / "headers").write_text("\n".join(["Expect:", *fields]))
    command = [
        *(curl, "--silent", "--insecure", "--http2", "--path-as-is", "-X", method),
        *("-H", f"@{tmp_path / 'headers'}", "--data-binary", f"@{tmp_path / 'body'}"),
        *("-o", str(tmp_path / "answer"), "-w", "%{http_version} %{http_code}"),
        f"https://localhost:{proxy}{target}",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    version, status = done.stdout.split()
    assert version == "2"
    assert int(status) in statuses, done
    if int(status) >= 400:
        answer = json.loads((tmp_path / "answer").read_bytes())
        assert set(answer) == {"code", "error"}


def test_bytes_of_a_refused_body_that_come_late_are_not_requests_either(web: OtherProcess) -> None:
    with Wire(web.port) as wire:
        wire.send(message("too large", "length")[:-300_000])
        assert wire.response().status == 413
        wire.send(ROW[: len(INNER) * 10])
        assert wire.rest() == b""


def test_nothing_was_stored(web: OtherProcess) -> None:
    status, body = web.call("GET", "/classes/Smuggled")
    assert (status, body.get("results", [])) == (200, [])
