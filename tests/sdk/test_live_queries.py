"""Live queries with the official JavaScript SDK, which connects to a realtime process."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.backend.operations.service import Service
from tests.other_process import OtherProcess
from tests.realtime.server_process import eventually
from tests.sdk.applications import FOLDER, KEYS, outcomes_of
from tests.sdk.realtime import Realtime

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.usefixtures("emptied"),
    pytest.mark.xdist_group("sdk"),
]
CHECKS = re.findall(r"^  async '(.+)'\(", (FOLDER / "live.js").read_text(), re.MULTILINE)


@pytest.fixture(scope="module")
def realtime(other: OtherProcess) -> Iterator[Realtime]:
    running = Realtime(other)
    yield running
    running.stop()


@pytest.fixture(scope="module")
def outcomes(node: str, other: OtherProcess, realtime: Realtime) -> dict[str, Any]:
    """What each check came to: an error, or None."""
    return dict(outcomes_of(node, "live.js", other.url, *KEYS, realtime.url))


@pytest.mark.parametrize("check", CHECKS)
def test_the_sdk_hears_of_objects(check, outcomes):
    assert check in outcomes
    assert outcomes[check] is None, outcomes[check]


@contextlib.contextmanager
def listening(node: str, *arguments: str) -> Iterator[list[str]]:
    """The steps of a client that goes on listening."""
    client = subprocess.Popen(
        [node, "live_restart.js", *arguments], cwd=FOLDER, stdout=subprocess.PIPE, text=True
    )
    assert client.stdout
    steps: list[str] = []

    def read() -> None:
        assert client.stdout
        steps.extend(json.loads(line)["step"] for line in client.stdout)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        yield steps
    finally:
        client.kill()
        client.wait()
        reader.join()


@pytest.mark.slow
def test_the_sdk_connects_again_when_the_process_was_killed(node, other, realtime):
    fields = {"name": {"type": "String"}}
    other.do("POST", "/schemas/Game", {"className": "Game", "fields": fields})
    with listening(node, other.url, *KEYS, realtime.url) as steps:
        eventually(lambda: "subscribed" in steps)
        other.do("POST", "/classes/Game", {"name": "before"})
        eventually(lambda: "created before" in steps)
        realtime.kill()
        eventually(lambda: "closed" in steps)
        realtime.start()
        eventually(lambda: steps.count("subscribed") == 2)
        other.do("POST", "/classes/Game", {"name": "after"})
        eventually(lambda: "created after" in steps)


@pytest.mark.slow
@pytest.mark.process
def test_the_sdk_hears_of_objects_by_the_address_that_it_guesses(node, tmp_path):
    names = ("APP_ID", "JAVASCRIPT_KEY", "MASTER_KEY")
    service = Service(
        tmp_path / "data",
        **dict(zip(names, KEYS, strict=True)),
        REST_API_KEY="test-rest-key",
        LIVE_QUERY_KEY_PAIRS="javascriptKey,masterKey",
    )
    try:
        results = dict(outcomes_of(node, "live.js", f"{service.url}/api", *KEYS))
        assert results == dict.fromkeys(CHECKS)
    finally:
        service.stop()
