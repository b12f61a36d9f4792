"""Paths of requests and of the items of batches: routed to a view, or refused."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote_to_bytes

import pytest

from backend.http.call import Call
from backend.http.edge.routing import resolve
from backend.kernel.principal import CLIENT
from backend.limits import rules_for
from objects.views.batch import _items
from tests.security.fuzz.mutation import Mutator
from tests.security.fuzz.targets import (
    EXAMPLES,
    accepts,
    check_nothing_long_is_remembered,
    check_work_is_proportional,
    fuzz,
)

CORPUS = [
    "/classes/Game",
    "/classes/Game/aaaaaaaaaa?keys=name",
    "/users/me",
    "/login?username=a&password=b",
    "/files/test-app/metadata/a.txt",
    "/files/a.txt",
    "/files/test-app/a/b/a.txt",
    "/schemas/",
    "/functions/hello",
    "/hooks/triggers/Game/beforeSave",
    "/apps/test-app/verify_email?token=a",
    "/aggregate/Game?pipeline=%5B%5D",
    "/batch",
    "/events/AppOpened",
]
WITH_SLASHES = {
    "/files/{app_id}/{name}",
    "/files/{app_id}/metadata/{name}",
    "/networks/{network_id}/providers/{name}",
}
"""Routes to names that may have slashes."""
ITEMS: list[dict[str, Any]] = [
    {"method": "POST", "path": "/api/classes/Game", "body": {"name": "a"}},
    {"method": "GET", "path": "/api/classes/Game?where=%7B%7D"},
    {"method": "PUT", "path": "/api/users/aaaaaaaaaa", "body": {}},
    {"method": "DELETE", "path": "/api/schemas/Game"},
]


def use(path: str) -> None:
    """Route a path as the server hands it over, and find its rate limits."""
    bare = unquote_to_bytes(path.partition("?")[0]).decode("utf-8", "replace")
    route = resolve(bare)
    rules_for(bare, "POST")
    if route is not None:
        names = {name: value for name, value in route.names.items() if name != "class_name"}
        if route.form in WITH_SLASHES:
            del names["name"]
        assert all("/" not in value for value in names.values())


def run_batch(body: Any) -> None:
    """Read the items of a batch."""
    for item in _items(Call(CLIENT, "POST", {}, body, "-")):
        assert item.request.path.startswith("/")


def make(mutator: Mutator) -> str:
    return mutator.text(mutator.sample())


def make_batch(mutator: Mutator) -> dict[str, Any]:
    items = [mutator.json(mutator.sample()) for _ in mutator.often()]
    requests = items if mutator.below(20) else mutator.json(items)
    return {"requests": requests}


def test_the_examples_are_valid():
    accepts(use, CORPUS)
    accepts(run_batch, [{"requests": ITEMS}])


@EXAMPLES
def test_any_path_is_routed_or_refused(examples):
    fuzz(use, make, CORPUS, examples)


@EXAMPLES
def test_any_batch_is_routed_or_refused(examples):
    fuzz(run_batch, make_batch, ITEMS, examples)


@pytest.mark.parametrize("piece", ["/", "a", "/a", "%2f", "..", "/../", "\u00e9"])
def test_work_is_proportional_to_size(piece):
    check_work_is_proportional(use, lambda size: f"/classes/{piece * size}", (50, 200, 800, 3_200))


def test_nothing_long_is_remembered():
    for path in ("/{}", "/classes/{}", "/classes/Game/{}", "/functions/{}", "/files/{}", "/x?{}"):
        check_nothing_long_is_remembered(use, path.format)
        check_nothing_long_is_remembered(
            run_batch,
            lambda text, path=path: {
                "requests": [{"method": "GET", "path": f"/api{path.format(text)}"}]
            },
        )
