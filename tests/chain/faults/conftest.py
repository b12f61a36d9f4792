"""An installation with real processes, shared by the tests that do harm to one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.chain.faults.installation import Installation, installed


@pytest.fixture(scope="session")
def installation_of_session() -> Iterator[Installation]:
    with installed() as made:
        yield made


@pytest.fixture(scope="module")
def installation(installation_of_session: Installation) -> Iterator[Installation]:
    """Engines, a web process, and no others at first; what a module starts ends with it. Each test
    takes a network of its own."""
    made = installation_of_session
    yield made
    for key in [*made.running]:
        if key != "web":
            made.kill(key)


@pytest.fixture(autouse=True)
def _networks_of_before(request: pytest.FixtureRequest) -> Iterator[None]:
    """Networks are not followed any more when their test is over."""
    yield
    if "installation" in request.fixturenames:
        made: Installation = request.getfixturevalue("installation")
        made.rows("UPDATE chain_blockchain SET active = false RETURNING 1")
