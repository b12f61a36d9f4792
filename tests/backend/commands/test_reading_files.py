"""Rows of files: NDJSON, JSON arrays and CSV, with the lines they begin on."""

from __future__ import annotations

import io
import json

import pytest

from objects.exchange.problems import UnusableFile
from objects.exchange.row_files import Format, Row, format_of, read_rows


def rows(text: str, file_format: Format) -> list[Row]:
    return list(read_rows(io.StringIO(text, newline=""), file_format))


def test_ndjson_is_one_object_a_line_and_blank_lines_dont_count():
    assert rows('{"a":1}\n\n{"a":2}\r\n', "ndjson") == [Row(1, {"a": 1}), Row(3, {"a": 2})]


def test_a_malformed_line_of_ndjson_doesnt_end_the_file():
    first, second, third = rows('{"a":1}\n{"a":\n{"a":3}', "ndjson")
    assert (first.line, second.line, third.line) == (1, 2, 3)
    assert second.problem is not None
    assert "malformed JSON" in second.problem
    assert third == Row(3, {"a": 3})


def test_a_line_that_is_no_object_is_a_problem_of_its_own():
    assert rows("[1]\n", "ndjson") == [Row(1, {}, "an object is expected")]


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_what_is_no_json_is_refused(constant):
    (row,) = rows(f'{{"a":{constant}}}', "ndjson")
    assert row.problem is not None
    assert constant in row.problem


def test_large_whole_numbers_are_kept():
    assert rows(f'{{"a":{2**200}}}', "ndjson")[0].values == {"a": 2**200}


def test_a_json_array_gives_its_elements_with_their_lines():
    text = '[\n {"a": 1},\n {"a": "x\\ny",\n  "b": []},\n {"a": 3}\n]\n'
    assert [(row.line, row.values["a"]) for row in rows(text, "json")] == [
        (2, 1),
        (3, "x\ny"),
        (5, 3),
    ]


def test_an_empty_array_has_no_rows():
    assert rows(" [ ] ", "json") == []


def test_one_object_is_one_row():
    assert rows('{"a": [1, 2]}', "json") == [Row(1, {"a": [1, 2]})]


def test_elements_longer_than_what_is_read_at_once_are_whole():
    objects = [{"number": number, "text": "é" * 200_000} for number in range(5)]
    assert [row.values for row in rows(json.dumps(objects), "json")] == objects


def test_numbers_aren_t_cut_where_reading_pauses():
    # 65,536 characters are read at once: the number straddles that.
    text = "[" + " " * 65_530 + '{"a":1}, {"a": 1234567890123456789012345}]'
    assert [row.values["a"] for row in rows(text, "json")] == [1, 1234567890123456789012345]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('[{"a":1},\n{"a":', 2),
        ('[{"a":1}\n{"a":2}]', 2),
        ('[{"a":1},\n\n]', 3),
        ("", 1),
        ("7", 1),
        ('{"a":1}\n{"a":2}', 2),
    ],
)
def test_a_broken_array_names_the_line(text, line):
    with pytest.raises(UnusableFile, match=f"line {line}: "):
        rows(text, "json")


def test_elements_before_the_break_are_read():
    reading = read_rows(io.StringIO('[{"a":1},{"a":2},{"a"'), "json")
    assert [next(reading).values, next(reading).values] == [{"a": 1}, {"a": 2}]
    with pytest.raises(UnusableFile):
        next(reading)


def test_csv_rows_have_the_names_of_the_columns_and_empty_cells_are_no_values():
    text = 'code, name\r\n1,"Smith, ""Jo"""\r\n2,\r\n'
    assert rows(text, "csv") == [
        Row(2, {"code": "1", "name": 'Smith, "Jo"'}),
        Row(3, {"code": "2"}),
    ]


def test_a_csv_row_is_reported_by_the_line_it_begins_on():
    text = 'a,b\n1,"two\nlines"\n3\n4,5\n'
    assert [(row.line, row.problem) for row in rows(text, "csv")] == [
        (2, None),
        (4, "1 cells, but 2 columns have names"),
        (5, None),
    ]


def test_two_columns_of_one_name_are_refused():
    with pytest.raises(UnusableFile, match="two columns have the name 'a'"):
        rows("a,b,a\n", "csv")


def test_an_empty_csv_file_is_refused():
    with pytest.raises(UnusableFile, match="names of the columns"):
        rows("", "csv")


def test_bytes_that_aren_t_utf_8_are_reported():
    file = io.TextIOWrapper(io.BytesIO(b'{"a":"\xff"}\n'), encoding="utf-8")
    with pytest.raises(UnusableFile, match="UTF-8"):
        list(read_rows(file, "ndjson"))


class Endless(io.RawIOBase):
    """A file that begins, and then has the same character again and again."""

    def __init__(self, beginning: bytes) -> None:
        self._beginning = beginning

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:
        size = min(len(self._beginning), len(buffer)) or len(buffer)
        buffer[:size] = self._beginning[:size] or b"x" * size
        self._beginning = self._beginning[size:]
        return size


@pytest.mark.parametrize(
    ("beginning", "file_format"), [(b'{"a":1}\n"', "ndjson"), (b"a,b\n", "csv")]
)
def test_a_line_without_an_end_is_not_read_into_memory(beginning: bytes, file_format: Format):
    file = io.TextIOWrapper(io.BufferedReader(Endless(beginning)), encoding="utf-8", newline="")
    with pytest.raises(UnusableFile, match="line 2 is longer than any object may be"):
        list(read_rows(file, file_format))


def test_the_name_of_a_file_tells_its_format(tmp_path):
    names = ("a.ndjson", "a.jsonl", "a.JSON", "a.csv", "a.txt")
    formats = [format_of(tmp_path / name) for name in names]
    assert formats == ["ndjson", "ndjson", "json", "csv", None]
