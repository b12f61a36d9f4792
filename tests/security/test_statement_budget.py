"""The statements of clients take a limited time: each, together, and for each address."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from random import Random
from threading import Event
from time import monotonic
from typing import Any

import pytest
from django.db import transaction

from backend.kernel.errors import RateLimited, Timeout
from backend.kernel.limits import statements
from backend.kernel.principal import CLIENT, MASTER, Principal
from backend.kernel.request_context import Budget, Current, as_current
from functions import FindRequest, Request, before_find, function
from functions.runtime.registry import registry as functions
from objects import service
from objects.core.query.parser import parse_where
from objects.core.query.tree import Everything, FindOptions
from objects.database.statements import fetch
from tests.rest import Api
from tests.threads import at_once

pytestmark = [
    pytest.mark.usefixtures("emptied"),
    pytest.mark.django_db(transaction=True),
]

TEXT = "".join(Random(1).choices("ab", k=300_000))
# Each pattern takes PostgreSQL about 0.3 seconds for this text.
SLOW = {
    "$or": [
        {"text": {"$regex": f"([ab]*a[ab]{{20}}){{{copies}}}[^ab]{copies}"}}
        for copies in range(10, 20)
    ]
}


@pytest.fixture
def text(master: Api) -> str:
    return master.make("Slow", text=TEXT, n=1)


@pytest.fixture
def short(settings: Any) -> None:
    settings.SERVICE = {**settings.SERVICE, "CLIENT_STATEMENT_TIMEOUT": 100}


@pytest.fixture
def own_registrations() -> Iterator[None]:
    with functions.temporarily():
        yield


class Session:
    """A connection on which nothing runs."""

    raw: Any = None
    limited: statements.Limited | None = None


def find(principal: Principal, where: object) -> list[Any]:
    keys = frozenset({("n",)})
    options = FindOptions(where=parse_where(where), limit=10, keys=keys)
    return service.find(principal, "Slow", options).objects()


# -- The time of a statement ----------------------------------------------------------------------


def test_a_clients_search_is_stopped(client, text, short, send):
    for params in ({"where": SLOW}, {"where": SLOW, "count": 1, "limit": 0}):
        reply = send(client, "GET", "/classes/Slow", params)
        assert reply.status == 400
        assert reply.json == {
            "code": 124,
            "error": "The request took too long and was stopped.",
        }
    assert client.get(f"/classes/Slow/{text}").status == 200


def test_the_master_key_has_the_longer_time(text, settings):
    settings.SERVICE = {**settings.SERVICE, "CLIENT_STATEMENT_TIMEOUT": 1}
    one_pattern = {"text": {"$regex": "([ab]*a[ab]{20}){10}[^ab]"}}
    with pytest.raises(Timeout):
        find(CLIENT, one_pattern)
    assert find(MASTER, one_pattern) == []


def test_sub_queries_and_included_objects_count_as_the_clients(client, master, text, short):
    pointer = {"__type": "Pointer", "className": "Slow", "objectId": text}
    master.make("Other", to=pointer)
    where = {"to": {"$inQuery": {"className": "Slow", "where": SLOW}}}
    assert client.get("/classes/Other", where=where).error == (400, 124)
    assert client.get("/classes/Other", include="to").status == 200


def test_a_stopped_search_in_a_transaction_ends_the_transaction_only(client, text, short):
    requests = [
        {"method": "POST", "path": "/api/classes/Slow", "body": {"n": 2}},
        {"method": "GET", "path": "/api/classes/Slow", "body": {"where": SLOW}},
    ]
    refused = client.post("/batch", {"requests": requests, "transaction": True})
    assert refused.error == (400, 124)
    assert len(client.results("Slow", keys="n")) == 1
    first, second = client.post("/batch", {"requests": requests}).json
    assert "success" in first
    assert second["error"]["code"] == 124
    assert len(client.results("Slow", keys="n")) == 2


def test_the_connection_is_usable_after_a_stopped_statement(text, short, db):
    for _ in range(3):
        with pytest.raises(Timeout), transaction.atomic():
            find(CLIENT, SLOW)
        assert fetch("SELECT 1", (), prepare=True) == [("1",)]
        assert len(find(CLIENT, {"n": 1})) == 1


def test_a_function_has_the_time_of_the_rights_it_uses(client, text, short, own_registrations):
    patterns = {"text": {"$regex": "([ab]*a[ab]{20}){10}[^ab]"}}

    @function("asMaster")
    def as_master(request: Request) -> int:
        return len(find(MASTER, patterns))

    @function("asCaller")
    def as_caller(request: Request) -> int:
        return len(find(CLIENT, patterns))

    assert client.post("/functions/asMaster").json == {"result": 0}
    assert client.post("/functions/asCaller").error == (400, 124)


def test_a_trigger_that_searches_more_stays_in_the_callers_time(
    client, text, short, own_registrations
):
    @before_find("Slow")
    def widen(request: FindRequest) -> None:
        request.query.where(**{"text__regex": "([ab]*a[ab]{20}){19}[^ab]"})

    assert client.get("/classes/Slow").error == (400, 124)


def test_statements_without_a_request_are_stopped_too(text, short):
    with as_current(Current()), pytest.raises(Timeout):
        find(CLIENT, SLOW)


def test_no_limit_is_zero(text, settings):
    settings.SERVICE = {**settings.SERVICE, "CLIENT_STATEMENT_TIMEOUT": 0}
    assert find(CLIENT, {"text": {"$regex": "([ab]*a[ab]{20}){10}[^ab]"}}) == []


# -- The time of a request ------------------------------------------------------------------------


def test_the_statements_of_a_request_share_a_time(text, settings):
    settings.SERVICE = {**settings.SERVICE, "CLIENT_STATEMENT_TIMEOUT": 1000}
    with as_current(Current(budget=Budget("192.0.2.1", spent=2.9))), transaction.atomic():
        with pytest.raises(Timeout), transaction.atomic():
            find(CLIENT, SLOW)
        with pytest.raises(Timeout):
            find(CLIENT, {"n": 1})
        assert len(find(MASTER, {"n": 1})) == 1
    with as_current(Current(budget=Budget("192.0.2.1"))):
        assert len(find(CLIENT, {"n": 1})) == 1


def test_a_request_of_the_master_key_has_no_budget(client, master, text, own_registrations):
    budgets: list[Budget | None] = []

    @function("look")
    def look(request: Request) -> None:
        from backend.kernel.request_context import current

        budgets.append(current().budget)

    client.post("/functions/look")
    master.post("/functions/look")
    assert budgets[0] is not None
    assert budgets[0].address == "127.0.0.1"
    assert budgets[1] is None


# -- Many slow requests of one address ------------------------------------------------------------


def test_slow_searches_at_once_are_stopped_beyond_the_share(settings):
    settings.SERVICE = {
        **settings.SERVICE,
        "CLIENT_STATEMENT_TIMEOUT": 1_000,
        "CLIENT_SLOW_REQUESTS": 1,
    }
    service.create(MASTER, "Slow", {"text": TEXT})
    stopped = Event()

    def attack() -> str:
        with as_current(Current(budget=Budget("192.0.2.7"))):
            try:
                find(CLIENT, SLOW)
            except RateLimited:
                stopped.set()
                return "refused"
            except Timeout:
                return "timed out"
        return "found"

    def other() -> str:
        deadline = monotonic() + 60
        with as_current(Current(budget=Budget("192.0.2.8"))):
            while not stopped.is_set() and monotonic() < deadline:
                assert service.count(CLIENT, "Slow", Everything()) == 1
        return "found" if stopped.is_set() else ""

    outcomes = at_once([attack, attack, attack, other])
    assert sorted(outcomes) == ["found", "refused", "refused", "timed out"]


def test_a_client_hears_when_to_try_again(client, text, settings):
    settings.SERVICE = {**settings.SERVICE, "CLIENT_SLOW_REQUESTS": 1}
    entry = statements.slow_statements().enter("127.0.0.1", spent=1.0)
    try:
        reply = client.get("/classes/Slow", keys="n")
        assert reply.error == (429, 100)
        assert reply.headers["Retry-After"] == "5"
        elsewhere = client.call("GET", "/classes/Slow?keys=n", REMOTE_ADDR="192.0.2.9")
        assert elsewhere.status == 200
        assert Api(client.headers, mount="").call("GET", "/health").status == 200
    finally:
        statements.slow_statements().leave(entry)


def test_a_statement_that_was_never_ended_is_forgotten(text, settings):
    """``TimeIsUp`` may be raised at any instruction, also where a statement is accounted for."""
    settings.SERVICE = {**settings.SERVICE, "CLIENT_SLOW_REQUESTS": 1}
    session = Session()
    with as_current(Current(budget=Budget("192.0.2.5", spent=1.0))):
        statements.begin(session, is_read=True)
        with pytest.raises(RateLimited):
            find(CLIENT, {"n": 1})
        session.limited = None
        for _ in range(1_000):
            with suppress(RateLimited):
                assert len(find(CLIENT, {"n": 1})) == 1
                break
            fetch("SELECT pg_sleep(0.01)", (), prepare=False)
        else:
            raise AssertionError("The statement still counts.")
