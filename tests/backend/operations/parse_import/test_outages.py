"""An import stops when this service is unavailable, and goes on later without a loss."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import pytest
from django.core.management import call_command

from backend.kernel.errors import UnderMaintenance
from backend.operations.parse_import import class_definitions, files, verification
from backend.operations.parse_import.files import Directory
from backend.operations.parse_import.formats.definitions import ClassDefinition
from backend.operations.parse_import.problems import ImportFailed
from backend.operations.parse_import.progress import Progress, load
from backend.operations.parse_import.sources.base import AppSettings, Batch, Members
from backend.operations.parse_import.transfer import Transfer
from objects.core.names import ClassName
from objects.files import records
from objects.rules import TransferredObject
from tests.rest import Api

OPEN = {action: {"*": True} for action in ("find", "get", "create", "update", "delete")}
NOTE = ClassDefinition("Note", {}, permissions=OPEN, indexes={"by_text": {"text": 1}})
HOOK = {"functionName": "far", "url": "https://hooks.example.org/far"}


def switch(state: str) -> None:
    call_command("maintenance", state, stdout=io.StringIO())


@pytest.fixture
def reports() -> list[tuple[str, str]]:
    return []


@pytest.fixture
def report(reports: list[tuple[str, str]]) -> Callable[[str, str], None]:
    return lambda place, reason: reports.append((place, reason))


@pytest.fixture
def maintained(master: Api) -> Iterator[None]:
    switch("on")
    yield
    switch("off")


@dataclass
class Memory:
    """A source in memory."""

    read_settings: Callable[[], AppSettings] = AppSettings
    objects_of_notes: list[TransferredObject] = field(default_factory=list)
    counted: int = 0
    name: str = "memory"
    has_password_hashes: bool = True

    def classes(self) -> list[ClassDefinition]:
        return [ClassDefinition("Note", {})]

    def foreign(self) -> list[str]:
        return []

    def count(self, definition: ClassDefinition) -> int:
        return self.counted

    def objects(self, definition: ClassDefinition, position: str) -> Iterator[Batch]:
        if self.objects_of_notes and not position:
            yield Batch("end", self.objects_of_notes)

    def members(self, definition: ClassDefinition, key: str, position: str) -> Iterator[Members]:
        return iter(())

    def settings(self) -> AppSettings:
        return self.read_settings()

    def close(self) -> None:
        pass


@pytest.mark.parametrize(
    "settings", [AppSettings({"params": {"a": 1}}), AppSettings({}, [HOOK])], ids=["config", "hook"]
)
def test_an_outage_before_the_config_and_hooks_leaves_them_to_the_next_run(
    master: Api,
    report: Callable[[str, str], None],
    reports: list[tuple[str, str]],
    tmp_path: Path,
    settings: AppSettings,
) -> None:
    state = tmp_path / "state.json"

    def transfer(source: Memory) -> Transfer:
        return Transfer(source, load(state, source.name), state, report, lambda *_: None)

    def begin_maintenance() -> AppSettings:
        switch("on")
        return settings

    try:
        with pytest.raises(ImportFailed, match="read-only"):
            transfer(Memory(begin_maintenance)).run()
    finally:
        switch("off")
    assert not load(state, "memory").step("config and webhooks").is_finished
    assert reports == []
    transfer(Memory(lambda: settings)).run()
    if settings.hooks:
        assert master.get("/hooks/functions/far").status == 200
    else:
        assert master.get("/config").json["params"] == {"a": 1}


def test_an_outage_is_no_refusal_of_a_class(
    maintained: None, report: Callable[[str, str], None], reports: list[tuple[str, str]]
) -> None:
    with pytest.raises(UnderMaintenance):
        class_definitions.define(NOTE, report)
    assert reports == []


def test_an_outage_is_no_refusal_of_permissions_and_indexes(
    master: Api, report: Callable[[str, str], None], reports: list[tuple[str, str]]
) -> None:
    master.post("/schemas/Note", {"className": "Note", "fields": {"text": {"type": "String"}}})
    before = master.get("/schemas/Note").json
    switch("on")
    try:
        with pytest.raises(UnderMaintenance):
            class_definitions.define(NOTE, report)
        with pytest.raises(UnderMaintenance):
            class_definitions.build_indexes(ClassName("Note"), NOTE, report)
    finally:
        switch("off")
    assert reports == []
    assert master.get("/schemas/Note").json == before


def test_an_outage_is_no_refusal_of_a_file(
    maintained: None,
    report: Callable[[str, str], None],
    reports: list[tuple[str, str]],
    tmp_path: Path,
) -> None:
    name = f"{uuid4().hex}_a.txt"
    (tmp_path / name).write_text("content")
    with pytest.raises(UnderMaintenance):
        files.store([name], Directory(tmp_path), report)
    assert reports == []
    assert records.find(name) is None


def test_objects_that_the_source_counts_but_doesnt_return_are_missing(
    master: Api, report: Callable[[str, str], None], tmp_path: Path
) -> None:
    time = "2020-01-01T00:00:00.000Z"
    note = TransferredObject(
        object_id="a", created_at=time, updated_at=time, acl=None, fields={"text": "x"}
    )
    source = Memory(objects_of_notes=[note], counted=1)
    Transfer(source, Progress("memory"), tmp_path / "state", report, lambda *_: None).run()
    (comparison,) = verification.compare(source)
    assert comparison.has_everything
    source.counted = 3
    (comparison,) = verification.compare(source)
    assert (comparison.there, comparison.missing) == (1, 2)
    assert comparison.examples == ["2 more: counted by the source, but not returned"]
