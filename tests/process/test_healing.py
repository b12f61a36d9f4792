"""Whatever is killed while the service works: it heals by itself, and what it has said holds.

Killing one role costs no request, but for what a killed web process was just answering. Killing the
process that all are forked from costs a wait, since the listening sockets stay open. While an
engine is away the answer is 503 with ``Retry-After``.

``script/test --all tests/process/test_healing.py -s`` prints the table of docs/operating.md.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.process.loaded import loaded, report
from tests.process.service import PATIENCE, ROLES, Service
from tests.waiting import until

Start = Callable[..., Service]
pytestmark = pytest.mark.slow


def test_every_role_is_replaced_without_a_failed_request(start: Start, tmp_path: Path) -> None:
    with loaded(start, tmp_path) as load:
        for role in ROLES:
            before = load.service.processes_of(role)
            load.answers.clear()
            min(before, key=lambda process: process.pid).kill()
            until(partial(load.service.is_replaced, role, before), PATIENCE)
            report(role, load, load.heals())
            # What the killed web process was just answering is cut off.
            cut = sum(number for answer, number in load.answers.items() if answer not in (200, 201))
            assert cut <= (4 if role == "web" else 0), (role, load.answers, load.bodies)


@pytest.mark.parametrize("victim", ["backend.serve", "/postgres", "redis-server"])
def test_what_all_need_is_started_again(start: Start, tmp_path: Path, victim: str) -> None:
    with loaded(start, tmp_path) as load:
        process = load.service.child(victim)
        load.answers.clear()
        process.kill()
        until(lambda: load.service.child_or_none(victim, but=process), PATIENCE)
        report(victim, load, load.heals())
        assert {*load.answers} <= {200, 201, 503, "RemoteProtocolError", "ReadError"}, load.bodies
    load.service.wait_for_line("a process ended and is restarted")
