"""No key, token or password reaches the log, wherever in an event it stands."""

from __future__ import annotations

import json
import logging

import pytest
import structlog

from backend.kernel.texts.redaction import MASK
from backend.logs import lines, setup
from backend.logs.masking import LONGEST_TEXT

TOKEN = "r:0123456789abcdef0123456789abcdef"


def written(capfd: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    return [json.loads(line) for line in capfd.readouterr().err.splitlines()]


@pytest.fixture(autouse=True)
def _json_lines(capfd):
    """Lines as JSON for the test; the run's own configuration afterwards."""
    setup.configure("DEBUG", "json", "test")
    lines.write(b"what waits from an earlier test comes before this")
    capfd.readouterr()
    yield
    setup.configure("WARNING", "json", "test")


@pytest.mark.parametrize(
    "name",
    [
        "X-Svc-Master-Key",
        "X-Parse-REST-API-Key",
        "HTTP_X_PARSE_SESSION_TOKEN",
        "_MasterKey",
        "_MaintenanceKey",
        "MAINTENANCE_KEY",
        "_SessionToken",
        "_JavaScriptKey",
        "sessionToken",
        "authToken",
        "temporaryAuthenticationToken",
        "password",
        "_hashed_password",
        "Authorization",
        "cookie",
        "MASTER_KEY",
        "SIGNER_PRIVATE_KEY_137",
        "SECRET_KEY",
        "webhook_key",
    ],
)
def test_a_field_with_a_secret_s_name_is_hidden(name: str, capfd):
    setup.get_logger("test").info("event", **{name: "hunter2"}, headers={name: "hunter2"})
    line = written(capfd)[0]
    assert line[name] == MASK
    assert line["headers"] == {name: MASK}


@pytest.mark.parametrize("name", ["objectId", "keys", "keyword", "application_id", "monkey"])
def test_a_field_with_another_name_is_shown(name: str, capfd):
    setup.get_logger("test").info("event", **{name: "plain"})
    assert written(capfd)[0][name] == "plain"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"session {TOKEN} has expired", "session *** has expired"),
        ("postgresql://me:hunter2@db:5432/x", "postgresql://***@db:5432/x"),
        ("Authorization: Basic YXBwOmh1bnRlcjI=", "Authorization: ***"),
        ('{"_MasterKey": "hunter2", "a": 1}', '{"_MasterKey": "***", "a": 1}'),
        ("X-Svc-Master-Key: hunter2", "X-Svc-Master-Key: ***"),
        ("{'password': 'hunter2'}", "{'password': '***'}"),
        ('password="two words" next', 'password="***" next'),
        ("{'password': 'it\\'s two words', 'a': 1}", "{'password': '***', 'a': 1}"),
        (r"{\"password\": \"two words\", \"b\": 2}", r"{\"password\": \"***\", \"b\": 2}"),
        ("where keys=name,city", "where keys=name,city"),
        ("monkey: banana", "monkey: banana"),
    ],
)
def test_a_secret_inside_a_text_is_hidden(text: str, shown: str, capfd):
    setup.get_logger("test").info("event", text=text, nested=[{"deep": text}])
    line = written(capfd)[0]
    assert line["text"] == shown
    assert line["nested"] == [{"deep": shown}]


def test_a_secret_in_an_exception_is_hidden(capfd):
    try:
        raise RuntimeError(f"no session {TOKEN}")
    except RuntimeError:
        setup.get_logger("test").exception("failed")
    line = written(capfd)[0]
    assert "RuntimeError: no session ***" in str(line["exception"])
    assert TOKEN not in str(line)


def test_the_standard_library_s_records_are_masked_and_carry_the_request_id(capfd):
    with structlog.contextvars.bound_contextvars(request_id="abc"):
        logging.getLogger("somebody.else").warning("password=%s", "hunter2")
    line = written(capfd)[0]
    assert line["event"] == "password=***"
    assert line["request_id"] == "abc"
    assert line["logger"] == "somebody.else"
    assert line["level"] == "warning"


def test_an_object_is_shown_by_its_masked_text(capfd):
    class Odd:
        def __str__(self) -> str:
            return f"Odd {TOKEN}"

    setup.get_logger("test").info("event", thing=Odd())
    assert written(capfd)[0]["thing"] == "Odd ***"


def test_lines_below_the_level_are_not_written(capfd):
    setup.configure("WARNING", "json", "test")
    setup.get_logger("test").info("quiet")
    logging.getLogger("somebody.else").info("quiet")
    assert written(capfd) == []


def test_readable_lines_are_masked_too(capfd):
    setup.configure("INFO", "console", "test")
    setup.get_logger("test").info("event", password="hunter2")
    output = capfd.readouterr().err
    assert "password" in output
    assert "hunter2" not in output


def test_a_secret_that_is_the_name_of_a_value_is_hidden(capfd):
    setup.get_logger("test").info("event", users={TOKEN: 1})
    assert TOKEN not in capfd.readouterr().err


def test_the_texts_of_a_field_have_a_limit_together(capfd):
    texts = ["x" * 100_000] * 50
    setup.get_logger("test").info("event", texts=texts, other="whole")
    (line,) = written(capfd)
    assert len(json.dumps(line["texts"])) < 3 * LONGEST_TEXT
    assert line["other"] == "whole"
