"""The comparison after an import shows what is here of what the source has."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from tests.backend.operations.parse_import.exported import (
    SCHEMAS,
    TIMES,
    USERS,
    note,
    problems,
)
from tests.rest import Api


def test_the_comparison_shows_both_sides(
    master: Api, export: Callable[..., Path], run: Callable[..., str]
) -> None:
    whole = run(export())
    checksums = re.findall(r"^Note +3 +3  ([0-9a-f]{12}) +([0-9a-f]{12}) +equal$", whole, re.M)
    assert len(checksums) == 1
    assert len(set(checksums[0])) == 1
    assert re.search(r"^Note\.readers +1 +1 +equal$", whole, re.M)
    master.post("/classes/Note", {"text": "only here"})
    out = run(export(), "--verify")
    assert re.search(r"^Note +3 +4 .* equal$", out, re.M)
    assert "Everything at the source is here." in out


def test_what_the_import_refused_is_missing_with_its_reason(
    master: Api, export: Callable[..., Path], tmp_path: Path
) -> None:
    users = [
        {**USERS[0], **TIMES},
        {"_id": "eve", "username": "eve", "email": "not an address", **TIMES},
        {"_id": "tom", **TIMES},
        {"_id": "kim", "username": "kim", "nick": "\ud800", **TIMES},
        {"_id": "a\0b", "username": "zoe", **TIMES},
    ]
    out = io.StringIO()
    with pytest.raises(CommandError, match="2 of the classes and relations differ"):
        call_command(
            "import_parse",
            str(export(_User=users, **{"_Join:users:_Role": [{"_id": "1", "owningId": "a\0b"}]})),
            *("--state", str(tmp_path / "state.json")),
            stdout=out,
        )
    lines = out.getvalue().splitlines()
    assert "    eve: Email address format is invalid." in lines
    assert "    tom: bad or missing username" in lines
    assert "    kim: text with half of a surrogate pair" in lines
    assert "    a\N{REPLACEMENT CHARACTER}b: missing" in lines
    assert any(re.match(r"_User +5 +1 .*4 missing, 0 different", line) for line in lines)
    assert any(re.match(r"_Role.users +1 +0 .*1 missing, 0 different", line) for line in lines)


def test_a_class_that_cant_be_here_is_missing_with_its_objects(
    master: Api, export: Callable[..., Path], tmp_path: Path
) -> None:
    name = "N" * 200
    path = export(_SCHEMA=[*SCHEMAS, {"_id": name}], **{name: [{"_id": "a", **TIMES}]})
    out = io.StringIO()
    options = ("--state", str(tmp_path / "state.json"))
    with pytest.raises(CommandError, match="1 of the classes and relations differ"):
        call_command("import_parse", str(path), *options, stdout=out)
    assert [each["place"] for each in problems(tmp_path)] == [name]
    assert "    a: its class isn't here" in out.getvalue()


@pytest.mark.parametrize(
    ("updated_at", "reason"),
    [
        ("2022-01-01T00:00:00Z", r"updated later there \(2022-.* than here \(2021-"),
        ("2021-01-02T03:04:05.678Z", "different, both updated at 2021-01-02"),
    ],
)
def test_objects_that_arent_as_they_are_there_differ_with_the_side_that_is_newer(
    master: Api,
    export: Callable[..., Path],
    run: Callable[..., str],
    tmp_path: Path,
    updated_at: str,
    reason: str,
) -> None:
    run(export())
    changed = note(1, text="changed", _updated_at={"$date": updated_at})
    path, out = export(Note=[changed]), io.StringIO()
    with pytest.raises(CommandError, match="1 of the classes and relations differ"):
        call_command("import_parse", str(path), "--verify", stdout=out)
    assert re.search("^Note .* 0 missing, 1 different$", out.getvalue(), re.M)
    assert re.search(f"^    note0001: {reason}", out.getvalue(), re.M)
