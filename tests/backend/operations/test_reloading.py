"""``manage.py reload``: the application as it is on the disk now, without a failed request."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import psutil
import psycopg
import pytest

from backend.instance.folder import DataFolder
from backend.kernel.process import restart_report
from backend.operations.processes import reloads
from tests.backend.operations.mixed_load import Load, is_whole, stored
from tests.backend.operations.service import PATIENCE, ROLES, Service, run_manage
from tests.polling import until
from tests.ports import free_port

Start = Callable[..., Service]
WAITS = """
import pathlib, sys, time
print("own.py waits", file=sys.stderr, flush=True)
while not pathlib.Path({place!r}).exists():
    time.sleep(0.05)
"""
SLOW_JOB = """
import pathlib, sys, time
from functions import JobRequest, job

@job()
def slow(request: JobRequest) -> None:
    print("own.py waits", file=sys.stderr, flush=True)
    while not pathlib.Path({place!r}).exists():
        time.sleep(0.05)
    pathlib.Path({done!r}).touch()
"""
BROKEN_ROLE = """
import realtime.process.server

async def startup(self, sockets=None):
    raise RuntimeError("broken")

realtime.process.server.SocketServer.startup = startup
"""
FAILING = "fails again and again"
LOCK = 7_316_504_801  # of ``manage.py prepare``
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
    assert all(line.startswith("{") for line in service.errors)
    file.write_text("METRICS=on\nMETRICS_NETWORKS=127.0.0.0/8\nLOG_FORMAT=console\n")
    assert run_manage("reload", DATA_DIR=service.data).returncode == 0
    until(lambda: service.get("/metrics").status_code == 200, PATIENCE)
    until(lambda: any(not line.startswith("{") for line in service.errors), PATIENCE)
    file.write_text("LISTEN_HOST=127.0.0.2\n")
    refused = run_manage("reload", DATA_DIR=service.data)
    assert refused.returncode == 1
    assert "have changed: start script/server again" in refused.stderr
    assert "have changed" in service.wait_for_line("the new application doesn't start")
    assert service.get("/metrics").status_code == 200


def test_a_setting_that_the_engines_were_started_with_is_not_reloaded(
    start: Start, tmp_path: Path
) -> None:
    file = tmp_path / "settings"
    file.write_text("")
    service = start(ENV_FILE=file)
    before = {process for role in ROLES for process in service.processes_of(role)}
    file.write_text("PROFILE=small\n")
    done = run_manage("reload", DATA_DIR=service.data, ENV_FILE=file)
    assert done.returncode == 1
    assert "PROFILE has changed: start script/server again." in done.stderr
    assert {process for role in ROLES for process in service.processes_of(role)} == before


def test_the_service_is_reached_through_the_proxy_of_its_site_address(start: Start) -> None:
    port = free_port()
    service = start(SITE_ADDRESS=f"http://localhost:{port}", PUBLIC_URL=f"http://localhost:{port}")
    assert httpx.get(f"http://localhost:{port}/health", timeout=PATIENCE).status_code == 200
    assert service.child_or_none("caddy") is not None


def test_an_application_that_does_not_start_replaces_nothing(start: Start, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("")
    service = start(PYTHONPATH=tmp_path, CLOUD_MODULES="own")
    before = service.child("backend.serve")
    (tmp_path / "own.py").write_text("import nowhere\n")
    done = run_manage("reload", DATA_DIR=service.data)
    assert done.returncode == 1
    assert "CLOUD_MODULES: own can't be loaded" in done.stderr
    assert "The present one continues." in done.stderr
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


def test_a_reload_between_two_restarts_starts_one_application(
    start: Start, folder: DataFolder, tmp_path: Path
) -> None:
    module, goes_on = tmp_path / "own.py", tmp_path / "goes-on"
    module.write_text("")
    service = start(PYTHONPATH=tmp_path, CLOUD_MODULES="own")
    module.write_text("import nowhere\n")
    service.child("backend.serve").kill()
    # The restarts fail, and the next one is due after five seconds.
    service.wait_for_line('"pause":5.0')
    # The report is written after the line.
    until(lambda: any(item.is_failing for item in restart_report.read(folder.reports)), PATIENCE)
    [restarted] = restart_report.read(folder.reports)
    assert (restarted.name, restarted.is_failing) == ("the application", True)
    assert "CLOUD_MODULES: own can't be loaded" in restarted.last_end

    module.write_text(WAITS.format(place=str(goes_on)))
    answer = reloads.request(folder)
    service.wait_for_line("own.py waits")
    with pytest.raises(subprocess.TimeoutExpired):
        service.process.wait(6)  # until the restart would be due
    goes_on.touch()
    until(answer.exists, PATIENCE)
    assert reloads.read_answer(answer) == ""
    until(lambda: is_whole(service), PATIENCE)
    assert len(applications(service)) == 1
    assert service.stop() == 0


def test_a_failed_reload_of_an_application_that_has_ended_says_that_none_runs(
    start: Start, folder: DataFolder, tmp_path: Path
) -> None:
    module = tmp_path / "own.py"
    module.write_text("")
    service = start(PYTHONPATH=tmp_path, CLOUD_MODULES="own")
    module.write_text("import nowhere\n")
    service.child("backend.serve").kill()
    service.wait_for_line('"pause":5.0')
    answer = reloads.request(folder)
    service.wait_for_line("the new application doesn't start; none is running")
    until(answer.exists, PATIENCE)
    assert "None is running; its restarts continue." in (reloads.read_answer(answer) or "")
    module.write_text("")
    until(lambda: is_whole(service), PATIENCE)


def test_a_failing_role_is_reported_as_recovered_after_a_reload_that_repairs_it(
    start: Start, folder: DataFolder, tmp_path: Path
) -> None:
    module = tmp_path / "own.py"
    module.write_text("")
    service = start(PYTHONPATH=tmp_path, CLOUD_MODULES="own")
    for _ in range(5):
        until(lambda: service.processes_of("beat"), PATIENCE)
        for process in service.processes_of("beat"):
            process.kill()
            process.wait(PATIENCE)
    until(lambda: service.get("/ready").json()["checks"]["beat"] == FAILING, PATIENCE)
    assert run_manage("reload", DATA_DIR=service.data).returncode == 0
    until(lambda: service.get("/ready").json()["checks"]["beat"] == "ok", PATIENCE)


def test_a_migration_ends_with_the_process_that_started_it(
    start: Start, folder: DataFolder
) -> None:
    service = start()
    [present] = applications(service)
    with waiting_reload(folder) as answer:
        [new] = applications(service) - {present}
        [migration] = new.children()
        new.kill()
        until(answer.exists, PATIENCE)
        assert "SIGKILL" in (reloads.read_answer(answer) or "")
        until(lambda: has_ended(migration), PATIENCE)
    assert service.get("/ready").status_code == 200


@pytest.mark.parametrize("name", ["backend.wsgi", "backend.asgi"])
def test_code_that_cannot_be_imported_replaces_nothing(
    start: Start, tmp_path: Path, name: str
) -> None:
    (tmp_path / "own.py").write_text("")
    service = start(PYTHONPATH=tmp_path, CLOUD_MODULES="own")
    before = service.child("backend.serve")
    (tmp_path / "own.py").write_text(f"import sys\nsys.modules[{name!r}] = None\n")
    done = run_manage("reload", DATA_DIR=service.data)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"{name} can't be loaded: ModuleNotFoundError" in done.stderr
    assert "The present one continues." in done.stderr
    assert applications(service) == {before}
    until(lambda: is_whole(service), PATIENCE)


def test_a_role_that_does_not_start_replaces_nothing(
    start: Start, folder: DataFolder, tmp_path: Path
) -> None:
    (tmp_path / "own.py").write_text("")
    service = start(PYTHONPATH=tmp_path, CLOUD_MODULES="own")
    until(lambda: is_whole(service), PATIENCE)
    before = service.child("backend.serve")
    (tmp_path / "own.py").write_text(BROKEN_ROLE)
    with Load(service) as load:
        done = run_manage("reload", DATA_DIR=service.data)
        assert (done.returncode, done.stdout) == (1, "")
        assert "The role realtime doesn't start (status 1)" in done.stderr
        assert "The present one continues." in done.stderr
        until(lambda: applications(service) == {before}, PATIENCE)
        load.seconds_to_recover()
    assert {*load.answers} == {200, 201}
    assert load.stored <= stored(service)
    # What the new one had restarted is no report about the present one.
    assert restart_report.read(folder.reports) == []
    (tmp_path / "own.py").write_text("")
    assert run_manage("reload", DATA_DIR=service.data).returncode == 0
    until(lambda: is_whole(service), PATIENCE)


def test_a_first_start_names_the_role_that_does_not_start(start: Start, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(BROKEN_ROLE)
    with pytest.raises(AssertionError, match="The role realtime doesn't start"):
        start(PYTHONPATH=tmp_path, CLOUD_MODULES="own")


def test_an_application_that_ends_while_a_reload_waits_is_restarted(
    start: Start, folder: DataFolder
) -> None:
    service = start()
    [present] = applications(service)
    with waiting_reload(folder) as answer:
        [new] = applications(service) - {present}
        present.kill()
        until(answer.exists, PATIENCE)
        reason = reloads.read_answer(answer) or ""
        assert "The present application ended meanwhile (SIGKILL)" in reason
        assert "None is running; its restarts continue." in reason
        service.wait_for_line("a process ended and is restarted")
        until(lambda: applications(service) - {present, new}, PATIENCE)
        # Also while the restart waits.
        until(lambda: not zombies(service), PATIENCE)
    until(lambda: is_whole(service), PATIENCE)
    [restarted] = restart_report.read(folder.reports)
    assert (restarted.name, restarted.last_end) == ("the application", "SIGKILL")


def test_ctrl_c_after_a_reload_lets_the_old_processes_finish(
    start: Start, folder: DataFolder, tmp_path: Path
) -> None:
    goes_on, is_done = tmp_path / "goes-on", tmp_path / "done"
    (tmp_path / "own.py").write_text(SLOW_JOB.format(place=str(goes_on), done=str(is_done)))
    service = start(PYTHONPATH=tmp_path, CLOUD_MODULES="own")
    until(lambda: is_whole(service), PATIENCE)
    headers = {
        "X-Svc-Master-Key": service.printed(r"X-Svc-Master-Key: ([\w-]+)"),
        "X-Svc-Application-Id": service.printed(r"X-Svc-Application-Id: ([\w-]+)"),
    }
    response = httpx.post(f"{service.url}/api/jobs/slow", headers=headers, timeout=PATIENCE)
    assert response.status_code == 200, response.text
    service.wait_for_line("own.py waits")
    old = applications(service)
    answer = reloads.request(folder)
    until(answer.exists, PATIENCE)
    service.process.send_signal(signal.SIGINT)
    # The job goes on although the new application has ended.
    until(lambda: applications(service) == old, PATIENCE)
    with pytest.raises(subprocess.TimeoutExpired):
        service.process.wait(2)
    goes_on.touch()
    service.process.wait(PATIENCE)
    assert is_done.exists()


@contextmanager
def waiting_reload(folder: DataFolder) -> Iterator[Path]:
    """A reload whose migration waits for a lock until the end; the file of its answer."""
    waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    with psycopg.connect(folder.database_url, autocommit=True) as connection:
        connection.execute("SELECT pg_advisory_lock(%s)", [LOCK])
        answer = reloads.request(folder)
        until(lambda: connection.execute(waiting).fetchone() == (1,), PATIENCE)
        yield answer


def has_ended(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return process.status() == psutil.STATUS_ZOMBIE
    return True


def zombies(service: Service) -> list[psutil.Process]:
    """Children of ``script/server`` that have ended and weren't waited for, without those that it
    still counts as its own."""
    return [child for child in psutil.Process(service.process.pid).children() if has_ended(child)]


def applications(service: Service) -> set[psutil.Process]:
    """The processes that ``script/server`` has started to load the application."""
    results = set()
    for process in psutil.Process(service.process.pid).children():
        with suppress(psutil.Error):
            if "backend.serve" in process.cmdline() and process.status() != psutil.STATUS_ZOMBIE:
                results.add(process)
    return results


def test_requests_are_answered_once_each(tmp_path: Path) -> None:
    data = DataFolder(tmp_path)
    with pytest.raises(FileNotFoundError):
        reloads.request(data)
    data.app_sockets.mkdir(parents=True)
    reloads.make_folder(data)
    (data.app_sockets / "reloads").rmdir()
    assert reloads.take(data) == []  # and makes the folder again
    first, second = reloads.request(data), reloads.request(data)
    (data.app_sockets / "reloads" / "000.request").mkdir()  # can't be taken, and delays no other
    assert reloads.read_answer(first) is None
    taken = reloads.take(data)
    assert {*taken} == {first, second}
    assert reloads.take(data) == []
    reloads.answer(taken, "a reason")
    assert [reloads.read_answer(place) for place in (first, second)] == ["a reason"] * 2
    assert reloads.read_answer(first) is None


@pytest.mark.parametrize("kind", ["link", "file", "folder"])
def test_what_lies_where_requests_are_taken_is_replaced_at_a_start(
    tmp_path: Path, kind: str
) -> None:
    data, outside = DataFolder(tmp_path / "data"), tmp_path / "outside"
    data.app_sockets.mkdir(parents=True)
    outside.mkdir()
    (outside / "kept").touch()
    place = data.app_sockets / "reloads"
    {"link": lambda: place.symlink_to(outside), "file": place.touch, "folder": place.mkdir}[kind]()
    reloads.make_folder(data)
    assert place.is_dir()
    assert not place.is_symlink()
    assert list(place.iterdir()) == []
    assert (outside / "kept").exists()
