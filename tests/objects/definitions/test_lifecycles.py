"""Random changes of one class by two operators, beside writers, readers and old transactions.

At every moment what a class declares is in the database and enforced, and at the end nothing else
is there. No request fails for another's sake.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from django.db import connection, transaction

from backend.kernel.connections import postgres
from objects.core.names import CREATED_AT, OBJECT_ID, UPDATED_AT
from objects.definitions import class_rows, indexes, registry
from objects.learned import schedule
from tests.objects.definitions.random_changes import FIELDS, VALUES, change
from tests.other_process import ROOT, database_url
from tests.polling import until
from tests.random_seeds import DRAWN, seed_of
from tests.rest import MASTER, Api, Reply

pytestmark = pytest.mark.django_db(transaction=True)

CHANGES = 12  # of each operator


class World:
    """What the threads share: the replies that no caller should get, and the end."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.is_over = threading.Event()
        self.faults: list[Any] = []

    def check(self, what: Any, reply: Reply) -> None:
        # 124 and 251: the statement waited too long, or lost against another one.
        is_refused = reply.status >= 400 and reply.json["code"] in (124, 251)
        if reply.status >= 500 or is_refused:
            self.faults.append((what, reply.status, reply.json))

    def thread(self, act: Callable[[Random], None], number: int) -> threading.Thread:
        def run() -> None:
            try:
                act(Random(self.seed * 100 + number))
            except Exception as error:
                self.faults.append(repr(error))
                raise
            finally:
                connection.close()

        return threading.Thread(target=run)


def operate(world: World, random: Random) -> None:
    """Change the class."""
    for _ in range(CHANGES):
        world.check("change", change(Api(MASTER), random))


def write(world: World, random: Random) -> None:
    """Save objects, with values of any type, and find them."""
    master = Api(MASTER)
    while not world.is_over.is_set():
        values = (random.randrange(40), f"text {random.randrange(40)}", True)
        fields = {name: random.choice(values) for name in FIELDS if random.random() < 0.5}
        reply = master.post("/classes/Game", fields)
        world.check(("create", fields), reply)
        if reply.status == 201:
            path = f"/classes/Game/{reply.json['objectId']}"
            world.check("update", master.put(path, {random.choice(FIELDS): random.choice(values)}))
        world.check("find", master.get("/classes/Game", where={"a": {"$exists": True}}, order="b"))


def linger(world: World, random: Random) -> None:
    """Leave transactions on the class open for a while, which read or write it."""
    with postgres.connect(60) as beside:
        while not world.is_over.wait(random.uniform(0, 0.2)):
            table = registry.current("Game")
            if table is None:
                continue
            statement = random.choice(
                (
                    f"SELECT count(*) FROM {table.relation}",
                    f"UPDATE {table.relation} SET updated_at = now() WHERE false",
                    "SELECT count(*) FROM objects_object",
                )
            )
            with beside.transaction():
                if beside.execute("SELECT to_regclass(%s)", [table.relation]).fetchone() != (None,):
                    beside.execute(statement)
                world.is_over.wait(random.uniform(0, 0.4))


def watch(world: World, _random: Random) -> None:
    """Compare what is declared with what the database has, between two changes."""
    while not world.is_over.wait(0.02):
        with transaction.atomic():
            table = registry.lock("Game")
            missing = indexes.missing(table) if table is not None else []
        if missing:
            world.faults.append(("declared and not there", missing))


@pytest.mark.parametrize("case", [1, 2, DRAWN])
def test_what_a_class_declares_is_there_and_enforced(transactional_db, case):
    world = World(seed_of(case))
    assert Api(MASTER).post("/schemas/Game", {"fields": {"a": {"type": "Number"}}}).status == 200
    others = [write, write, linger, watch]
    threads = [
        world.thread(lambda random, act=act: act(world, random), number)
        for number, act in enumerate([operate, operate, *others])
    ]
    for thread in threads:
        thread.start()
    for thread in threads[:2]:
        thread.join(120)
    world.is_over.set()
    for thread in threads:
        thread.join(60)
    assert world.faults == []
    schedule.tidy()
    assert is_tidy()
    assert_declared_is_enforced_and_shown()


@pytest.mark.slow
@pytest.mark.process
def test_a_process_that_is_killed_leaves_nothing_that_the_upkeep_does_not_put_in_order(
    transactional_db,
):
    random = Random(seed_of(DRAWN))
    Api(MASTER).make("Game", a=1)
    code = (
        "import django; django.setup()\n"
        "from tests.objects.definitions.random_changes import run\n"
        f"run({random.randrange(10**6)})"
    )
    settings = {"DJANGO_SETTINGS_MODULE": "tests.settings", "ALLOWED_HOSTS": "testserver"}
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, "DATABASE_URL": database_url(), **settings},
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    with process.stdout:
        statuses = [process.stdout.readline() for _ in range(random.randrange(15, 40))]
        process.kill()
    process.wait()
    assert b"200\n" in statuses
    until(lambda: schedule.tidy() or is_tidy(), 30)
    assert_declared_is_enforced_and_shown()


def is_tidy() -> bool:
    """Whether the database has all that the class declares, and nothing else."""
    table = registry.current("Game")
    return class_rows.removed_partitions() == [] and (
        table is None or indexes.missing(table) == indexes.undeclared(table) == []
    )


def assert_declared_is_enforced_and_shown() -> None:
    master = Api(MASTER)
    table = registry.current("Game")
    if table is None:
        return
    shown = master.get("/schemas/Game").json
    assert shown.get("indexes", {}) == {
        name: index.to_wire() for name, index in table.schema.indexes.items()
    }
    stored = {name for row in master.results("Game", limit=1000) for name in row}
    assert stored <= {*table.schema.fields, OBJECT_ID, CREATED_AT, UPDATED_AT}
    declared = table.schema.index_declarations.values()
    for field, wire in shown["fields"].items():
        if field not in FIELDS:
            continue
        is_unique = any(index.unique and index.fields[0][0] == field for index in declared)
        for _ in range(2):
            reply = master.post("/classes/Game", {field: VALUES[wire["type"]]})
        assert (reply.status == 400) == is_unique, (field, reply.json)
