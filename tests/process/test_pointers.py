"""``manage.py`` finds the instance that runs, wherever its data folder is."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from backend.embedded import pointers
from backend.embedded.folder import DataFolder
from tests.process.service import Service

NONE = {"ENV_FILE": os.devnull}


def instance(folder: Path, pid: int | None = None) -> DataFolder:
    """A data folder, as an instance that runs leaves it."""
    folder.mkdir(parents=True)
    data = DataFolder(folder)
    data.record(pid=pid or os.getpid(), address=f"http://{folder.name}")
    return data


def chosen(command: str, place: Path, **variables: str) -> str | None:
    given = NONE | variables
    usual = place.with_name("usual")
    pointers.choose(["manage.py", command], given, folder=place, usual=usual)
    return given.get("DATA_DIR")


def test_the_only_instance_that_runs_is_chosen_and_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    place, data = tmp_path / "pointers", instance(tmp_path / "one")
    pointers.point_to(data, place)
    assert chosen("doctor", place) == str(data.path)
    assert capsys.readouterr().err == f"Instance: http://one (DATA_DIR={data.path})\n"
    pointers.forget(data, place)
    assert chosen("doctor", place) is None


def test_of_several_none_is_chosen(tmp_path: Path):
    place = tmp_path / "pointers"
    for name in ("one", "two"):
        pointers.point_to(instance(tmp_path / name), place)
    with pytest.raises(SystemExit, match="Several instances run: set DATA_DIR to one of") as ended:
        chosen("doctor", place)
    assert str(tmp_path / "one") in str(ended.value)
    assert chosen("upgrade_postgres", place) is None


def test_what_is_named_or_usual_goes_first(tmp_path: Path):
    place, other = tmp_path / "pointers", "elsewhere"
    pointers.point_to(instance(tmp_path / "one"), place)
    assert chosen("doctor", place, DATA_DIR=other) == other
    assert chosen("doctor", place, DATABASE_URL="postgresql://db/shop") is None
    instance(tmp_path / "usual")
    assert chosen("doctor", place) is None


def test_instances_that_have_ended_do_not_count(tmp_path: Path):
    place = tmp_path / "pointers"
    pointers.point_to(instance(tmp_path / "one", pid=2**22 + 1), place)
    assert chosen("doctor", place) is None
    assert chosen("doctor", tmp_path / "nowhere") is None


@pytest.mark.slow
def test_script_server_leaves_a_pointer_while_it_runs(start: Callable[..., Service]):
    def is_there() -> bool:
        return service.data in [one.path for one in pointers.running()]

    service = start()
    assert is_there()
    assert service.stop() == 0
    assert not is_there()
