"""However the service is ended, nothing of it is left, and its data is."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable

import pytest

from backend.instance.folder import DataFolder
from backend.operations.embedded.engines import temporary_engines
from tests.backend.operations.service import Service

Start = Callable[..., Service]


def paste(command: str) -> dict[str, object]:
    done = subprocess.run(["bash", "-c", command], capture_output=True, check=True, timeout=60)
    return json.loads(done.stdout)


@pytest.mark.slow
def test_sigterm_stops_every_process_and_a_second_start_has_the_data(
    folder: DataFolder, start: Start
):
    first = start()
    created = paste(first.commands()[0])
    assert first.stop() == 0
    assert first.wait_until_gone() == []
    assert not folder.instance.exists()
    assert "database system is shut down" in (folder.log / "postgres.log").read_text()

    second = start()
    results = paste(f". {folder.keys}; {second.commands()[1]}")["results"]
    assert [row["objectId"] for row in results] == [created["objectId"]]
    # Secrets are printed once; later starts say where they are.
    for secret in (first.printed(r"password (\S+)"), first.printed(r"Master-Key: ([\w-]+)")):
        assert secret not in second.output
    assert f". {folder.keys}" in second.output
    assert f"password in {folder.path}/admin.json" in second.output
    second.process.send_signal(signal.SIGINT)
    assert second.wait_until_gone() == []


@pytest.mark.slow
def test_killing_the_server_ends_every_process_and_leaves_no_lock(start: Start):
    killed = start()
    killed.process.kill()
    assert killed.wait_until_gone() == []

    again = start()
    assert again.stop() == 0


@pytest.mark.slow
def test_killing_the_server_and_the_application_at_once_leaves_no_process(start: Start):
    service = start()
    application = service.child("backend.serve")
    service.process.kill()
    application.kill()
    assert service.wait_until_gone() == []


@pytest.mark.slow
def test_a_service_that_is_stopped_while_it_starts_again_leaves_no_process(start: Start):
    service = start()
    service.child("/postgres").kill()
    service.child("backend.serve").kill()
    service.wait_for_line("a process ended and is restarted")
    assert service.stop() == 0
    assert service.wait_until_gone() == []


@pytest.mark.slow
def test_with_both_addresses_given_no_engine_is_started(start: Start):
    with temporary_engines() as other_engines:
        service = start(DATABASE_URL=other_engines.database_url, REDIS_URL=other_engines.redis_url)
        assert service.get("/ready").status_code == 200
        names = [process.name() for process in service.family]
        assert "postgres" not in names
        assert "redis-server" not in names
        assert service.stop() == 0
