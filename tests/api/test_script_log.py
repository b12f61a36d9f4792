"""``/scriptlog``: log records in Parse's form."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from backend.logs import setup, store
from tests.objects.admin.log_records import *  # noqa: F403
from tests.people import sign_up


@pytest.fixture
def records(log_store_redis):
    """A request, a warning and an error, in this order."""
    log = setup.get_logger("api")
    setup.request_line("1" * 32, "GET", "/api/classes/Room", 200, 1.5)
    log.warning("the disk is full", room="Blue", password="hunter2-and-more")
    try:
        raise RuntimeError("the disk is gone")
    except RuntimeError:
        log.exception("request failed", request_id="2" * 32)
    store.flush()
    setup.configure("WARNING", "json", "test")  # the test's own requests aren't logged


def _messages(reply):
    assert reply.status == 200, reply.json
    return [entry["message"] for entry in reply.json]


def test_records_have_the_form_of_parse(master, records):
    error, warning, request = master.get("/scriptlog").json
    assert request["message"] == "GET /api/classes/Room: 200 in 1.5 ms"
    assert (request["level"], request["method"]) == ("info", "GET")
    assert (request["url"], request["requestId"]) == ("/api/classes/Room", "1" * 32)
    assert warning["level"] == "warn"
    assert warning["message"].startswith("the disk is full room=Blue")
    assert (error["level"], error["message"]) == ("error", "request failed")
    assert "RuntimeError: the disk is gone" in error["stack"]
    for entry in (error, warning, request):
        assert datetime.fromisoformat(entry["timestamp"]).tzinfo is not None
        assert entry["timestamp"].endswith("Z")


def test_secrets_are_masked(master, records):
    reply = master.get("/scriptlog")
    assert "hunter2" not in str(reply.json)


def test_errors_can_be_read_alone(master, records):
    assert _messages(master.get("/scriptlog", level="error")) == ["request failed"]
    assert len(_messages(master.get("/scriptlog", level="info"))) == 3
    assert len(_messages(master.get("/scriptlog", level="verbose"))) == 3


def test_order_and_number_of_records(master, records):
    first = "GET /api/classes/Room: 200 in 1.5 ms"
    assert _messages(master.get("/scriptlog", order="asc"))[0] == first
    assert _messages(master.get("/scriptlog", order="asc", size="1")) == [first]
    assert _messages(master.get("/scriptlog", size="3", n="1")) == ["request failed"]
    for size in ("0", "-3", "many", "1e9", ""):
        assert len(_messages(master.get("/scriptlog", size=size))) == 3


def test_a_period(master, records):
    now = datetime.now(UTC)
    hour = timedelta(hours=1)
    assert len(_messages(master.get("/scriptlog", **{"from": (now - hour).isoformat()}))) == 3
    assert _messages(master.get("/scriptlog", **{"from": (now + hour).isoformat()})) == []
    assert _messages(master.get("/scriptlog", until=(now - hour).isoformat())) == []
    assert _messages(master.get("/scriptlog", until="Thu, 01 Jan 1970 00:00:00 GMT")) == []
    # As in Parse, a time that can't be read stands for the default.
    for wrong in ("yesterday", "2026-99-99", "0001-01-01T00:00:00+23:59", "\u0000"):
        assert len(_messages(master.get("/scriptlog", **{"from": wrong}))) in (0, 3)


def test_a_log_that_is_not_kept(master):
    assert master.get("/scriptlog").error == (400, 115)
    assert not any(master.get("/serverInfo").json["features"]["logs"].values())


def test_only_master_keys_read_it(client, application, reader, records):
    for api in (client, application, sign_up("ann")):
        assert api.get("/scriptlog").error == (403, 119)
    assert len(_messages(reader.get("/scriptlog"))) == 3
