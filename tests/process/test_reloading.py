"""``manage.py reload``: the application as it is on the disk now, without a failed request."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from backend.embedded.folder import DataFolder
from backend.processes import reloads
from tests.process.mixed_load import Load, is_whole, stored
from tests.process.service import PATIENCE, ROLES, Service, run_manage
from tests.waiting import until

Start = Callable[..., Service]
WAITS = """
import pathlib, sys, time
print("own.py waits", file=sys.stderr, flush=True)
while not pathlib.Path({place!r}).exists():
    time.sleep(0.05)
"""
pytestmark = pytest.mark.slow


def test_a_reload_replaces_every_process_without_a_failed_request(start: Start) -> None:
    service = start(WEB_WORKERS=2)
    until(lambda: is_whole(service), PATIENCE)
    before = {process for role in ROLES for process in service.processes_of(role)}
    with Load(service) as load:
        done = run_manage("reload", DATA_DIR=service.data)
        assert (done.returncode, done.stdout) == (0, "The application was replaced.\n")
        load.seconds_to_recover()
    assert {*load.answers} == {200, 201}
    until(lambda: not any(process.is_running() for process in before), PATIENCE)
    assert load.stored <= stored(service)


def test_a_reload_reads_the_settings_file_again(start: Start, tmp_path: Path) -> None:
    file = tmp_path / "settings"
    file.write_text("METRICS=off\n")
    service = start(ENV_FILE=file)
    assert service.get("/metrics").status_code == 404
    file.write_text("METRICS=on\nMETRICS_NETWORKS=127.0.0.0/8\n")
    assert run_manage("reload", DATA_DIR=service.data).returncode == 0
    until(lambda: service.get("/metrics").status_code == 200, PATIENCE)
    file.write_text("LISTEN_HOST=127.0.0.2\n")
    refused = run_manage("reload", DATA_DIR=service.data)
    assert refused.returncode == 1
    assert "have changed: start script/server again" in refused.stderr
    assert "have changed" in service.wait_for_line("the new application doesn't start")
    assert service.get("/metrics").status_code == 200


def test_an_application_that_does_not_start_replaces_nothing(start: Start, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("")
    service = start(PYTHONPATH=tmp_path, CLOUD_MODULES="own")
    before = service.child("backend.serve")
    (tmp_path / "own.py").write_text("import nowhere\n")
    done = run_manage("reload", DATA_DIR=service.data)
    assert done.returncode == 1
    assert "CLOUD_MODULES: own can't be loaded" in done.stderr
    service.wait_for_line("the new application doesn't start")
    assert service.child("backend.serve") == before
    assert service.get("/ready").status_code == 200


def test_what_ends_during_a_reload_is_restarted_meanwhile(start: Start, tmp_path: Path) -> None:
    goes_on = tmp_path / "goes-on"
    (tmp_path / "own.py").write_text("")
    service = start(PYTHONPATH=tmp_path, CLOUD_MODULES="own")
    redis = service.child("redis-server")
    (tmp_path / "own.py").write_text(WAITS.format(place=str(goes_on)))
    with ThreadPoolExecutor() as pool:
        reload = pool.submit(run_manage, "reload", DATA_DIR=service.data)
        service.wait_for_line("own.py waits")
        redis.kill()
        until(lambda: service.child_or_none("redis-server", but=redis) is not None, PATIENCE)
        goes_on.touch()
        assert reload.result(PATIENCE).returncode == 0
    until(lambda: is_whole(service), PATIENCE)


def test_requests_are_answered_once_each(tmp_path: Path) -> None:
    data = DataFolder(tmp_path)
    with pytest.raises(FileNotFoundError):
        reloads.request(data)
    data.app_sockets.mkdir(parents=True)
    reloads.make_folder(data)
    first, second = reloads.request(data), reloads.request(data)
    assert reloads.read_answer(first) is None
    taken = reloads.take(data)
    assert {*taken} == {first, second}
    assert reloads.take(data) == []
    reloads.answer(taken, "a reason")
    assert [reloads.read_answer(place) for place in (first, second)] == ["a reason"] * 2
    assert reloads.read_answer(first) is None
