"""``manage.py runserver`` serves REST, the admin and sockets in one process."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import IO

import httpx
import pytest
from websockets.sync.client import connect

from backend.instance.folder import DataFolder
from tests.backend.operations.service import PATIENCE, ROOT, Service, plain_environment, run_manage
from tests.ports import free_port

KEYS = {"SECRET_KEY": "k" * 40, "APP_ID": "app", "REST_API_KEY": "r" * 20, "MASTER_KEY": "m" * 20}


@contextlib.contextmanager
def development_server(folder: DataFolder) -> Iterator[str]:
    """Run ``runserver`` with the engines of a running instance; yield its address."""
    address = f"127.0.0.1:{free_port()}"
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [sys.executable, ROOT / "manage.py", "runserver", "--noreload", address],
            env=plain_environment(DATA_DIR=folder.path, PUBLIC_URL=f"http://{address}", **KEYS),
            stdout=log,
            stderr=log,
        )
        try:
            until = time.monotonic() + PATIENCE
            while True:
                assert process.poll() is None, _output(log)
                assert time.monotonic() < until
                with contextlib.suppress(httpx.TransportError):
                    httpx.get(f"http://{address}/health")
                    break
                time.sleep(0.2)
            yield address
        finally:
            process.terminate()
            process.wait(PATIENCE)


def _output(log: IO[bytes]) -> str:
    log.seek(0)
    return log.read().decode()


@pytest.mark.slow
def test_rest_the_admin_and_sockets_are_served(folder: DataFolder, start: Callable[..., Service]):
    start(**KEYS)
    keys = {"X-Svc-Application-Id": KEYS["APP_ID"], "X-Svc-Master-Key": KEYS["MASTER_KEY"]}
    with development_server(folder) as address, httpx.Client(timeout=PATIENCE) as client:
        classes = f"http://{address}/api/classes/Developed"
        created = client.post(classes, json={"name": "first"}, headers=keys)
        assert created.status_code == 201
        results = client.get(classes, headers=keys).json()["results"]
        assert [row["objectId"] for row in results] == [created.json()["objectId"]]
        login = client.get(f"http://{address}/admin/login/")
        assert (login.status_code, "csrfmiddlewaretoken" in login.text) == (200, True)
        with connect(f"ws://{address}/ws?applicationId={KEYS['APP_ID']}&since=now") as socket:
            assert json.loads(socket.recv(PATIENCE))["event"] == "hello"
        with connect(f"ws://{address}/livequery", open_timeout=PATIENCE) as socket:
            socket.send(
                json.dumps(
                    {
                        "op": "connect",
                        "applicationId": KEYS["APP_ID"],
                        "masterKey": KEYS["MASTER_KEY"],
                    }
                )
            )
            assert json.loads(socket.recv(PATIENCE))["op"] == "connected"


@pytest.mark.parametrize("option", [(), ("--noreload",)], ids=str)
def test_without_engines_one_sentence_says_what_to_start(folder: DataFolder, option):
    done = run_manage("runserver", *option, f"{free_port()}", DATA_DIR=folder.path, **KEYS)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        f"The service isn't running: start script/server with DATA_DIR={folder.path}, "
        "or set DATABASE_URL to use another PostgreSQL."
    ]
