"""Which log records a filter selects, and the texts by which Redis may leave others out."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.logs import records
from backend.logs.filters import LogFilter, is_status

REFUSED: dict[str, Any] = {
    "logger": "request",
    "method": "PUT",
    "path": "/api/classes/Note/aB3dE5fG7h",
    "route": "/classes/{class_name}/{object_id}",
    "class_name": "Note",
    "object_id": "aB3dE5fG7h",
    "status": 403,
    "ms": 0.0609479540004,
    "bytes": 400,
    "key": "rest key",
    "user": "bYdr2LokBV",
    "address": "203.0.113.7",
    "code": 119,
    "error": "Permission denied for action update on class Note.",
    "ran": "trigger before_save of Note",
    "level": "info",
    "process": "web",
    "request_id": "5f" * 16,
    "timestamp": "2026-11-28T04:00:00.400Z",
}
STAFF = {**REFUSED, "user": None, "staff": "ann", "status": 200, "code": None, "error": None}
JOB = {"logger": "jobs", "event": "job ended", "job": "tidy", "status": "4xKq", "level": "info"}
FAILED = {"what": "function pay", "attempt": 3, "reason": "Timeout", "level": "error"}
ALL = {"refused": REFUSED, "staff": STAFF, "job": JOB, "failed": FAILED}


@pytest.mark.parametrize(
    ("criteria", "names"),
    [
        ({}, "refused staff job failed"),
        ({"status": "403"}, "refused"),
        ({"status": "4xx"}, "refused"),
        ({"status": "4XX", "method": "PUT"}, "refused"),
        ({"status": "400"}, ""),
        ({"text": "403"}, "refused"),
        ({"text": "119"}, "refused"),
        ({"text": "400"}, ""),
        ({"text": "permission DENIED"}, "refused"),
        ({"text": "aB3dE5fG7h"}, "refused staff"),
        ({"text": "attempt=3"}, "failed"),
        ({"text": "reason=time attempt=3"}, "failed"),
        ({"text": "attempt=4"}, ""),
        ({"text": "reason=time nothing"}, ""),
        ({"code": "119"}, "refused"),
        ({"route": "/classes/"}, "refused staff"),
        ({"path": "/API/classes/note"}, "refused staff"),
        ({"class_name": "Note", "object_id": "aB3dE5fG7h"}, "refused staff"),
        ({"class_name": "Not"}, ""),
        ({"function": "pay"}, "failed"),
        ({"function": "before_save"}, "refused staff"),
        ({"function": "tidy"}, "job"),
        ({"user": "bYdr2LokBV"}, "refused"),
        ({"user": "ann"}, "staff"),
        ({"key": "rest key", "address": "203.0.113.7"}, "refused staff"),
        ({"level": "warning"}, "failed"),
        ({"process": "web", "request_id": "5f" * 16}, "refused staff"),
    ],
)
def test_a_filter_selects(criteria: dict[str, str], names: str) -> None:
    selected = LogFilter(**criteria)
    assert " ".join(name for name, record in ALL.items() if selected.finds(record)) == names


NAMES = [field.name for field in fields(LogFilter)]
VALUES = st.one_of(
    st.sampled_from(["403", "4xx", "119", "Note", 'a"b', "a\\b", "ä", "info", "error", "a=b"]),
    st.text(max_size=4),
)
FIELDS = st.one_of(VALUES, st.integers(-1, 600), st.none(), st.lists(VALUES, max_size=2))


@given(
    st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=3),
    st.dictionaries(st.sampled_from([*NAMES, "staff", "job", "what", "error"]), FIELDS),
)
def test_no_matching_record_is_left_out_before_it_is_decoded(
    criteria: dict[str, str], record: dict[str, Any]
) -> None:
    selected = LogFilter(**criteria)
    for matching in (record, {**record, **criteria}):
        if selected.finds(matching):
            raw = records.encode(matching)
            assert all(needle in raw for needle in selected.needles)
            assert all(needle in raw.lower() for needle in selected.folded_needles)


@pytest.mark.parametrize(("text", "expected"), [("403", True), ("4xx", True), ("x", False)])
def test_what_can_be_a_status(text: str, expected: bool) -> None:
    assert is_status(text) is expected
