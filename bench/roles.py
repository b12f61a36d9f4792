"""What it costs to be a member of many roles: a get by somebody who holds 300, 50 levels deep.

``script/bench --roles``. One process, one connection, one request after the other, the callers in
turn. *Invalidated* means that a role has changed since the last request, so that the process has
to ask for the roles anew.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from typing import Any

import psycopg

from bench import accounting
from bench.client import Client
from bench.failure import BenchFailure
from bench.measure import say
from bench.servers import Engines, Target

ROLES = 300
DEPTH = 50
_WARM_UP = 200
_SECRET = "Secret"
_PASSWORD = "a password for measuring"
# What every change of a role does to what is kept of roles, in its own transaction.
_CHANGED = "UPDATE objects_role_version SET version = nextval('objects_role_version_number')"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks; ``invalidated`` if the roles have changed before each request."""

    title: str
    token: str | None
    invalidated: bool = False


def compare(engines: Engines, target: Target, requests: int) -> tuple[str, dict[str, Any]]:
    """The figures of each caller, as a table and as they are."""
    say(f"{target.name}: making {ROLES} roles, {DEPTH} levels deep")
    callers, path = _prepare(target)
    target.tune(engines)
    lines = [
        "| who gets an object by id | p50 ms | p95 ms | CPU µs server + PostgreSQL |",
        "| --- | ---: | ---: | ---: |",
    ]
    contents = {}
    for caller in callers:
        times, server, postgres = _ask(engines, target, caller, path, requests)
        p50, p95 = statistics.median(times), statistics.quantiles(times, n=20)[18]
        contents[caller.title] = {"p50_ms": p50, "p95_ms": p95, "cpu_us": [server, postgres]}
        lines.append(
            f"| {caller.title} | {p50:.2f} | {p95:.2f} | {server:,.0f} + {postgres:,.0f} |"
        )
    return "\n".join(lines), {"roles": contents}


def _prepare(target: Target) -> tuple[list[Caller], str]:
    with target.master() as master, target.client() as client:
        users = [
            client.send("POST", "/users", {"username": name, "password": _PASSWORD})
            for name in ("member", "nobody")
        ]
        last = _make_roles(master, users[0]["objectId"])
        acl = {f"role:{last}": {"read": True}, "*": {"read": True}}
        made = master.send("POST", f"/classes/{_SECRET}", {"word": "s", "ACL": acl})
    member, nobody = (user["sessionToken"] for user in users)
    callers = [
        Caller("nobody logged in", None),
        Caller("a user without roles", nobody),
        Caller(f"a member of {ROLES} roles", member),
        Caller("a user without roles, invalidated", nobody, invalidated=True),
        Caller(f"a member of {ROLES} roles, invalidated", member, invalidated=True),
    ]
    return callers, f"{target.mount}/classes/{_SECRET}/{made['objectId']}"


def _make_roles(master: Client, user_id: str) -> str:
    """A chain of roles, and others that have one of the chain in them; the last one's name."""
    chain: list[str] = []
    name = ""
    for number in range(ROLES):
        name = f"Role {number}"
        below = chain[-1] if number < DEPTH and chain else chain[number % DEPTH] if chain else None
        body: dict[str, Any] = {"name": name, "ACL": {"*": {"read": True}}}
        if below is None:
            body["users"] = _adding("_User", user_id)
        else:
            body["roles"] = _adding("_Role", below)
        made = master.send("POST", "/roles", body)
        if number < DEPTH:
            chain.append(made["objectId"])
    return name


def _adding(class_name: str, object_id: str) -> dict[str, Any]:
    pointer = {"__type": "Pointer", "className": class_name, "objectId": object_id}
    return {"__op": "AddRelation", "objects": [pointer]}


def _ask(
    engines: Engines, target: Target, caller: Caller, path: str, requests: int
) -> tuple[list[float], float, float]:
    """Milliseconds of each request, and the processor time of one in microseconds."""
    headers = dict(target.headers)
    if caller.token is not None:
        headers[f"{target.prefix}-Session-Token"] = caller.token
    times = []
    with (
        Client(target.port, target.mount, headers) as client,
        psycopg.connect(engines.url(target.database), autocommit=True) as connection,
    ):
        for _ in range(_WARM_UP):
            client.attempt("GET", path, None)
        before = (
            accounting.cpu_seconds(target.pids[0]),
            accounting.cpu_seconds(engines.postgres_pid),
        )
        for _ in range(requests):
            if caller.invalidated:
                connection.execute(_CHANGED)
            start = time.perf_counter()
            status, answer = client.attempt("GET", path, None)
            times.append((time.perf_counter() - start) * 1000)
            if status != 200:
                raise BenchFailure(f"{caller.title} was answered {status}: {answer[:400]!r}")
        after = accounting.cpu_seconds(target.pids[0]), accounting.cpu_seconds(engines.postgres_pid)
    server, postgres = ((a - b) / requests * 1e6 for a, b in zip(after, before, strict=True))
    return times, server, postgres
