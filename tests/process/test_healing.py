"""Whatever is killed while the service works: it heals by itself, and what it has said holds.

Killing one role costs no request. Killing the process that all are forked from costs a wait, since
the listening sockets stay open. While an engine is away the answer is 503 with ``Retry-After``.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from websockets.sync.client import connect

from tests.process.service import PATIENCE, ROOT, Service, run_manage
from tests.waiting import until

Start = Callable[..., Service]
pytestmark = pytest.mark.slow

ROLES = ("web", "realtime", "worker", "jobs", "chain", "backfill", "beat")


@dataclass
class Load:
    """Clients that create objects, count them and call functions, until it is stopped."""

    service: Service
    stored: set[str] = field(default_factory=set)
    answers: Counter[Any] = field(default_factory=Counter)
    without_advice: list[str] = field(default_factory=list)
    _over: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def __enter__(self) -> Load:
        for work in (self._create, self._create, self._find):
            thread = threading.Thread(target=self._repeat, args=(work,))
            thread.start()
            self._threads.append(thread)
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _repeat(self, work: Callable[[], httpx.Response]) -> None:
        while not self._over.is_set():
            try:
                answer = work()
            except httpx.HTTPError as error:
                self.answers[type(error).__name__] += 1
                continue
            self.answers[answer.status_code] += 1
            if answer.status_code == 503 and "Retry-After" not in answer.headers:
                self.without_advice.append(answer.text)

    def _create(self) -> httpx.Response:
        answer = httpx.post(
            f"{self.service.url}/api/classes/Note",
            headers=headers(self.service),
            json={"text": "x"},
            timeout=PATIENCE,
        )
        if answer.status_code == 201:
            self.stored.add(answer.json()["objectId"])
        return answer

    def _find(self) -> httpx.Response:
        return self.service.get("/api/classes/Note?limit=1", headers(self.service))


def headers(service: Service) -> dict[str, str]:
    return {
        "X-Svc-Application-Id": service.printed(r"X-Svc-Application-Id: ([\w-]+)"),
        "X-Svc-Master-Key": service.printed(r"X-Svc-Master-Key: ([\w-]+)"),
    }


def is_whole(service: Service) -> bool:
    with contextlib.suppress(httpx.HTTPError, ValueError, AttributeError):
        answer = service.get("/ready")
        checks = answer.json()["checks"]
        return answer.status_code == 200 and set(checks.values()) == {"ok"}
    return False


def stored(service: Service) -> set[str]:
    """The ids of all notes."""
    found: list[str] = []
    while True:
        where = json.dumps({"objectId": {"$gt": found[-1] if found else ""}})
        parameters = {"where": where, "order": "objectId", "keys": "objectId", "limit": 1000}
        answer = httpx.get(
            f"{service.url}/api/classes/Note",
            headers=headers(service),
            params=parameters,
            timeout=PATIENCE,
        )
        page = [row["objectId"] for row in answer.json()["results"]]
        if not page:
            return {*found}
        found += page


def is_replaced(service: Service, role: str, before: set[psutil.Process]) -> bool:
    now = service.processes_of(role)
    return len(now) == len(before) and now != before


def heals(service: Service, load: Load) -> float:
    """Seconds until everything answers again, and creates objects."""
    began = time.monotonic()
    until(lambda: is_whole(service), PATIENCE)
    before = len(load.stored)
    until(lambda: len(load.stored) > before + 20, PATIENCE)
    return time.monotonic() - began


def test_every_role_is_replaced_without_a_failed_request(start: Start) -> None:
    service = start(WEB_WORKERS=2)
    until(lambda: is_whole(service), PATIENCE)
    with Load(service) as load:
        for role in ROLES:
            before = service.processes_of(role)
            load.answers.clear()
            min(before, key=lambda process: process.pid).kill()
            until(partial(is_replaced, service, role, before), PATIENCE)
            seconds = heals(service, load)
            print(f"{role}: {dict(load.answers)}, {seconds:.1f} s")
            # What the killed web process was just answering is cut off.
            cut = sum(number for answer, number in load.answers.items() if answer not in (200, 201))
            assert cut <= (3 if role == "web" else 0), (role, load.answers)
    assert load.stored <= stored(service)


def test_a_reload_replaces_every_process_without_a_failed_request(start: Start) -> None:
    service = start(WEB_WORKERS=2)
    until(lambda: is_whole(service), PATIENCE)
    before = {process for role in ROLES for process in service.processes_of(role)}
    with Load(service) as load:
        done = run_manage("reload", DATA_DIR=service.data)
        assert (done.returncode, done.stdout) == (0, "The application was replaced.\n")
        heals(service, load)
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
    assert run_manage("reload", "--seconds", "6", DATA_DIR=service.data).returncode == 1
    assert "have changed" in service.wait_for_line("the new application doesn't start")
    assert service.get("/metrics").status_code == 200


def test_an_application_that_does_not_start_replaces_nothing(start: Start, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("")
    service = start(PYTHONPATH=tmp_path, CLOUD_MODULES="own")
    before = service.child("backend.serve")
    (tmp_path / "own.py").write_text("import nowhere\n")
    done = run_manage("reload", "--seconds", "6", DATA_DIR=service.data)
    assert done.returncode == 1
    service.wait_for_line("the new application doesn't start")
    assert service.child("backend.serve") == before
    assert service.get("/ready").status_code == 200


_RUN_BY_THE_ADMIN = """
from django_celery_beat.models import IntervalSchedule, PeriodicTask
every, _ = IntervalSchedule.objects.get_or_create(every=1, period="seconds")
PeriodicTask.objects.update_or_create(
    name="own", defaults={"task": "backend.beat_is_alive", "interval": every}
)
print(PeriodicTask.objects.get(name="own").total_run_count)
"""


def test_a_small_instance_keeps_the_schedule_of_the_admin(start: Start) -> None:
    service = start(PROFILE="small")

    def has_run() -> bool:
        done = run_manage("shell", "-v", "0", "-c", _RUN_BY_THE_ADMIN, DATA_DIR=service.data)
        return int(done.stdout) > 0

    until(has_run, PATIENCE)
    assert not list(ROOT.glob("celerybeat*"))


def test_a_small_instance_does_everything_in_four_processes(start: Start) -> None:
    service = start(PROFILE="small")
    until(lambda: is_whole(service), PATIENCE)
    application = service.child("backend.serve")
    names = sorted(process.name() for process in application.children(recursive=True))
    assert names == ["svc-jobs", "svc-realtime", "svc-web", "svc-worker"]
    before = service.processes_of("worker")
    min(before, key=lambda process: process.pid).kill()
    until(partial(is_replaced, service, "worker", before), PATIENCE)
    until(lambda: is_whole(service), PATIENCE)


@pytest.mark.parametrize("victim", ["backend.serve", "/postgres", "redis-server"])
def test_what_all_need_is_started_again(start: Start, victim: str) -> None:
    service = start(WEB_WORKERS=2)
    until(lambda: is_whole(service), PATIENCE)
    with Load(service) as load:
        process = service.child(victim)
        load.answers.clear()
        process.kill()
        until(lambda: service.child_or_none(victim, but=process), PATIENCE)
        seconds = heals(service, load)
        print(f"{victim}: {dict(load.answers)}, {seconds:.1f} s")
    assert {*load.answers} <= {200, 201, 503, "RemoteProtocolError", "ReadError"}
    assert load.without_advice == []
    assert load.stored <= stored(service)
    service.wait_for_line("a process ended and is restarted")
    with connect(f"ws://127.0.0.1:{service.port}/livequery", open_timeout=PATIENCE) as socket:
        own = headers(service)
        asked = {
            "op": "connect",
            "applicationId": own["X-Svc-Application-Id"],
            "masterKey": own["X-Svc-Master-Key"],
        }
        socket.send(json.dumps(asked))
        assert json.loads(socket.recv(PATIENCE))["op"] == "connected"
