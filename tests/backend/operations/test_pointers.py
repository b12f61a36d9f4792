"""``manage.py`` finds the instance that runs, wherever its data folder is."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from backend.instance.folder import DataFolder
from backend.operations.launcher import pointers
from tests.backend.operations.service import Service

Make = Callable[[Path], DataFolder]
NONE = {"ENV_FILE": os.devnull}


@pytest.fixture
def instance() -> Iterator[Callable[[Path], DataFolder]]:
    """Makes data folders, as instances have them that run until the test has ended."""
    with ExitStack() as running:

        def make(folder: Path) -> DataFolder:
            folder.mkdir(parents=True)
            data = DataFolder(folder)
            running.enter_context(data.hold())
            data.record(pid=os.getpid(), address=f"http://{folder.name}")
            return data

        yield make


def chosen(command: str, place: Path, **variables: str) -> str | None:
    environment = NONE | variables
    usual = place.with_name("usual")
    pointers.choose(["manage.py", command], environment, folder=place, usual=usual)
    return environment.get("DATA_DIR")


def test_the_only_instance_that_runs_is_chosen_and_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], instance: Make
):
    place, data = tmp_path / "pointers", instance(tmp_path / "one")
    pointers.point_to(data, place)
    assert chosen("doctor", place) == str(data.path)
    assert capsys.readouterr().err == f"Instance: http://one (DATA_DIR={data.path})\n"
    pointers.forget(data, place)
    assert chosen("doctor", place) is None


def test_of_several_none_is_chosen(tmp_path: Path, instance: Make):
    place = tmp_path / "pointers"
    for name in ("one", "two"):
        pointers.point_to(instance(tmp_path / name), place)
    with pytest.raises(SystemExit, match="Several instances run: set DATA_DIR to one of") as ended:
        chosen("doctor", place)
    assert str(tmp_path / "one") in str(ended.value)
    assert chosen("upgrade_postgres", place) is None


def test_what_is_named_or_usual_goes_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], instance: Make
):
    place, other = tmp_path / "pointers", "elsewhere"
    pointers.point_to(instance(tmp_path / "one"), place)
    assert chosen("doctor", place, DATA_DIR=other) == other
    assert chosen("doctor", place, DATABASE_URL="postgresql://db/shop") is None
    assert chosen("doctor", place, DATA_DIR_FILE="/run/secrets/folder") is None
    assert capsys.readouterr().err == ""
    usual = instance(tmp_path / "usual")
    assert chosen("doctor", place) is None
    assert capsys.readouterr().err == f"Instance: http://usual (DATA_DIR={usual.path})\n"


def test_instances_that_have_ended_do_not_count(tmp_path: Path):
    """Also where another process has the number by now."""
    place = tmp_path / "pointers"
    for name, pid in (("one", 2**22 + 1), ("two", os.getpid())):
        data = DataFolder(tmp_path / name)
        data.path.mkdir()
        with data.hold():
            data.record(pid=pid, address="http://localhost")
        pointers.point_to(data, place)
        assert chosen("doctor", place) is None
    assert chosen("doctor", tmp_path / "nowhere") is None


def test_a_pointer_that_can_t_be_read_hides_no_other(tmp_path: Path, instance: Make):
    place, data = tmp_path / "pointers", instance(tmp_path / "one")
    pointers.point_to(data, place)
    (place / "0").mkdir()
    (place / "00").write_text("/nowhere\0")
    assert [each.path for each in pointers.running(place)] == [data.path]


@pytest.mark.slow
def test_script_server_leaves_a_pointer_while_it_runs(start: Callable[..., Service]):
    def is_there() -> bool:
        return service.data in [item.path for item in pointers.running()]

    service = start()
    assert is_there()
    assert service.stop() == 0
    assert not is_there()
