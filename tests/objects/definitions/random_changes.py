"""Random changes of the class Game: of its fields and indexes, its objects, the class itself."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from tests.rest import MASTER, Api, Reply

FIELDS = ("a", "b", "c")
VALUES = {"Number": 1_000, "String": "a new text", "Boolean": False}
"""A value of each type that fields get."""
_INDEXES = ("by_x", "by_y")
_DELETE = {"__op": "Delete"}


def change(master: Api, random: Random) -> Reply:
    """Send one change; many are refused, since they don't fit what the class is by then."""
    field, index = random.choice(FIELDS), random.choice(_INDEXES)
    type_ = {"type": random.choice([*VALUES])}

    def put(**body: Any) -> Callable[[], Reply]:
        return lambda: master.put("/schemas/Game", body)

    changes = [
        (4, put(fields={field: type_})),
        (3, put(fields={field: {**type_, "unique": True}})),
        (3, put(fields={field: _DELETE})),
        (3, put(indexes={index: {field: 1}})),
        (3, put(indexes={index: {"fields": {field: 1}, "unique": True}})),
        (4, put(indexes={index: _DELETE})),
        (1, lambda: master.delete("/purge/Game")),
        (1, lambda: master.delete("/schemas/Game")),
        (2, lambda: master.post("/schemas/Game", {"fields": {"a": {"type": "Number"}}})),
    ]
    (act,) = random.choices([act for _, act in changes], [weight for weight, _ in changes])
    return act()


def run(seed: int) -> None:
    """Change the class until the process is killed; print the status of each change."""
    master, random = Api(MASTER), Random(seed)
    while True:
        print(change(master, random).status, flush=True)
