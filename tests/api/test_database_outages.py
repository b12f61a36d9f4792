"""A PostgreSQL that can't work: 503, and never a fault of the request."""

from __future__ import annotations

from time import monotonic

import django.db.utils
import psycopg
import pytest
from django.db import connection
from psycopg import errors as pg

from backend.http.exceptions import as_service_error, error_response
from backend.kernel.connections.outages import is_outage
from backend.kernel.errors import InternalError, ServiceUnavailable
from objects.database.statements import fetch
from tests.rest import MASTER, Api

pytestmark = pytest.mark.django_db

_RAISE = """
CREATE FUNCTION pg_temp.fail() RETURNS integer LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'no room on /secret/disk' USING ERRCODE = '{state}'; END $$
"""


@pytest.mark.parametrize("state", ["53100", "53200", "53300", "58030", "57P02", "25006"])
def test_what_its_operator_has_to_mend_is_503_without_the_reason(state: str, capfd) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_RAISE.format(state=state))
    with pytest.raises(ServiceUnavailable) as refused:
        fetch("SELECT pg_temp.fail()", (), prepare=False)
    assert "secret" not in str(refused.value)
    assert "no room on /secret/disk" in capfd.readouterr().err


@pytest.mark.parametrize("state", ["53100", "25006"])
def test_the_same_holds_for_what_the_orm_asks(state: str, rf) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_RAISE.format(state=state))
        with pytest.raises(django.db.utils.Error) as failed:
            cursor.execute("SELECT pg_temp.fail()")
    response = error_response(failed.value, rf.get("/"))
    assert response.status_code == 503
    assert response["Retry-After"] == "1"
    assert b"secret" not in response.content


def test_a_lost_connection_is_an_outage() -> None:
    assert is_outage(psycopg.OperationalError("the connection is lost"))
    assert is_outage(psycopg.InterfaceError("the connection is closed"))
    assert is_outage(pg.IdleSessionTimeout("x"))


@pytest.mark.parametrize(
    "error",
    [
        pg.UniqueViolation("x"),
        pg.SyntaxError("x"),
        pg.UndefinedTable("x"),
        pg.ConfigurationLimitExceeded("x"),
        psycopg.InterfaceError("the cursor is closed"),
        ValueError("x"),
    ],
)
def test_a_fault_of_ours_is_none(error: Exception) -> None:
    assert not is_outage(error)
    assert isinstance(as_service_error(error, "1"), InternalError)


@pytest.mark.django_db(transaction=True)
def test_a_full_disk_is_503_for_the_first_object_of_a_new_class() -> None:
    """PostgreSQL refuses the files of the table that the class needs."""
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION disk_is_full() RETURNS event_trigger LANGUAGE plpgsql AS $$"
            " BEGIN RAISE EXCEPTION 'no space left' USING ERRCODE = '53100'; END $$;"
            "CREATE EVENT TRIGGER disk_is_full ON ddl_command_start WHEN TAG IN ('CREATE TABLE')"
            " EXECUTE FUNCTION disk_is_full()"
        )
    try:
        before = monotonic()
        reply = Api(MASTER).post("/classes/Fresh", {"a": 1})
        assert (reply.error, reply.headers["Retry-After"]) == ((503, 1), "1")
        # It isn't taken for a class that another request makes, and tried again for 10 s.
        assert monotonic() - before < 8
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP EVENT TRIGGER disk_is_full; DROP FUNCTION disk_is_full")
    assert Api(MASTER).post("/classes/Fresh", {"a": 1}).status == 201
