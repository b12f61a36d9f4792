"""``manage.py logs``: the stored records that match, and new ones as they come."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Callable
from typing import Any

import pytest
import redis
from django.core.management import CommandError, call_command

from backend.logs import store
from backend.logs.setup import get_logger, request_line
from tests.objects.admin.log_records import log_store_redis as log_store_redis

pytestmark = pytest.mark.usefixtures("log_store_redis")


def refuse(request_id: str, status: int, code: int) -> None:
    about = {"code": code, "error": f"refused with {code}"}
    request_line(request_id, "GET", "/api/classes/Thing", status, 1.5, about=about)
    store.flush()


@pytest.fixture
def stored(log_store_redis: redis.Redis) -> None:
    request_line("fine", "GET", "/api/classes/Thing", 200, 1.5)
    refuse("missing", 404, 101)
    refuse("forbidden", 400, 119)
    refuse("broken", 500, 1)
    refuse("away", 503, 1)
    get_logger("test").warning("another line", code=119, request_id="other")
    store.flush()


def printed(*arguments: str) -> list[str]:
    output = io.StringIO()
    call_command("logs", *arguments, stdout=output)
    return output.getvalue().splitlines()


def ids(*arguments: str) -> list[str]:
    return [json.loads(line).get("request_id", "") for line in printed("--json", *arguments)]


@pytest.mark.usefixtures("stored")
@pytest.mark.parametrize(
    ("arguments", "request_ids"),
    [
        (["--status", "4xx"], ["missing", "forbidden"]),
        (["--status", "404"], ["missing"]),
        (["--status", "4XX", "--code", "119"], ["forbidden"]),
        (["--code", "119"], ["forbidden", "other"]),
        (["--level", "error"], ["broken"]),
        (["--level", "warning", "--status", "5xx"], ["broken", "away"]),
        (["--request-id", "fine"], ["fine"]),
        (["--path", "THING", "--limit", "2"], ["broken", "away"]),
        (["--text", "refused with 101"], ["missing"]),
        (["--process", "nothing"], []),
        (["--since", "7d", "--status", "2xx"], ["fine"]),
    ],
)
def test_matching_records_are_printed_the_oldest_first(
    arguments: list[str], request_ids: list[str]
) -> None:
    assert ids(*arguments) == request_ids


@pytest.mark.usefixtures("stored")
def test_lines_are_readable() -> None:
    (line,) = printed("--status", "4xx", "--code", "119")
    assert " info     test      request " in line
    assert "code=119 error='refused with 119'" in line


class Stopping(io.StringIO):
    """Ends the command as Ctrl-C does after so many lines, and calls something at each before."""

    def __init__(self, most: int, action: Callable[[], object]) -> None:
        super().__init__()
        self.most = most
        self.action = action

    def write(self, text: str) -> int:
        size = super().write(text)
        if self.getvalue().count("\n") >= self.most:
            raise KeyboardInterrupt
        threading.Thread(target=self.action).start()
        return size


@pytest.mark.usefixtures("stored")
def test_new_records_follow() -> None:
    output = Stopping(4, lambda: refuse("new", 403, 119))
    call_command("logs", "--status", "4xx", "--follow", "--json", stdout=output)
    request_ids = [json.loads(line)["request_id"] for line in output.getvalue().splitlines()]
    assert request_ids == ["missing", "forbidden", "new", "new"]


@pytest.mark.parametrize(
    ("name", "value"),
    [("status", "600"), ("status", "x"), ("code", "x"), ("since", "soon"), ("level", "x")],
)
def test_arguments_that_mean_nothing_are_refused(name: str, value: str) -> None:
    with pytest.raises(CommandError):
        printed(f"--{name}", value)


def test_without_stored_records_the_setting_is_named(settings: Any) -> None:
    store.configure(settings.REDIS_URL, 0)
    with pytest.raises(CommandError, match="LOG_KEEP"):
        printed()


def test_redis_that_does_not_answer_is_named(settings: Any) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    with pytest.raises(CommandError, match="Redis"):
        printed()
