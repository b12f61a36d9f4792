"""Random changes of one class by two operators, beside writers, readers and old transactions.

At every moment what a class declares is in the database and enforced, and at the end nothing else
is there. No request fails for another's sake.
"""

from __future__ import annotations

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
from tests.random_seeds import DRAWN, seed_of
from tests.rest import MASTER, Api, Reply

pytestmark = pytest.mark.django_db(transaction=True)

DELETE = {"__op": "Delete"}
FIELDS = ("a", "b", "c")
KINDS = ("Number", "String", "Boolean")
NAMES = ("by_x", "by_y")
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
    master = Api(MASTER)
    for _ in range(CHANGES):
        field, name = random.choice(FIELDS), random.choice(NAMES)
        kind = {"type": random.choice(KINDS)}
        changes: list[tuple[int, Callable[[], Reply]]] = [
            (4, lambda f=field, k=kind: put(master, fields={f: k})),
            (3, lambda f=field, k=kind: put(master, fields={f: {**k, "unique": True}})),
            (3, lambda f=field: put(master, fields={f: DELETE})),
            (3, lambda f=field, n=name: put(master, indexes={n: {f: 1}})),
            (3, lambda f=field, n=name: put(master, indexes={n: unique(f)})),
            (4, lambda n=name: put(master, indexes={n: DELETE})),
            (1, lambda: master.delete("/purge/Game")),
            (1, lambda: master.delete("/schemas/Game")),
            (2, lambda: master.post("/schemas/Game", {"fields": {"a": {"type": "Number"}}})),
        ]
        (act,) = random.choices([act for _, act in changes], [weight for weight, _ in changes])
        world.check("operator", act())


def put(master: Api, **body: Any) -> Reply:
    return master.put("/schemas/Game", body)


def unique(field: str) -> dict[str, Any]:
    return {"fields": {field: 1}, "unique": True}


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
    assert class_rows.removed_partitions() == []
    table = registry.current("Game")
    if table is not None:
        assert_declared_is_enforced_and_shown(table)


def assert_declared_is_enforced_and_shown(table: Any) -> None:
    master = Api(MASTER)
    assert indexes.missing(table) == []
    assert indexes.undeclared(table) == []
    shown = master.get("/schemas/Game").json
    assert shown.get("indexes", {}) == {
        name: index.to_wire() for name, index in table.schema.indexes.items()
    }
    stored = {name for row in master.results("Game", limit=1000) for name in row}
    assert stored <= {*table.schema.fields, OBJECT_ID, CREATED_AT, UPDATED_AT}
    values = {"Number": 1_000, "String": "a new text", "Boolean": False}
    declared = table.schema.index_declarations.values()
    for field, wire in shown["fields"].items():
        if field not in FIELDS:
            continue
        is_unique = any(index.unique and index.fields[0][0] == field for index in declared)
        for _ in range(2):
            reply = master.post("/classes/Game", {field: values[wire["type"]]})
        assert (reply.status == 400) == is_unique, (field, reply.json)
