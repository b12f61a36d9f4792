"""What a run has done and reported is on the disk, private, whenever it is stopped."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from django.core.management import CommandError

from backend.operations.parse_import.problems import ImportFailed, problems_file
from tests.backend.operations.parse_import.exported import note, problems
from tests.rest import Api

ROOT = Path(__file__).parents[4]


def test_problems_are_in_a_private_file_as_soon_as_they_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "state.problems.jsonl"
    path.write_text('{"place": "a", "reason": "b"}\n')
    path.chmod(0o644)
    with problems_file(path, empty=False) as report:
        report("Note/x", "not a Date")
        assert [each["place"] for each in problems(tmp_path)] == ["a", "Note/x"]
        assert path.stat().st_mode & 0o777 == 0o600


def test_a_place_that_cant_hold_problems_ends_the_import_with_what_to_do(tmp_path: Path) -> None:
    message = r"state.problems.jsonl can't be written: .* --state FILE\.$"
    with (
        pytest.raises(ImportFailed, match=message),
        problems_file(tmp_path / "missing" / "state.problems.jsonl", empty=False),
    ):
        pass


def test_an_import_that_starts_again_forgets_the_problems_of_the_last_one(
    master: Api, export: Callable[..., Path], run: Callable[..., str], tmp_path: Path
) -> None:
    with pytest.raises(CommandError):
        run(export(Note=[note(1, text=7)]))
    assert [each["place"] for each in problems(tmp_path)] == ["Note/note0001"]
    run(export(Note=[note(1)]), "--again")
    assert problems(tmp_path) == []


def test_an_import_that_is_stopped_while_it_starts_again_continues_without_the_option(
    master: Api, export: Callable[..., Path], run: Callable[..., str]
) -> None:
    run(export())
    path = export(Note=[note(number) for number in range(5)])
    whole = (path / "Note.json").read_text()
    (path / "Note.json").write_text(whole + "\n{")
    with pytest.raises(CommandError, match="not JSON"):
        run(path, "--again")
    (path / "Note.json").write_text(whole)
    run(path)
    assert len(master.get("/classes/Note").json["results"]) == 5


def test_the_files_of_an_import_are_not_for_the_repository() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("not a repository")
    names = ["parse-import.json", "parse-import.problems.jsonl", "parse-import.json.new"]
    ignored = subprocess.run(
        ["git", "check-ignore", *names], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ignored.stdout.split() == names
