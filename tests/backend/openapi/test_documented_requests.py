"""Any request to a documented operation, by the master key, a user or a stranger, is answered
without a 5xx.

schemathesis makes requests as the document describes them, and others that it excludes. Names in
paths are half of the time those of objects that exist, and queries ones that mean something.
``DOCUMENTED_CASES`` is the number of requests of the whole run; ``script/fuzz`` sets it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from random import Random
from typing import Any

import pytest
import schemathesis
from django.core.management import call_command
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import Case, GenerationMode
from schemathesis.schemas import APIOperation

from backend.wsgi import application
from tests.backend.openapi.test_conformance import FIELDS, ORDERS, WHERES, WORDS
from tests.people import PASSWORD, make_role, sign_up
from tests.rest import CLIENT, MASTER, Api

# Every transactional test leaves an empty database behind, so workers of a run share these.
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

CASES = int(os.environ.get("DOCUMENTED_CASES", "2400"))
CALLERS = ("master", "user", "stranger")
PARTS = 8
"""The operations are divided into so many tests, for the workers of a run."""
_MOST = 25
"""Requests of an operation, before it is the next one's turn."""
_ROUNDS = 200
_FRESH = 8
"""Operations after which the world is made again: some of them remove what others need."""


class World:
    """A class with fields of many kinds, an object, a user and a role."""

    def __init__(self, caller: str) -> None:
        call_command("flush", verbosity=0, interactive=False, reset_sequences=False)
        master = Api(MASTER)
        user = sign_up("ann", email="ann@example.org")
        master.post("/schemas/Project", {"fields": FIELDS})
        project = master.make("Project", name="a", stars=1, open=True, tags=["a"])
        role = make_role(master, "Editors", [user])
        self.headers = {"master": MASTER, "user": user.headers, "stranger": CLIENT}[caller]
        self.ids = [project, user.user_id, role, "ann", "Editors", "Project", PASSWORD]


def operations() -> Iterator[APIOperation]:
    """All that the document of the master key has."""
    headers = dict(MASTER)
    document = schemathesis.openapi.from_wsgi("/api/openapi.json", application, headers=headers)
    for result in document.get_all_operations():
        yield result.ok()


def sensible(case: Case, random: Random, world: World) -> Case:
    """The case, with names that exist and queries that mean something in some of its places."""
    for name in case.path_parameters or ():
        if random.random() < 0.5:
            case.path_parameters[name] = random.choice(world.ids)
    query = case.query or {}
    for name, values in (("where", WHERES), ("order", ORDERS), ("keys", WORDS)):
        if name in query and random.random() < 0.7:
            value = random.choice(values)
            query[name] = value if isinstance(value, str) else json.dumps(value)
    return case


def run_round(
    operation: APIOperation, number: int, most: int, world: World, failures: set[str]
) -> int:
    """Send a few requests to an operation; how many there were."""
    random = Random(number)
    sent = 0
    mode = GenerationMode.NEGATIVE if number % 2 else GenerationMode.POSITIVE

    @seed(number)
    @settings(
        max_examples=most,
        database=None,
        deadline=None,
        phases=(Phase.explicit, Phase.generate),
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def send(case: Case) -> None:
        nonlocal sent
        sent += 1
        response = sensible(case, random, world).call(headers=dict(world.headers))
        if response.status_code >= 500:
            failures.add(f"{response.status_code} {operation.label}: {case.as_curl_command()}")

    # The document excludes nothing of an operation without parameters and body.
    with suppress(Unsatisfiable):
        send()
    return sent


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("caller", CALLERS)
def test_no_documented_operation_answers_with_a_server_error(caller: str, part: int) -> None:
    chosen: list[Any] = list(operations())[part::PARTS]
    least = -(-CASES // (len(CALLERS) * PARTS))
    most = min(max(least // len(chosen), 1), _MOST)
    failures: set[str] = set()
    sent = 0
    turns = ((number, operation) for number in range(_ROUNDS) for operation in chosen)
    for turn, (number, operation) in enumerate(turns):
        if turn % _FRESH == 0:
            world = World(caller)
        sent += run_round(operation, number, most, world, failures)
        if sent >= least:
            break
    assert not failures, "\n".join(sorted(failures))
    assert sent >= least
