"""Log records of all processes in Redis: what is stored, how much, and at what cost."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import redis
from django.db import connection

from backend.kernel.texts.redaction import MASK
from backend.logs import search as log_search
from backend.logs import setup
from backend.logs import store as log_store
from backend.logs.filters import LogFilter
from backend.logs.search import LogUnavailable
from backend.logs.store import LogStore
from objects.definitions import registry
from tests.objects.admin.log_records import *  # noqa: F403
from tests.rest import MASTER, Api

ROOT = Path(__file__).resolve().parents[3]
TOKEN = "r:0123456789abcdef0123456789abcdef"


def search(**expected: str) -> list[dict[str, object]]:
    """What is found once this process has sent what it has."""
    log_store.flush()
    return [entry.fields for entry in log_search.search(LogFilter(**expected)).entries]


def test_records_of_both_kinds_of_loggers_are_kept_newest_first(log_store_redis):
    setup.get_logger("test").info("first", n=1)
    logging.getLogger("elsewhere").warning("second %s", "thing")
    second, first = search()
    assert (first["event"], first["n"], first["level"]) == ("first", 1, "info")
    assert (second["event"], second["logger"]) == ("second thing", "elsewhere")
    assert {first["process"], second["process"]} == {"test"}


def test_a_readable_log_keeps_the_same_records(log_store_redis, capfd):
    setup.configure("INFO", "console", "test")
    setup.get_logger("test").info("readable", password="hunter2")
    assert "readable" in capfd.readouterr().err
    (record,) = search()
    assert record["event"] == "readable"
    assert record["password"] == MASK


def test_no_secret_gets_into_the_store(log_store_redis):
    log = setup.get_logger("test")
    log.info("given", sessionToken=TOKEN, headers={"X-Svc-Master-Key": "hunter2"}, text=TOKEN)
    setup.request_line("a" * 32, "GET", f"/api/sessions/{TOKEN}", 200, 1.0)
    try:
        raise RuntimeError(f"password=hunter2 {TOKEN}")
    except RuntimeError:
        log.exception("failed")
    log_store.flush()
    stored = b"".join(fields[b"r"] for _, fields in log_store_redis.xrange(log_store.STREAM))
    assert stored.count(MASK.encode()) >= 5
    assert b"hunter2" not in stored
    assert TOKEN.encode() not in stored


@pytest.mark.django_db
def test_a_failure_is_found_with_its_trace_by_the_id_that_the_client_received(log_store_redis):
    master = Api(MASTER)
    master.make("Broken")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE objects_class SET definition = '[]' WHERE name = 'Broken'")
    registry.forget_all()
    reply = master.get("/classes/Broken")
    assert reply.status == 500
    request_id = reply.headers["X-Request-Id"]
    assert request_id in reply.json["error"]
    request, failure = search(request_id=request_id)
    assert (request["path"], request["status"]) == ("/api/classes/Broken", 500)
    assert failure["event"] == "request failed"
    assert "Traceback" in str(failure["exception"])


def test_what_is_requested(log_store_redis):
    setup.configure("DEBUG", "json", "test")
    log = setup.get_logger("test")
    log.debug("a", request_id="1" * 32, path="/api/classes/Room")
    log.info("b", request_id="2" * 32, path="/api/users")
    log.error("c", request_id="2" * 32, detail={"deep": ["Needle"]})

    def events_of(**expected: str) -> str:
        return "".join(str(record["event"]) for record in search(**expected))

    assert events_of() == "cba"
    assert events_of(request_id="2" * 32) == "cb"
    assert events_of(request_id="2" * 31) == ""
    assert events_of(level="info") == "cb"
    assert events_of(level="error") == "c"
    assert events_of(process="test") == "cba"
    assert events_of(process="web") == ""
    assert events_of(path="/API/classes") == "a"
    assert events_of(text="needle") == "c"
    assert events_of(text="needle", level="critical") == ""


def test_paging_by_place(log_store_redis):
    for number in range(25):
        setup.get_logger("test").info("event", n=number)
    log_store.flush()
    observed: list[object] = []
    before = None
    while True:
        page = log_search.search(LogFilter(), before=before, limit=10)
        observed += [entry.fields["n"] for entry in page.entries]
        before = page.older
        if before is None:
            break
    assert observed == [*reversed(range(25))]


def test_a_search_that_finds_little_stops_and_says_where(log_store_redis):
    for number in range(30):
        setup.get_logger("test").info("event", n=number)
    log_store.flush()
    nowhere = LogFilter(text="nowhere")
    page = log_search.search(nowhere, most_read=20)
    assert page.entries == []
    assert page.older is not None
    match = log_search.search(nowhere, before=page.older, most_read=20)
    assert match == log_search.Page([], None)


def test_one_record_by_its_place(log_store_redis):
    setup.get_logger("test").info("event")
    log_store.flush()
    (entry,) = log_search.search(LogFilter()).entries
    assert log_search.entry(entry.place) == entry
    assert log_search.entry("1-1") is None
    for odd in ("", "x", "-", "+", "1", f"{entry.place}\n", "1-1-1", "9" * 30 + "-1"):
        assert log_search.entry(odd) is None


def test_the_store_is_capped(log_store_redis, settings):
    store = LogStore(settings.REDIS_URL, 300)
    for number in range(3000):
        store.keep(b'{"event": "%d"}' % number)
    assert store.send()
    assert 300 <= log_store_redis.xlen(log_store.STREAM) < 600
    newest = log_search.search(LogFilter(), limit=1).entries[0]
    assert newest.fields["event"] == "2999"


def test_a_long_record_is_shortened_and_keeps_what_it_is_found_by(log_store_redis):
    trace = "begin " + "x" * 100_000 + " end"
    setup.get_logger("test").error(
        "failed", request_id="3" * 32, exception=trace, list=["y"] * 9000
    )
    (record,) = search(request_id="3" * 32)
    assert record["shortened"] is True
    shown = str(record["exception"])
    assert shown.startswith("begin")
    assert shown.endswith("end")
    ((_, fields),) = log_store_redis.xrange(log_store.STREAM)
    assert len(fields[b"r"]) < 20_000


def test_what_else_is_in_redis_or_broken_does_no_harm(log_store_redis):
    log_store_redis.xadd(log_store.STREAM, {"r": "no json"})
    log_store_redis.xadd(log_store.STREAM, {"r": "[1]"})
    log_store_redis.xadd(log_store.STREAM, {"other": "1"})
    setup.get_logger("test").info("fine")
    assert [record["event"] for record in search()] == ["fine"]


def test_without_redis_nothing_waits_and_what_came_meanwhile_is_kept(log_store_redis, settings):
    store = LogStore("redis://127.0.0.1:1/0", 100)
    store.keep(b'{"event": "early"}')
    assert not store.send()
    begin = time.perf_counter()
    for _ in range(50_000):
        store.keep(b'{"event": "late"}')
    assert time.perf_counter() - begin < 5
    again = LogStore(settings.REDIS_URL, 100)
    store.url, store._add = again.url, None
    assert store.send()
    assert search()[0]["event"] == "late"


def test_a_store_that_does_not_answer_is_said(log_store_redis, settings):
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    with pytest.raises(LogUnavailable):
        log_search.search(LogFilter())


def run(code: str, url: str) -> None:
    environment = {**os.environ, "STORE": url}
    begin = (
        "import os\nfrom backend.logs import store as log_store\n"
        "log_store.configure(os.environ['STORE'], 1000)"
    )
    code = f"{begin}\n{code}"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, timeout=60, check=True)


def events(server: redis.Redis) -> list[str]:
    return [json.loads(fields[b"r"])["event"] for _, fields in server.xrange(log_store.STREAM)]


def test_a_process_that_ends_sends_what_waits(log_store_redis, settings):
    run('for n in range(1200): log_store.keep(b\'{"event": "%d"}\' % n)', settings.REDIS_URL)
    entries = events(log_store_redis)
    assert entries == [str(n) for n in range(1200)][-len(entries) :]
    assert len(entries) >= 1000


def test_a_forked_process_sends_its_own_records_once(log_store_redis, settings):
    run(
        "import multiprocessing\n"
        "def child():\n"
        '    log_store.keep(b\'{"event": "child"}\')\n'
        'log_store.keep(b\'{"event": "parent"}\')\n'
        "process = multiprocessing.get_context('fork').Process(target=child)\n"
        "process.start(); process.join()",
        settings.REDIS_URL,
    )
    assert sorted(events(log_store_redis)) == ["child", "parent"]


def test_a_waiting_record_is_sent_without_another_event(log_store_redis, settings):
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import os, sys\nfrom backend.logs import store as log_store\n"
            "log_store.configure(os.environ['STORE'], 10)\n"
            'log_store.keep(b\'{"event": "alone"}\')\nsys.stdin.read()',
        ],
        cwd=ROOT,
        env={**os.environ, "STORE": settings.REDIS_URL},
        stdin=subprocess.PIPE,
    )
    try:
        entries = log_store_redis.xread({log_store.STREAM: "0"}, block=30_000)
        assert entries
    finally:
        process.kill()
        process.wait()
        assert process.stdin is not None
        process.stdin.close()
