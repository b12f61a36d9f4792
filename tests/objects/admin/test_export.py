"""Exports of what a table shows."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest
from django.test import Client

from objects.admin.grid.export import csv_cell
from tests.objects.admin.games import GAME, make, make_class
from tests.objects.admin.staff import logged_in
from tests.people import sign_up

pytestmark = pytest.mark.django_db


@pytest.fixture
def staff() -> Client:
    make_class()
    return logged_in()


def read(client: Client, kind: str, **params: str) -> str:
    answer: Any = client.get(f"{GAME}export.{kind}", params)
    assert answer.status_code == 200
    assert answer.headers["Content-Disposition"] == f'attachment; filename="Game.{kind}"'
    return b"".join(answer.streaming_content).decode()


def test_ndjson_holds_the_filtered_objects_in_their_order(staff):
    ids = [make(score=score) for score in (3, 1, 2)]
    make(score=9)
    text = read(staff, "ndjson", where='{"score": {"$lt": 5}}', order="score")
    rows = [json.loads(line) for line in text.splitlines()]
    assert [row["objectId"] for row in rows] == [ids[1], ids[2], ids[0]]
    assert rows[0]["score"] == 1


def test_an_export_has_as_many_pages_as_it_takes(staff):
    for number in range(1203):
        make(score=number % 7)
    rows = read(staff, "ndjson", order="-score").splitlines()
    assert len({json.loads(row)["objectId"] for row in rows}) == 1203


def test_csv_has_a_column_for_each_field_and_text_by_its_type(staff):
    ann = sign_up("ann")
    make(
        title='a "quoted", text\nof two lines',
        score=-5,
        won=True,
        playedAt={"__type": "Date", "iso": "2024-05-04T10:30:00.250Z"},
        player=ann.pointer,
        tags=["a", 1],
        ACL={"*": {"read": True}},
    )
    (row,) = csv.DictReader(io.StringIO(read(staff, "csv"), newline=""))
    assert row["title"] == 'a "quoted", text\nof two lines'
    assert row["score"] == "-5"
    assert row["won"] == "true"
    assert row["playedAt"] == "2024-05-04T10:30:00.250Z"
    assert row["player"] == ann.user_id
    assert row["tags"] == '["a",1]'
    assert row["ACL"] == '{"*":{"read":true}}'
    assert row["details"] == ""
    assert "fans" not in row


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "=cmd|' /C'!A0"])
def test_text_is_no_formula(staff, text):
    make(title=text)
    (row,) = csv.DictReader(io.StringIO(read(staff, "csv"), newline=""))
    assert row["title"] == "'" + text


@pytest.mark.parametrize(
    ("value", "cell"), [(None, ""), (-1.5, "-1.5"), ("a=b", "a=b"), ([], "[]")]
)
def test_other_cells_stay_as_they_are(value, cell):
    assert csv_cell(value) == cell


def test_an_empty_class_is_an_empty_file(staff):
    assert read(staff, "ndjson") == ""
    assert read(staff, "csv").startswith("objectId,")


@pytest.mark.parametrize(
    "params", [{"where": "{"}, {"where": '{"a": {"$b": 1}}'}, {"order": "tags"}]
)
def test_a_question_that_is_none_is_reported_before_anything_is_sent(staff, params):
    answer = staff.get(f"{GAME}export.csv", params)
    assert answer.status_code == 400
    assert not answer.streaming


def test_there_are_two_formats(staff):
    assert staff.get(f"{GAME}export.xml").status_code == 404
