"""What the service prints and answers once ``script/server`` has started it."""

from __future__ import annotations

import json
import re
import socket
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from backend.instance.folder import DataFolder, temporary_folder
from tests.backend.operations.service import PATIENCE, Service, run_manage, run_server
from tests.polling import until

pytestmark = pytest.mark.xdist_group("running_service")


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with temporary_folder() as folder:
        started = Service(folder.path)
        yield started
        started.stop()


def paste(command: str) -> dict[str, object]:
    done = subprocess.run(["bash", "-c", command], capture_output=True, check=True, timeout=60)
    return json.loads(done.stdout)


@pytest.mark.slow
def test_the_printed_commands_create_an_object_and_read_it_back(service: Service):
    create, find = service.commands()
    created = paste(create)
    results = paste(find)["results"]
    assert [row["objectId"] for row in results] == [created["objectId"]]
    assert results[0]["text"] == "hello"


@contextmanager
def admin(service: Service) -> Iterator[tuple[httpx.Client, httpx.Response]]:
    """A client that has logged in with the printed credentials, and the response to that."""
    password = service.printed(r"user admin, password (\S+)")
    with httpx.Client(base_url=service.url, follow_redirects=True, timeout=PATIENCE) as browser:
        page = browser.get("/admin/login/")
        token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page.text)
        assert token
        yield (
            browser,
            browser.post(
                "/admin/login/?next=/admin/",
                data={"csrfmiddlewaretoken": token[1], "username": "admin", "password": password},
            ),
        )


def test_the_printed_credentials_open_the_admin(service: Service):
    with admin(service) as (_, answer):
        assert answer.status_code == 200
        assert answer.url.path == "/admin/"


def test_the_start_page_lists_the_processes_of_each_role(service: Service):
    roles = {"web", "realtime", "worker", "jobs", "chain", "backfill", "beat"}
    with admin(service) as (browser, _):
        until(
            lambda: roles <= {*re.findall(r"<tr><td>(\w+)</td>", browser.get("/admin/").text)},
            seconds=PATIENCE,
        )


def test_the_address_itself_is_a_page_with_links_and_without_secrets(service: Service):
    page = service.get("/")
    assert page.status_code == 200
    for address in ("/api/docs", "/admin/", "/health", "/ready", "/static/backend/icon.svg"):
        assert f'"{address}"' in page.text
        assert service.get(address).status_code in (200, 302), address
    for secret in ("X-Svc-Master-Key", "X-Svc-REST-API-Key", "X-Svc-Application-Id"):
        assert service.printed(secret + r": ([\w-]+)") not in page.text
    assert service.get("/favicon.ico").headers["Location"] == "/static/backend/icon.svg"
    assert "script-src" in page.headers["Content-Security-Policy"]


def test_the_admin_has_its_style_sheets(service: Service):
    assert service.get("/static/admin/css/base.css").status_code == 200


def test_ready_tells_that_every_dependency_answers(service: Service):
    answer = service.get("/ready")
    assert answer.status_code == 200
    checks = answer.json()["checks"]
    needed = {
        name: state
        for name, state in checks.items()
        if name in ("database", "migrations", "redis", "worker")
    }
    assert needed == dict.fromkeys(("database", "migrations", "redis", "worker"), "ok")


@pytest.mark.parametrize("path", ["/health", "/api/health"])
def test_health_answers_without_any_header(service: Service, path: str):
    answer = service.get(path)
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


def test_a_socket_on_an_unknown_path_is_refused(service: Service):
    answer = service.get(
        "/nowhere",
        {
            "Connection": "Upgrade",
            "Upgrade": "websocket",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": "MDEyMzQ1Njc4OWFiY2RlZg==",
        },
    )
    assert answer.status_code == 404


@pytest.mark.parametrize("path", ["/ws", "/livequery", "/api"])
@pytest.mark.parametrize("upgrade", ["Upgrade", "keep-alive, upgrade"])
def test_sockets_and_rest_share_the_public_port(service: Service, path: str, upgrade: str):
    with socket.create_connection(("127.0.0.1", service.port), 60) as client:
        client.sendall(
            f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: {upgrade}\r\n"
            "Upgrade: WebSocket\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n".encode()
        )
        client.sendall(b"\x81\x84\0\0\0\0ping")
        messages = b""
        while b"pong" not in messages:
            piece = client.recv(4096)
            assert piece, messages
            messages += piece
    assert messages.startswith(b"HTTP/1.1 101 ")


def test_a_second_instance_is_refused_and_the_first_is_named(service: Service):
    second = run_server(DATA_DIR=service.data, PORT=service.port)
    assert second.returncode == 1
    assert "already running" in second.stderr
    assert str(service.process.pid) in second.stderr
    assert service.url in second.stderr


def test_a_port_in_use_is_named_with_its_user(service: Service, folder: DataFolder):
    other = run_server(DATA_DIR=folder.path, PORT=service.port)
    assert other.returncode == 1
    assert f"Port {service.port} is in use by svc-web" in other.stderr


@pytest.mark.slow
def test_manage_finds_the_running_engines(service: Service):
    done = run_manage("migrate", "--check", DATA_DIR=service.data)
    assert (done.returncode, done.stderr) == (0, "")


def test_secrets_in_the_data_folder_are_for_their_owner_only(service: Service):
    for name in ("keys.env", "admin.json", "instance.json"):
        assert stat.S_IMODE((service.data / name).stat().st_mode) == 0o600


@pytest.mark.slow
def test_the_log_has_the_request_id_and_no_key(service: Service):
    key = service.printed(r"X-Svc-Master-Key: ([\w-]+)")
    answer = service.get(
        "/api/classes/Note?where=%7B%7D",
        {
            "X-Svc-Application-Id": service.printed(r"X-Svc-Application-Id: ([\w-]+)"),
            "X-Svc-Master-Key": key,
            "X-Request-Id": "from-the-client-1",
        },
    )
    assert answer.headers["X-Request-Id"] == "from-the-client-1"
    # The line is written before the answer is sent, so it is on its way already.
    line = service.wait_for_line("from-the-client-1")
    assert json.loads(line)["path"] == "/api/classes/Note"
    assert key not in "".join(service.errors)
