"""While PostgreSQL or Redis is away, Celery's lines in the log have the reason and no traceback."""

from __future__ import annotations

import json
import logging
import traceback
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import django.db
import kombu
import psycopg
import pytest
import redis
from celery.exceptions import CPendingDeprecationWarning

from backend.logs import lines as log_lines
from backend.logs import setup
from tests.ports import free_port

Lines = Callable[[], list[dict[str, Any]]]


@pytest.fixture
def lines(capfd: pytest.CaptureFixture[str]) -> Iterator[Lines]:
    """Read the lines that were written since the last call."""
    setup.configure("INFO", "json", "beat")
    log_lines.write(b"lines of earlier tests end here")
    capfd.readouterr()
    yield lambda: [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    setup.configure("WARNING", "json", "test")


def lost_postgres() -> None:
    try:
        psycopg.connect(f"postgresql://127.0.0.1:{free_port()}/none")
    except psycopg.Error as error:
        raise django.db.OperationalError(*error.args) from error


def lost_redis() -> None:
    redis.Redis(port=free_port()).ping()


def lost_broker() -> None:
    """As Celery sends a task."""
    with kombu.Connection(f"redis://127.0.0.1:{free_port()}/0") as connection:
        connection.Producer().publish({}, retry=False)


@pytest.mark.slow
@pytest.mark.parametrize("lose", [lost_postgres, lost_redis, lost_broker])
def test_an_outage_is_one_line_with_the_reason(lines: Lines, lose: Callable[[], None]) -> None:
    try:
        lose()
    except Exception as error:
        log = logging.getLogger("celery.beat")
        # celery.beat.Scheduler.apply_entry
        log.error("Message Error: %s\n%s", error, traceback.format_stack(), exc_info=True)
        reason = str(error).partition("\n")[0]
    [line] = lines()
    assert line["event"] == f"Message Error: {reason}"
    assert "refused" in line["event"]
    assert "exception" not in line


def test_other_errors_keep_their_traceback(lines: Lines) -> None:
    for name, error in (
        ("celery.beat", ValueError("a defect")),
        ("celery.app.trace", psycopg.errors.UniqueViolation("a defect")),
        ("functions", redis.ConnectionError("refused")),
    ):
        try:
            raise error
        except Exception:
            logging.getLogger(name).exception("failed\nbadly")
        [line] = lines()
        assert line["event"] == "failed\nbadly"
        assert "Traceback" in line["exception"]


def test_the_warning_about_plans_of_celery_is_dropped(lines: Lines) -> None:
    logging.captureWarnings(False)  # as a worker of an earlier test may have left it
    logging.captureWarnings(True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.warn("In Celery 5.1 we introduced", CPendingDeprecationWarning, stacklevel=1)
            warnings.warn("another", UserWarning, stacklevel=1)
    finally:
        logging.captureWarnings(False)
    [line] = lines()
    assert "another" in line["event"]
