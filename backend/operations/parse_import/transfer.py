"""An import: its steps in order, each resumable."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from backend.kernel.errors import HookExists, ServiceError, UnderMaintenance
from backend.kernel.principal import MASTER
from backend.operations.parse_import import class_definitions, files, job_schedules
from backend.operations.parse_import.files import FileSource
from backend.operations.parse_import.formats.definitions import SCHEDULES, ClassDefinition
from backend.operations.parse_import.problems import (
    ImportFailed,
    Report,
    is_accepted,
    sentence,
)
from backend.operations.parse_import.progress import Progress, Step
from backend.operations.parse_import.sources.base import Batch, Source, SourceFailed
from functions.webhooks import service as webhooks
from objects.app_config import service as app_config
from objects.core.names import ClassName, FieldName
from objects.service import transfers
from objects.service.bulk import NOT_ABOUT_THE_OBJECT

JOB_SCHEDULES: Final = "job schedules"
"""The name of their step."""
Advanced = Callable[[str, int], None]
"""Called with the step and the number of things read in it, after each batch."""


@dataclass
class Transfer:
    """An import from ``source``.

    ``file_source`` None leaves files where they are. After ``run``, every step of ``progress`` is
    finished. Objects that change at the source during the import are taken over by another run
    with ``again``: it reads everything and stores what is newer.
    """

    source: Source
    progress: Progress
    state: Path
    report: Report
    advanced: Advanced
    file_source: FileSource | None = None

    def again(self) -> None:
        """Begin all steps again. Stopped at any time, another ``run`` continues with them."""
        self.progress.steps.clear()
        self.progress.save(self.state)

    def run(self) -> None:
        """Import everything. Raises ``ImportFailed`` if it can't go on."""
        try:
            self._run()
        except SourceFailed as error:
            raise ImportFailed(str(error)) from error
        except UnderMaintenance as error:
            raise ImportFailed(
                f"This service is in maintenance mode: {sentence(error.message)} Repeat the command"
                " when it has ended."
            ) from error
        except NOT_ABOUT_THE_OBJECT as error:
            raise ImportFailed(error.message) from error

    def _run(self) -> None:
        stored = self.source.classes()
        definitions = class_definitions.imported(stored)
        for name in self.source.foreign():
            self.report(name, "not a class of the Parse Server: _SCHEMA doesn't name it")
        names: dict[str, ClassName] = {}
        for definition in definitions:
            class_name = class_definitions.define(definition, self.report)
            if class_name is not None:
                names[definition.name] = class_name
        existing = [definition for definition in definitions if definition.name in names]
        for definition in existing:
            self._objects(definition, names[definition.name])
        for definition in existing:
            for key in definition.relations:
                self._members(definition, names[definition.name], FieldName(key))
        for definition in existing:
            with self._step(f"indexes of {definition.name}") as step:
                if not step.is_finished:
                    step.read = class_definitions.build_indexes(
                        names[definition.name], definition, self.report
                    )
        for definition in stored:
            if definition.name == SCHEDULES:
                self._schedules(definition)
        self._settings()

    def _objects(self, definition: ClassDefinition, class_name: ClassName) -> None:
        name = f"objects of {definition.name}"
        left_before = self.progress.step(name).files_left
        with self._step(name) as step:
            if not step.is_finished:
                self._store_objects(definition, class_name, step)
        if left_before and self.file_source is not None:
            self._files_left(definition, step)

    def _store_objects(
        self, definition: ClassDefinition, class_name: ClassName, step: Step
    ) -> None:
        for batch in self.source.objects(definition, step.position):
            step.files_left += self._store_files(_file_names(batch))
            outcome = transfers.store(class_name, batch.objects)
            for object_id, error in outcome.refused.items():
                self.report(f"{class_name}/{object_id}", str(error))
            self._finish_batch(definition, batch, len(outcome.refused), definition.name, step)

    def _finish_batch(
        self, definition: ClassDefinition, batch: Batch, refused: int, name: str, step: Step
    ) -> None:
        for unreadable in batch.unreadable:
            self.report(f"{definition.name}/{unreadable.name}", unreadable.reason)
        step.position = batch.position
        step.read += len(batch.objects) + len(batch.unreadable)
        step.refused += refused + len(batch.unreadable)
        self._advance(name, step)

    def _files_left(self, definition: ClassDefinition, objects_step: Step) -> None:
        """Fetch the files that earlier runs left."""
        name = f"files of {definition.name}"
        step = self.progress.step(name)
        for batch in self.source.objects(definition, step.position):
            step.files_left += self._store_files(_file_names(batch))
            step.position = batch.position
            step.read += len(batch.objects)
            self._advance(name, step)
        objects_step.files_left = step.files_left
        del self.progress.steps[name]
        self.progress.save(self.state)

    def _store_files(self, names: Iterable[str]) -> int:
        """Store files if their place is known; return how many aren't stored."""
        if self.file_source is None:
            return files.count_missing(names)
        return files.store(names, self.file_source, self.report)

    def _members(self, definition: ClassDefinition, class_name: ClassName, key: FieldName) -> None:
        with self._step(f"relation {definition.name}.{key}") as step:
            if step.is_finished:
                return
            for position, members in self.source.members(definition, key, step.position):
                valid = transfers.add_members(class_name, key, members)
                step.position = position
                step.read += len(members)
                step.refused += len(members) - valid
                self._advance(f"{definition.name}.{key}", step)

    def _schedules(self, definition: ClassDefinition) -> None:
        with self._step(JOB_SCHEDULES) as step:
            if step.is_finished:
                return
            for batch in self.source.objects(definition, step.position):
                refused = job_schedules.store(batch.objects, self.report)
                self._finish_batch(definition, batch, refused, JOB_SCHEDULES, step)

    def _settings(self) -> None:
        with self._step("config and webhooks") as step:
            if step.is_finished and not (step.files_left and self.file_source):
                return
            settings = self.source.settings()
            params = settings.config.get("params")
            step.files_left = self._store_files(files.names_in([params]))
            if step.is_finished:
                self.progress.save(self.state)
                return
            for unreadable in settings.unreadable:
                step.read += 1
                step.refused += 1
                self.report(unreadable.name, unreadable.reason)
            if settings.config.get("params"):
                step.read += 1
                save = partial(app_config.save, MASTER, settings.config)
                step.refused += not is_accepted(save, self.report, "config")
            for hook in settings.hooks:
                step.read += 1
                try:
                    webhooks.create(MASTER, dict(hook))
                except HookExists:
                    continue
                except NOT_ABOUT_THE_OBJECT:
                    raise
                except ServiceError as error:
                    step.refused += 1
                    self.report(f"webhook {_hook_name(hook)}", str(error))
            self._advance("config and webhooks", step)

    def _advance(self, name: str, step: Step) -> None:
        self.progress.save(self.state)
        self.advanced(name, step.read)

    @contextmanager
    def _step(self, name: str) -> Iterator[Step]:
        """A step, which is finished when the block ends without an error."""
        step = self.progress.step(name)
        yield step
        if not step.is_finished:
            step.is_finished = True
            self.progress.save(self.state)


def _file_names(batch: Batch) -> Iterator[str]:
    return files.names_in(value for obj in batch.objects for value in obj.fields.values())


def _hook_name(hook: Mapping[str, object]) -> str:
    names = (hook.get("functionName"), hook.get("className"), hook.get("triggerName"))
    return " ".join(str(name) for name in names if name)
