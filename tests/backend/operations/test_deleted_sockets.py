"""Sockets whose files are deleted while the service runs, as programs that clean up do."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import httpx
import pytest

from backend.instance.folder import DataFolder
from backend.kernel.process import restart_report
from tests.backend.operations.mixed_load import is_whole
from tests.backend.operations.service import PATIENCE, Service
from tests.polling import until

pytestmark = pytest.mark.slow


def test_an_engine_whose_socket_was_deleted_is_restarted(
    start: Callable[..., Service], folder: DataFolder
) -> None:
    service = start()
    sockets = [folder.postgres_socket / ".s.PGSQL.5432", folder.redis_socket]
    for socket in sockets:
        socket.unlink()
    for socket in sockets:
        until(socket.is_socket, PATIENCE)
    until(lambda: is_whole(service), PATIENCE)
    ends = {restarted.name: restarted.last_end for restarted in restart_report.read(folder.reports)}
    assert "its socket" in ends["PostgreSQL"]
    assert "its socket" in ends["Redis"]


def test_an_application_whose_sockets_were_deleted_is_replaced_without_a_failed_request(
    start: Callable[..., Service], folder: DataFolder
) -> None:
    service = start()
    until(lambda: is_whole(service), PATIENCE)
    sockets = [*folder.app_sockets.glob("*.sock")]
    assert "handoff.sock" in {socket.name for socket in sockets}
    for socket in sockets:
        socket.unlink()
    response = service.get("/ready")
    assert response.json()["checks"]["realtime"] == "its socket is missing"

    def are_there() -> bool:
        assert service.get("/health").status_code == 200
        return all(socket.is_socket() for socket in sockets)

    until(are_there, PATIENCE)
    service.wait_for_line("the application was replaced")
    until(lambda: is_whole(service), PATIENCE)
    until(lambda: handshake(service) == 101, PATIENCE)


def handshake(service: Service) -> int:
    headers = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    }
    with (
        contextlib.suppress(httpx.HTTPError),
        httpx.stream("GET", f"{service.url}/livequery", headers=headers, timeout=5) as response,
    ):
        return response.status_code
    return 0
