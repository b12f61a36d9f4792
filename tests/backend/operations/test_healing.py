"""Every process that is killed is replaced, and nothing that was acknowledged is lost.

Killing a role's process costs no request, but for those that a killed web process was answering.
Killing the process that all are forked from costs a wait, since the listening sockets stay open.
While an engine is away the answer is 503 with ``Retry-After``.

``script/test --all tests/backend/operations/test_healing.py -s`` prints a table of the
section "What was killed, filled and stopped" of docs/performance-running.md.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import psutil
import pytest

from tests.backend.operations.load_outcomes import NAMES, Start, Table, loaded
from tests.backend.operations.service import PATIENCE, ROLES, Service
from tests.polling import until

pytestmark = pytest.mark.slow

MOST_CUT = 4
"""Requests that a web process answers at the same time, of those of the load."""


def processes(service: Service) -> dict[str, set[psutil.Process]]:
    """The processes of every role, and the roots of the application and the engines."""
    by_role = {role: service.processes_of(role) for role in ROLES}
    return by_role | {name: {service.child(name)} for name in NAMES}


def test_every_role_is_replaced_without_a_failed_request(
    start: Start, tmp_path: Path, table: Table
) -> None:
    with loaded(start, tmp_path) as load:
        for role in ROLES:
            before = processes(load.service)
            victim = min(before[role], key=lambda process: process.pid)
            load.answers.clear()
            victim.kill()
            until(partial(load.service.is_replaced, role, before[role]), PATIENCE)
            seconds = load.seconds_to_recover()
            table.add(f"a process of `{role}` is killed", load, seconds)
            # The requests that a killed web process was answering are cut off.
            cut = sum(number for answer, number in load.answers.items() if answer not in (200, 201))
            assert cut <= (MOST_CUT if role == "web" else 0), (role, load.answers, load.bodies)
            after = processes(load.service)
            assert before[role] - after[role] == {victim}
            assert len(after[role]) == len(before[role])
            assert {name for name in before if before[name] != after[name]} == {role}


@pytest.mark.parametrize(
    ("victim", "replaced"),
    [
        ("backend.serve", {"backend.serve", *ROLES}),
        ("/postgres", {"/postgres"}),
        ("redis-server", {"redis-server"}),
    ],
)
def test_what_all_need_is_started_again(
    start: Start, tmp_path: Path, table: Table, victim: str, replaced: set[str]
) -> None:
    with loaded(start, tmp_path) as load:
        before = processes(load.service)
        (process,) = before[victim]
        load.answers.clear()
        process.kill()
        until(lambda: load.service.child_or_none(victim, but=process), PATIENCE)
        seconds = load.seconds_to_recover()
        table.add(f"{NAMES[victim]} is killed", load, seconds)
        assert {*load.answers} <= {200, 201, 503, "RemoteProtocolError", "ReadError"}, load.bodies
        after = processes(load.service)
        assert {name for name in before if not before[name] & after[name]} == replaced
        assert {name for name in before if before[name] != after[name]} == replaced
    load.service.wait_for_line("a process ended and is restarted")
