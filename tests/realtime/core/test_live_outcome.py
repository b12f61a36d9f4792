"""What a change of an object is to a subscription."""

from __future__ import annotations

import pytest

from realtime.core.outcome import fields_sent, outcome, touches


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (True, True, "update"),
        (True, False, "leave"),
        (False, True, "enter"),
        (None, True, "create"),
        (True, None, "delete"),
        (False, False, None),
        (None, False, None),
        (False, None, None),
    ],
)
def test_the_event_depends_on_the_match_before_and_after(before, after, expected):
    assert outcome(before, after) == expected


@pytest.mark.parametrize(
    ("path", "before", "after", "expected"),
    [
        ("score", {"score": 1}, {"score": 2}, True),
        ("score", {"score": 1}, {"score": 1.0}, False),
        ("score", {"score": 1}, {"score": True}, True),
        ("score", {}, {"score": 1}, True),
        ("score", {"name": "a"}, {"name": "b"}, False),
        ("tags", {"tags": [1, 2]}, {"tags": [2, 1]}, True),
        ("info", {"info": {"a": 1, "b": 2}}, {"info": {"b": 2, "a": 1}}, False),
        ("info.a", {"info": {"a": 1, "b": 1}}, {"info": {"a": 1, "b": 2}}, False),
        ("info.a", {"info": {"a": 1}}, {"info": {"a": 2}}, True),
        ("info.a", {"info": {"a": 1}}, {}, True),
    ],
)
def test_a_watched_field_is_touched_when_its_value_changes(path, before, after, expected):
    images = [{"objectId": "o", **image} for image in (before, after)]
    assert touches([tuple(path.split("."))], *images) is expected


def test_some_fields_are_always_sent():
    assert fields_sent(["a"]) == {"a", "className", "objectId", "createdAt", "updatedAt", "ACL"}
