"""Lines of requests wait for each other, and none is lost or torn by that."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def run(code: str) -> list[str]:
    """The lines that a process with this code has written when it is gone."""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stderr.splitlines()


def test_a_process_that_ends_writes_what_waits() -> None:
    lines = run(
        "from backend.logs import lines as log_lines\n"
        "for n in range(1000): log_lines.write_soon(b'line %d' % n)"
    )
    assert lines == [f"line {n}" for n in range(1000)]


def test_a_line_that_may_not_wait_comes_after_those_that_do() -> None:
    lines = run(
        "import os\n"
        "from backend.logs import lines as log_lines\n"
        "log_lines.write_soon(b'first')\n"
        "log_lines.write(b'second')\n"
        "log_lines.write_soon(b'lost')\n"
        "os._exit(0)"
    )
    assert lines == ["first", "second"]


def test_a_waiting_line_is_written_without_another_event() -> None:
    reading, writing = os.pipe()
    code = (
        "import time\nfrom backend.logs import lines as log_lines\n"
        "log_lines.write_soon(b'one')\ntime.sleep(60)"
    )
    process = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stderr=writing)
    try:
        ready, _, _ = select.select([reading], [], [], 30)
        assert ready
        assert os.read(reading, 100) == b"one\n"
    finally:
        process.kill()
        process.wait()
        os.close(reading)
        os.close(writing)


def test_a_forked_process_writes_its_own_lines_and_not_its_parents() -> None:
    lines = run(
        "import multiprocessing\n"
        "from backend.logs import lines as log_lines\n"
        "def child():\n"
        "    log_lines.write_soon(b'child')\n"
        "log_lines.write_soon(b'parent')\n"
        "process = multiprocessing.get_context('fork').Process(target=child)\n"
        "process.start(); process.join()"
    )
    assert sorted(lines) == ["child", "parent"]


def test_lines_of_several_processes_are_never_torn_apart() -> None:
    lines = run(
        "import multiprocessing\n"
        "from backend.logs import lines as log_lines\n"
        "def child(name):\n"
        "    for n in range(2000): log_lines.write_soon(name * 150)\n"
        "fork = multiprocessing.get_context('fork')\n"
        "processes = [fork.Process(target=child, args=(name,)) for name in (b'a', b'b', b'c')]\n"
        "for process in processes: process.start()\n"
        "for process in processes: process.join()"
    )
    assert len(lines) == 6000
    assert set(lines) == {"a" * 150, "b" * 150, "c" * 150}


def test_a_log_that_no_one_reads_any_more_stops_nothing() -> None:
    code = (
        "import os\n"
        "from backend.logs import lines as log_lines\n"
        "reading, writing = os.pipe()\n"
        "os.dup2(writing, 2); os.close(reading)\n"
        "log_lines.write(b'into the void')\n"
        "os.write(1, b'alive')"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, timeout=60)
    assert done.stdout == b"alive"
