"""The units for systemd are valid, and its sockets are taken over."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from backend.serve import ROLES
from tests.backend.operations.service import PATIENCE
from tests.other_process import ROOT, database_url

UNITS = ROOT / "deploy" / "systemd"


def test_the_units_are_valid(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd-analyze, which verifies units, isn't installed")
    for unit in UNITS.iterdir():
        text = unit.read_text().replace("/srv/svc-backend/.venv/bin/python", sys.executable)
        text = text.replace("/srv/svc-backend", str(ROOT))
        (tmp_path / unit.name).write_text(text.replace("User=svc-backend", "User=daemon"))
    names = [unit.name for unit in UNITS.iterdir() if "@." not in unit.name]
    names += [f"svc-backend@{role}.service" for role in ROLES]
    done = subprocess.run(
        [analyze, "verify", "--man=no", *names],
        cwd=tmp_path,
        env={**os.environ, "SYSTEMD_UNIT_PATH": f"{tmp_path}:"},
        capture_output=True,
        text=True,
        check=False,
    )
    own = [line for line in done.stderr.splitlines() if "svc-backend" in line]
    assert (done.returncode, own) == (0, [])


def test_the_target_starts_every_role() -> None:
    names = re.findall(r"svc-backend@(\w+)\.service", (UNITS / "svc-backend.target").read_text())
    assert sorted(names) == sorted(ROLES)


def test_the_proxy_of_the_page_sends_handshakes_to_the_socket_of_realtime() -> None:
    page = (ROOT / "docs" / "deploying.md").read_text()
    [proxy] = re.findall(r"```nginx\n(.*?)```", page, re.DOTALL)
    upstreams = dict(re.findall(r"upstream (\w+) \{\s*server ([\d.:]+);", proxy))
    assert upstreams == {
        role: re.findall(r"ListenStream=(\S+)", (UNITS / f"svc-backend@{role}.socket").read_text())[
            0
        ]
        for role in ("web", "realtime")
    }
    assert '"~*^websocket$" realtime; default web;' in proxy
    assert "proxy_pass http://$backend;" in proxy


def test_commands_of_the_page_run_as_the_account_of_the_units() -> None:
    """Root's git refuses a clone of another account, and the service can't change root's files."""
    page = (ROOT / "docs" / "deploying.md").read_text().partition("\n## Containers\n")[0]
    blocks = "".join(re.findall(r"```sh\n(.*?)```", page, re.DOTALL))
    command = re.compile(r"\bgit\b.* pull|\bpip\b|script/manage")
    lines = [line for line in blocks.splitlines() if command.search(line)]
    assert len(lines) >= 5
    assert [line for line in lines if "sudo -u svc-backend" not in line] == []
    accounts = re.findall(r"^User=(.*)$", (UNITS / "svc-backend.service").read_text(), re.MULTILINE)
    assert accounts == ["svc-backend"]


@pytest.mark.django_db
@pytest.mark.slow
def test_clients_wait_at_the_socket_of_systemd_while_the_process_is_replaced() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
        port = listener.getsockname()[1]
        for _ in range(2):
            process = _start_with(listener, f"127.0.0.1:{port}")
            try:
                # Sent before the process listens, and between the two processes.
                answer = httpx.get(f"http://127.0.0.1:{port}/health", timeout=PATIENCE)
                assert answer.json() == {"status": "ok"}
            finally:
                process.terminate()
                assert process.wait(PATIENCE) == 0


def _start_with(listener: socket.socket, bind: str) -> subprocess.Popen[bytes]:
    """Start web processes as systemd does: the socket is file descriptor 3, and two variables say
    so."""

    def pass_on() -> None:
        os.dup2(listener.fileno(), 3)

    code = 'export LISTEN_PID=$$; exec "$0" -m backend.serve web'
    return subprocess.Popen(
        ["sh", "-c", code, sys.executable],
        cwd=ROOT,
        env={
            **os.environ,
            "DATABASE_URL": database_url(),
            "WEB_BIND": bind,
            "WEB_WORKERS": "1",
            "LISTEN_FDS": "1",
            "LOG_LEVEL": "ERROR",
        },
        close_fds=False,
        preexec_fn=pass_on,
    )
