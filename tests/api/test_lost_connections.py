"""The database hangs up on us: the next request takes another connection, and one in the middle of
its work answers 503."""

from __future__ import annotations

from time import monotonic

import psycopg
import pytest
from django.db import connection, transaction

from backend.kernel.errors import ServiceUnavailable
from objects.database.statements import fetch
from tests.other_process import database_url
from tests.rest import CLIENT, Api

pytestmark = pytest.mark.django_db(transaction=True)


def hang_up() -> None:
    """The server ends this thread's connection, as it does with all when it is stopped."""
    [(pid,)] = fetch("SELECT pg_backend_pid()", (), prepare=False)
    with psycopg.connect(database_url(), autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s, 10000)", [int(pid)])


@pytest.mark.parametrize("prepare", [True, False])
def test_between_two_statements_no_one_notices(prepare: bool) -> None:
    hang_up()
    assert fetch("SELECT 1", (), prepare=prepare) == [("1",)]
    hang_up()
    assert Api(CLIENT).get("/classes/Blockchain").json == {"results": []}


def seem_used() -> None:
    """The connection looks as if it had been used just now."""
    connection.connection.service_session.used_at = monotonic()


def test_just_after_a_statement_no_one_notices_either() -> None:
    hang_up()
    seem_used()
    assert fetch("SELECT 1", (), prepare=True, is_read=True) == [("1",)]
    hang_up()
    seem_used()
    assert Api(CLIENT).get("/classes/Blockchain").json == {"results": []}
    hang_up()
    seem_used()
    assert fetch("SELECT 1", (), prepare=True) == [("1",)], "what may write is never repeated"


def test_a_read_is_repeated_once() -> None:
    with pytest.raises(ServiceUnavailable):
        fetch("SELECT pg_terminate_backend(pg_backend_pid())", (), prepare=False, is_read=True)
    assert fetch("SELECT 1", (), prepare=False) == [("1",)]


def asked_in_a_transaction(prepare: bool) -> None:
    with transaction.atomic():
        hang_up()
        fetch("SELECT 1", (), prepare=prepare)


@pytest.mark.parametrize("prepare", [True, False])
def test_in_a_transaction_it_is_503(prepare: bool, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ServiceUnavailable):
        asked_in_a_transaction(prepare)
    logged = capfd.readouterr().err
    assert "the database can't be reached" in logged
    assert "terminating connection due to administrator command" in logged
    assert fetch("SELECT 1", (), prepare=prepare) == [("1",)]
