"""docs/call-paths.md follows the code as it is: its paths are run, or their functions looked up."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from functions import FunctionRequest, JobRequest, TriggerRequest, before_save, function, job
from functions.jobs.models import JobStatus
from functions.jobs.tasks import run_job
from tests.chain.indexed_network import listen, network
from tests.evm.node import Node
from tests.people import log_in, sign_up
from tests.rest import Api
from tests.structure.paths.tracing import traced

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "call-paths.md").read_text()
_BLOCK = re.compile(r"<!-- (path|read): (\w+) -->\n```\n(.*?)```", re.DOTALL)
PATHS = {
    name: [line.split()[0] for line in body.splitlines()] for _, name, body in _BLOCK.findall(PAGE)
}
READ = [name for kind, name, _ in _BLOCK.findall(PAGE) if kind == "read"]

pytestmark = pytest.mark.django_db


@contextmanager
def follows(name: str) -> Iterator[None]:
    """Assert that the code inside calls the functions of a path of the page in this order."""
    with traced() as calls:
        yield
    remaining = iter(calls)
    for step in PATHS[name]:
        assert step in remaining, f"{name}: {step} isn't called, or not after the step before it"


def function_named(dotted: str) -> Any:
    """The function or method of that name. Raises ``AttributeError`` if there is none."""
    parts = dotted.split(".")
    for length in range(len(parts) - 1, 0, -1):
        try:
            module: Any = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            module = getattr(module, part)
        return module
    raise AttributeError(dotted)


@pytest.mark.parametrize("name", READ)
def test_the_functions_that_the_page_names_are_there(name: str) -> None:
    assert all(callable(function_named(step)) for step in PATHS[name])


def test_a_request_takes_its_path(master: Api, client: Api) -> None:
    game = master.make("Game", score=1)
    client.get(f"/classes/Game/{game}")
    with follows("get"):
        assert client.get(f"/classes/Game/{game}").status == 200


def test_a_save_with_a_trigger_takes_its_path(master: Api) -> None:
    master.make("Game", score=1)

    @before_save("Game")
    def check(request: TriggerRequest) -> None:
        return None

    with follows("trigger"):
        assert master.post("/classes/Game", {"score": 2}).status == 201


def test_a_server_function_takes_its_path(client: Api) -> None:
    @function("hello")
    def hello(request: FunctionRequest) -> str:
        return "hello"

    with follows("function"):
        assert client.post("/functions/hello", {}).json == {"result": "hello"}


def test_signing_in_takes_its_path() -> None:
    sign_up("ann")
    with follows("login"):
        assert log_in("ann").status == 200


def test_a_job_takes_its_path(master: Api) -> None:
    @job("tidy")
    def tidy(request: JobRequest) -> None:
        return None

    with follows("job"):
        assert master.post("/jobs/tidy", {}).status == 200
        run_job(str(JobStatus.objects.get().object_id))


def test_a_log_of_a_contract_takes_its_path(node: Node) -> None:
    node.mine(3)
    with network(node) as world:
        listen(world)
        world.follow()
        world.mint()
        with follows("index"):
            world.follow()
        world.check()
