"""Files that a run leaves are counted, and the next run that has their place fetches them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from backend.operations.parse_import.progress import load
from objects.files import records
from tests.backend.operations.parse_import.exported import TIMES, note, problems
from tests.rest import Api


@pytest.fixture
def names(tmp_path: Path) -> list[str]:
    """Three files in a folder, whose names no other test has: the storage outlives them."""
    names = [f"{uuid4().hex}_{letter}.txt" for letter in "abc"]
    (tmp_path / "files").mkdir()
    for name in names:
        (tmp_path / "files" / name).write_text("content")
    return names


@pytest.fixture
def with_files(export: Callable[..., Path], names: list[str], master: Api) -> Path:
    """An export whose objects name two of the files, and whose config names the third."""
    logo = {"__type": "File", "name": names[2]}
    return export(
        Note=[note(1, picture=names[0]), note(2, picture=names[1]), note(3, picture=names[0])],
        _GlobalConfig=[{"_id": 1, "params": {"logo": logo}}],
    )


def test_without_their_place_files_are_counted_and_the_options_named(
    with_files: Path, run: Callable[..., str]
) -> None:
    out = run(with_files)
    assert "files: 3 named by objects, none imported. Repeat the command with --files-url" in out


def test_repeating_the_command_with_their_place_fetches_files(
    with_files: Path, names: list[str], run: Callable[..., str], tmp_path: Path
) -> None:
    run(with_files)
    out = run(with_files, "--files-folder", str(tmp_path / "files"))
    assert records.existing(names) == set(names)
    assert "files:" not in out


def test_files_that_were_missing_are_fetched_when_the_command_is_repeated(
    with_files: Path, names: list[str], run: Callable[..., str], tmp_path: Path
) -> None:
    place = tmp_path / "files"
    (place / names[1]).rename(tmp_path / "aside")
    (place / names[2]).rename(tmp_path / "aside2")
    out = run(with_files, "--files-folder", str(place))
    assert "files: 2 not imported. Repeat the command to try again." in out
    assert {each["place"] for each in problems(tmp_path)} == {
        f"file {names[1]}",
        f"file {names[2]}",
    }
    (tmp_path / "aside").rename(place / names[1])
    (tmp_path / "aside2").rename(place / names[2])
    run(with_files, "--files-folder", str(place))
    assert records.existing(names) == set(names)


def test_objects_imported_before_a_stop_get_their_files_in_the_run_that_continues(
    master: Api,
    export: Callable[..., Path],
    names: list[str],
    run: Callable[..., str],
    tmp_path: Path,
) -> None:
    rows = [note(number, picture=names[0]) for number in range(1000)]
    path = export(Note=[*rows, note(1000, picture=names[1])])
    whole = (path / "Note.json").read_text()
    (path / "Note.json").write_text(whole + "\n{")
    with pytest.raises(Exception, match="not JSON"):
        run(path)
    state = load(tmp_path / "state.json", str(path))
    assert state.step("objects of Note").files_left == 1
    (path / "Note.json").write_text(whole)
    run(path, "--files-folder", str(tmp_path / "files"))
    assert records.existing(names) == set(names[:2])


def test_a_refused_extension_names_the_settings_and_is_fetched_once_they_allow_it(
    master: Api,
    export: Callable[..., Path],
    run: Callable[..., str],
    tmp_path: Path,
    settings: Any,
) -> None:
    name = f"{uuid4().hex}_a.html"
    (tmp_path / name).write_text("<html>")
    path = export(Note=[{"_id": "a", **TIMES, "picture": name}])
    run(path, "--files-folder", str(tmp_path))
    (problem,) = problems(tmp_path)
    assert problem["place"] == f"file {name}"
    assert "extension html is disabled. FILE_EXTENSIONS_ALLOWED" in problem["reason"]
    settings.SERVICE = {**settings.SERVICE, "FILE_EXTENSIONS_ALLOWED": ("*",)}
    run(path, "--files-folder", str(tmp_path))
    assert records.existing([name]) == {name}
