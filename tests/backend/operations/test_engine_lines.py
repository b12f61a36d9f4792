"""What engines write to their logs comes out with the service's own lines, in their form."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from backend.logs.readable import render
from backend.operations.embedded import engine_logs
from backend.operations.embedded.engine_logs import EngineLog, Entry, postgres_line, redis_line
from tests.backend.operations.service import ROOT, Service

STARTING = "the database system is starting up"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "engine.log"
    path.write_bytes(b"from an earlier start\n")
    return path


@pytest.fixture
def written(capfd: pytest.CaptureFixture[str], monkeypatch) -> Callable[[], list[str]]:
    monkeypatch.setenv("LOG_LEVEL", "INFO")
    monkeypatch.setenv("LOG_FORMAT", "json")

    def events() -> list[str]:
        return [json.loads(line)["event"] for line in capfd.readouterr().err.splitlines()]

    return events


def info(line: str) -> Entry:
    return Entry("info", line)


def append(path: Path, text: bytes) -> None:
    with path.open("ab") as file:
        file.write(text)


def test_only_whole_new_lines_are_passed_on(log: Path, written) -> None:
    lines = EngineLog("engine", log, info)
    append(log, b"first\nsecond, ")
    lines.look()
    assert written() == ["first"]
    append(log, b"whole\n\n")
    lines.look()
    lines.look()
    assert written() == ["second, whole"]


def test_bytes_that_are_no_text_and_lines_without_end_do_no_harm(log: Path, written) -> None:
    lines = EngineLog("engine", log, info)
    append(log, b"\xff\x00\x1b[2J\n" + b"x" * 1_000_000)
    for _ in range(5):
        lines.look()
    append(log, b"\nnext\n")
    lines.look()
    events = written()
    assert events[0] == "\ufffd\x00\x1b[2J"
    assert events[-1] == "next"
    assert max(map(len, events)) == 2000


def test_secrets_are_masked(log: Path, written) -> None:
    lines = EngineLog("engine", log, info)
    append(log, b"connection to postgres://u:hidden@db failed, password=hidden\n")
    lines.look()
    assert written() == ["connection to postgres://***@db failed, password=***"]


def test_a_log_that_has_grown_is_kept_once_and_emptied(log: Path, written, monkeypatch) -> None:
    monkeypatch.setattr(engine_logs, "LONGEST", 100)
    lines = EngineLog("engine", log, info)
    engine = log.open("ab")  # holds it, as an engine does
    with engine:
        for number in range(20):
            engine.write(f"line {number} of a log that grows\n".encode())
            engine.flush()
            lines.look()
        assert log.stat().st_size <= 200
    assert written() == [f"line {number} of a log that grows" for number in range(20)]
    assert log.with_name("engine.log.1").stat().st_size <= 200


def test_no_line_is_lost_where_more_is_written_than_read_at_once(
    log: Path, written, monkeypatch
) -> None:
    monkeypatch.setattr(engine_logs, "LONGEST", 200_000)
    lines = EngineLog("engine", log, info)
    append(log, b"".join(b"line %6d of many\n" % number for number in range(20_000)))
    for _ in range(3):
        lines.look()
    assert len(written()) == 20_000
    assert log.stat().st_size == 0


def test_a_log_is_emptied_also_where_it_can_t_be_kept(log: Path, written, monkeypatch) -> None:
    monkeypatch.setattr(engine_logs, "LONGEST", 10)
    log.with_name("engine.log.1").mkdir()  # as on a full disk, nothing can be copied there
    lines = EngineLog("engine", log, info)
    append(log, b"a line that is long enough\n")
    lines.look()
    assert written() == ["a line that is long enough"]
    assert log.stat().st_size == 0


def test_a_log_that_is_removed_and_made_again_is_followed(log: Path, written) -> None:
    lines = EngineLog("engine", log, info)
    log.unlink()
    lines.look()
    log.write_bytes(b"again\n")
    lines.look()
    assert written() == ["again"]


@pytest.mark.parametrize(
    ("line", "level", "event"),
    [
        ("checkpointer|LOG:  checkpoint starting: time", "info", "checkpoint starting: time"),
        ("checkpointer|PANIC:  no space left", "critical", "no space left"),
        ("autovacuum worker|ERROR:  canceling", "error", "canceling"),
        ("client backend|ERROR:  duplicate key", "debug", "duplicate key"),
        ("client backend|FATAL:  the database system is starting up", "info", STARTING),
        ("client backend|FATAL:  sorry, too many clients", "warning", "sorry, too many clients"),
    ],
)
def test_lines_of_postgresql(line: str, level: str, event: str) -> None:
    entry = postgres_line(f"2026-11-23 21:35:04.149 UTC|12|{line}")
    assert entry == Entry(level, event, "2026-11-23T21:35:04.149Z")


def test_lines_of_redis() -> None:
    begin = "19002:M 23 Nov 2026 21:35:04.202 # "
    assert redis_line(f"{begin}Server initialized").level == "info"
    text = "Can't save in background"
    assert redis_line(begin + text) == Entry("warning", text, "2026-11-23T21:35:04.202Z")
    assert redis_line("19002:M 99 Nov 2026 21:35:04.202 * x").level == "info"


@pytest.mark.slow
def test_every_line_of_an_instance_is_json_where_no_person_reads(
    start: Callable[..., Service],
) -> None:
    service = start(LOG_LEVEL="INFO")
    service.get("/api/nowhere")
    service.wait_for_line('"path":"/api/nowhere"')
    service.child("redis-server").kill()
    service.child("checkpointer").terminate()
    for engine in ("redis", "postgres"):
        service.wait_for_line(f'"process":"{engine}"')
    service.stop()
    records = [json.loads(line) for line in service.errors]
    assert {"postgres", "redis", "launcher", "web", "worker"} <= {
        record["process"] for record in records
    }
    for record in records:
        assert {"level", "event", "timestamp", "process"} <= set(record)


def test_a_reader_that_has_gone_away_ends_nothing() -> None:
    code = "from backend.logs import plain as lines; input(); lines.error('unread')"
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdin=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stderr
        process.stderr.close()
        process.stderr = None
        process.communicate(b"\n")
    assert process.returncode == 0


def test_a_readable_line_has_time_level_process_event_and_fields() -> None:
    record = {
        "event": "request",
        "logger": "request",
        "path": "/a b\x1b[2J",
        "status": 200,
        "process": "web",
        "level": "info",
        "timestamp": "2026-11-23T21:35:04.149123Z",
    }
    expected = "21:35:04.149 info     web       request path='/a b\\x1b[2J' status=200"
    assert render(record, colours=False) == expected
    assert render(record, colours=True).startswith("\x1b[2m21:35:04.149\x1b[0m ")


def test_a_traceback_follows_in_lines_of_its_own() -> None:
    record = {
        "event": "failed",
        "exception": "Traceback\n  at \x1b[2J",
        "process": "web",
        "level": "error",
        "timestamp": "2026-11-23T21:35:04Z",
    }
    assert render(record, colours=False).splitlines()[1:] == ["Traceback", "  at \\x1b[2J"]
