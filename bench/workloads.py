"""What is asked of the servers. A workload is a list of requests and a check of one answer."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from bench import data


@dataclass(frozen=True, slots=True)
class Loaded:
    """What is in a server: how many objects, and the ids that it gave them."""

    objects: int
    ids: list[str]
    owner_ids: list[str]


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: str  # with the mount path
    body: str = ""

    def line(self) -> str:
        return f"{self.method}\t{self.path}\t{self.body}\n"


@dataclass(frozen=True, slots=True)
class Workload:
    """``requests(mount, loaded)`` are repeated in order; ``check`` tells a right answer."""

    name: str
    title: str
    requests: Callable[[str, Loaded], Iterator[Request]]
    check: Callable[[Any], bool]


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def find(mount: str, where: dict[str, Any] | None = None, **options: Any) -> Request:
    """A query of the benchmark's class."""
    parameters = ({"where": _compact(where)} if where else {}) | options
    return Request("GET", f"{mount}/classes/{data.MAIN}?{urlencode(parameters, quote_via=quote)}")


def _picks(loaded: Loaded, count: int) -> list[int]:
    """Numbers of objects, the same ones in every run."""
    choose = random.Random(loaded.objects)
    return [choose.randrange(len(loaded.ids)) for _ in range(count)]


def _get(mount: str, loaded: Loaded) -> Iterator[Request]:
    for number in _picks(loaded, 20_000):
        yield Request("GET", f"{mount}/classes/{data.MAIN}/{loaded.ids[number]}")


def _range(field: str, **options: Any) -> Callable[[str, Loaded], Iterator[Request]]:
    def requests(mount: str, loaded: Loaded) -> Iterator[Request]:
        for number in _picks(loaded, 5_000):
            least = number * 9 // 10  # so that 20 are always left
            yield find(mount, {field: {"$gte": least}}, order=field, limit=20, **options)

    return requests


def _newest(mount: str, loaded: Loaded) -> Iterator[Request]:
    yield find(mount, order="-createdAt", limit=100)


def _equality(mount: str, loaded: Loaded) -> Iterator[Request]:
    for number in _picks(loaded, 5_000):
        yield find(mount, {"code": data.code(number)})


def _new(number: int, loaded: Loaded) -> dict[str, Any]:
    return data.an_object(number, loaded.objects, loaded.owner_ids)


def _create(mount: str, loaded: Loaded) -> Iterator[Request]:
    for number in range(2_000):
        yield Request("POST", f"{mount}/classes/{data.WRITTEN}", _compact(_new(number, loaded)))


def _update(mount: str, loaded: Loaded) -> Iterator[Request]:
    body = _compact({"visits": {"__op": "Increment", "amount": 1}})
    for number in _picks(loaded, 20_000):
        yield Request("PUT", f"{mount}/classes/{data.MAIN}/{loaded.ids[number]}", body)


def _checked(mount: str, loaded: Loaded) -> Iterator[Request]:
    for number in range(2_000):
        yield Request("POST", f"{mount}/classes/{data.CHECKED}", _compact(_new(number, loaded)))


def _call(mount: str, loaded: Loaded) -> Iterator[Request]:
    for number in range(2_000):
        body = _compact({"a": number, "b": 1, "note": "bench"})
        yield Request("POST", f"{mount}/functions/benchAdd", body)


def _batch(mount: str, loaded: Loaded) -> Iterator[Request]:
    path = f"{mount}/classes/{data.WRITTEN}"
    for start in range(0, 5_000, 50):
        parts = [
            {"method": "POST", "path": path, "body": _new(number, loaded)}
            for number in range(start, start + 50)
        ]
        yield Request("POST", f"{mount}/batch", _compact({"requests": parts}))


def _results(count: int) -> Callable[[Any], bool]:
    return lambda answer: len(answer["results"]) == count


def _is_whole(answer: Any) -> bool:
    return data.FIELDS.keys() | {"objectId", "createdAt", "updatedAt"} <= answer.keys()


def _is_included(answer: Any) -> bool:
    return len(answer["results"]) == 20 and all(
        found["owner"]["__type"] == "Object" and found["owner"]["name"]
        for found in answer["results"]
    )


WORKLOADS: tuple[Workload, ...] = (
    Workload("get", "get by id", _get, _is_whole),
    Workload("find", "find by range + order, index, 20", _range("score"), _results(20)),
    Workload("find-unindexed", "the same without an index", _range("rank"), _results(20)),
    Workload("newest", "find the 100 newest", _newest, _results(100)),
    Workload("equality", "equality, unindexed field, 1 found", _equality, _results(1)),
    Workload(
        "include", "find 20 with a pointer included", _range("score", include="owner"), _is_included
    ),
    Workload("create", "create", _create, lambda answer: len(answer["objectId"]) == 10),
    Workload("update", "update with Increment", _update, lambda answer: "updatedAt" in answer),
    Workload("function", "function call", _call, lambda answer: answer == {"result": 1}),
    Workload(
        "trigger",
        "create with a trigger before the save",
        _checked,
        lambda answer: answer["visits"] == 1,
    ),
    Workload(
        "batch",
        "batch of 50 creates",
        _batch,
        lambda answer: len(answer) == 50 and all("success" in part for part in answer),
    ),
)
