"""Clean-up: files that nothing refers to."""

from __future__ import annotations

import copy
import io
from datetime import UTC, datetime, timedelta

import pytest
from django.core.files.storage import FileSystemStorage
from django.core.management import CommandError, call_command

from backend.kernel.principal import MASTER
from objects import service
from objects.files.models import StoredFile
from objects.files.orphans import remove_unused, unused_files
from objects.files.tasks import clean_files
from tests.objects.files.uploads import file_path, send, stored, stored_names
from tests.people import sign_up

pytestmark = pytest.mark.django_db


def old(name: str = "a.txt", hours: float = 48) -> str:
    """A stored file of some age."""
    value = stored(name, b"content")
    moment = datetime.now(UTC) - timedelta(hours=hours)
    StoredFile.objects.filter(name=value).update(created_at=moment)
    return value


def file(name: str) -> dict[str, str]:
    return {"__type": "File", "name": name}


def unused() -> set[str]:
    with unused_files() as results:
        return {unused_file.name for unused_file in results}


def run(*arguments: str) -> tuple[str, str]:
    out, errors = io.StringIO(), io.StringIO()
    call_command("clean_files", *arguments, stdout=out, stderr=errors)
    return out.getvalue(), errors.getvalue()


@pytest.mark.parametrize(
    "fields",
    [
        lambda name: {"file": file(name)},
        lambda name: {"list": [1, {"a": [[file(name)]]}]},
        lambda name: {"box": {"a": {"b": {"c": file(name)}}}},
        lambda name: {"text": f"see https://example.org/files/x/{name}?y"},
        lambda name: {"text": f"aa{name}"},
        lambda name: {"box": {name.partition(".")[0]: 1}},
        lambda name: {"text": f"{old()} and {name} and more"},
        lambda name: {"ACL": {}, "file": file(name)},
    ],
)
def test_a_file_that_an_object_mentions_anywhere_is_in_use(master, fields):
    name, other = old(), old("b.txt")
    before = fields(name)
    master.make("Photo", **before)
    assert name not in unused()
    assert other in unused()


def test_columns_of_models_refer_too(master):
    names = [old() for _ in range(5)]
    sign_up("ann", picture=file(names[0]))
    master.make("Book", title=f"/{names[1]}", cover={"front": file(names[2])}, other=file(names[3]))
    master.post(
        "/schemas/Photo", {"fields": {"f": {"type": "File", "defaultValue": file(names[4])}}}
    )
    assert unused() == set()


def test_a_file_that_is_replaced_or_whose_object_is_gone_is_unused(master):
    item, two, three = old(), old(), old()
    replaced = master.make("Photo", file=file(item))
    gone = master.make("Photo", file=file(two))
    kept_one = master.make("Photo", file=file(three))
    assert unused() == set()
    master.put(f"/classes/Photo/{replaced}", {"file": {"__op": "Delete"}})
    master.delete(f"/classes/Photo/{gone}")
    assert unused() == {item, two}
    master.delete(f"/classes/Photo/{kept_one}")
    master.call("DELETE", "/schemas/Photo")
    assert unused() == {item, two, three}


def test_young_files_are_left_alone():
    young, middle, aged = stored("a.txt"), old(hours=23.9), old(hours=24.1)
    assert unused() == {aged}
    with unused_files(timedelta(hours=2)) as results:
        assert {unused_file.name for unused_file in results} == {middle, aged}
    assert young not in unused()


@pytest.mark.parametrize("age", [timedelta(0), timedelta(minutes=59)])
def test_files_that_may_be_about_to_be_used_are_never_looked_at(age):
    with pytest.raises(ValueError, match="younger"):
        remove_unused(age)


def test_a_dry_run_lists_and_removes_nothing(master):
    used, forgotten = old(), old()
    master.make("Photo", file=file(used))
    out, errors = run()
    assert out == f"{forgotten}\t7\n"
    assert errors == "1 file that nothing refers to, 7 bytes. --delete removes them.\n"
    assert stored_names() == {used, forgotten}


def test_delete_removes_what_nothing_refers_to(master):
    used, forgotten, other = old(), old(), old()
    master.make("Photo", file=file(used))
    assert run("--delete") == ("", "2 files removed, 14 bytes\n")
    assert stored_names() == {used}
    assert not StoredFile.objects.filter(name__in=(forgotten, other)).exists()
    assert send("GET", file_path(used)).status == 200
    assert run("--delete") == ("", "0 files removed, 0 bytes\n")


def test_the_task_does_the_same_where_the_setting_is_on(master, settings):
    used, other = old(), old()
    master.make("Photo", file=file(used))
    clean_files()
    assert stored_names() == {used, other}
    settings.SERVICE = {**settings.SERVICE, "FILE_CLEAN_UP": True}
    clean_files()
    assert stored_names() == {used}


def test_rows_without_bytes_are_removed_too(tmp_path):
    name = old()
    (tmp_path / "files" / name[:2] / name).unlink()
    assert remove_unused().files == 1
    assert not StoredFile.objects.exists()


def test_the_age_is_an_option():
    name = old(hours=2)
    assert run("--older-than", "90m")[0] == f"{name}\t7\n"
    assert run("--older-than", "1d")[0] == ""
    for wrong in ("1", "h", "30m", "0d", "-1h", "1w", "1.5h", ""):
        with pytest.raises(CommandError, match="--older-than"):
            run("--older-than", wrong)


class Reminding(FileSystemStorage):
    """A file is referenced while others are removed."""

    referred: str = ""

    def delete(self, name: str) -> None:
        super().delete(name)
        service.create(MASTER, "Photo", {"file": file(self.referred)})


def test_what_is_referred_to_while_others_are_removed_is_kept(settings, tmp_path):
    _, second = old(hours=72), old(hours=48)
    Reminding.referred = second
    chosen = copy.deepcopy(settings.STORAGES)
    chosen["files"]["BACKEND"] = "tests.objects.files.test_clean_up.Reminding"
    settings.STORAGES = chosen
    assert remove_unused(at_once=1).files == 1
    assert stored_names() == {second}


def test_a_file_that_cant_be_removed_is_reported_and_kept_in_mind(tmp_path):
    stuck, fine = old(), old()
    place = tmp_path / "files" / stuck[:2] / stuck
    place.unlink()
    place.mkdir()
    (place / "in the way").touch()
    with pytest.raises(CommandError, match="1 file couldn't be removed"):
        run("--delete")
    assert [row.name for row in StoredFile.objects.all()] == [stuck]
    assert fine not in stored_names()


@pytest.mark.slow
def test_any_number_of_files_is_found():
    moment = datetime.now(UTC) - timedelta(days=3)
    StoredFile.objects.bulk_create(
        StoredFile(
            name=f"{number:032x}_a", size=1, content_type="a/b", sha256="", created_at=moment
        )
        for number in range(1201)
    )
    assert len(unused()) == 1201
    done = remove_unused()
    assert (done.files, done.bytes, done.failed) == (1201, 1201, 0)
