"""An import: rows become objects, batch by batch, and every row that doesn't is reported.

A thread reads the next batches and makes objects of their rows while this one has the database
store the batch before: each keeps a core busy.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from objects.exchange import progress
from objects.exchange.checkpoint import Checkpoint
from objects.exchange.destinations import Destination
from objects.exchange.prefetch import ahead
from objects.exchange.problems import BadRow
from objects.exchange.row_files import Row
from objects.exchange.row_objects import RowMapping
from objects.service.bulk import NewObject, Prepared

_LARGEST_BATCH = 4 << 20  # characters of the file
_AHEAD = 2  # batches


class Stopped(Exception):
    """A row was refused, and the import was to stop at the first one."""


@dataclass(slots=True)  # freezing triples what it costs to make one
class _Item:
    """A row of a batch: the object that it makes, or why it makes none."""

    line: int
    new: NewObject | None
    problem: str | None


@dataclass(frozen=True, slots=True)
class _Batch:
    items: Sequence[_Item]
    prepared: Prepared | None
    end: int
    """Bytes of the file that were read for it and the batches before."""

    @property
    def objects(self) -> list[NewObject]:
        return [item.new for item in self.items if item.new is not None]


@dataclass
class Import:
    """One run. ``report(line, reason)`` is called for each row that is left out."""

    mapping: RowMapping
    destination: Destination | None
    """None checks the rows and stores nothing."""
    checkpoint: Checkpoint
    state: Path | None
    """The file that the checkpoint is stored in; None for none."""
    batch_size: int
    stop_on_error: bool
    report: Callable[[int, str], None]

    def run(
        self, rows: Iterable[Row], position: Callable[[], int], advanced: Callable[[int], None]
    ) -> None:
        """Store the rows that the checkpoint doesn't have.

        ``position`` returns how many bytes of the file were read, in the thread that reads;
        ``advanced`` is called with it after each batch. With ``stop_on_error`` raises ``Stopped``
        after the rows before the bad one are stored.
        """
        with ahead(self._batches(rows, position), _AHEAD) as batches:
            for batch in batches:
                self._store(batch)
                advanced(batch.end)

    # -- In the thread that reads ------------------------------------------------------------------

    def _batches(self, rows: Iterable[Row], position: Callable[[], int]) -> Iterator[_Batch]:
        items: list[_Item] = []
        size = 0
        for number, row in itertools.islice(enumerate(rows), self.checkpoint.rows, None):
            items.append(self._item(number, row))
            size += row.size
            if len(items) == self.batch_size or size > _LARGEST_BATCH:
                yield self._batch(items, position())
                items, size = [], 0
        if items:
            yield self._batch(items, position())

    def _item(self, number: int, row: Row) -> _Item:
        if row.problem is not None:
            return _Item(row.line, None, row.problem)
        try:
            object_id, fields = self.mapping.apply(row.values)
        except BadRow as problem:
            return _Item(row.line, None, str(problem))
        if object_id is not None:
            return _Item(row.line, NewObject(object_id, False, fields), None)
        return _Item(row.line, NewObject(self.checkpoint.object_id(number), True, fields), None)

    def _batch(self, items: list[_Item], end: int) -> _Batch:
        batch = _Batch(items, None, end)
        if self.destination is None:
            return batch
        return replace(batch, prepared=self.destination.prepare(batch.objects))

    # -- In the thread that stores -----------------------------------------------------------------

    def _store(self, batch: _Batch) -> None:
        bad = next((n for n, item in enumerate(batch.items) if item.problem is not None), None)
        if self.stop_on_error and bad is not None:
            before = _Batch(batch.items[:bad], None, batch.end)
            if before.items:
                self._store(before)
            self.report(batch.items[bad].line, batch.items[bad].problem or "")
            raise Stopped
        objects = batch.objects
        answers: list[str | None] = [None] * len(objects)
        if objects and self.destination is not None:

            def note(answers: Sequence[str | None]) -> None:
                if self.state is not None:
                    progress.save(self._after(batch, answers))

            answers = self.destination.store(objects, batch.prepared, self.stop_on_error, note)
        after = self._after(batch, answers)
        self.checkpoint.rows, self.checkpoint.stored = after.rows, after.stored
        self.checkpoint.refused = after.refused
        if self.state is not None:
            self.checkpoint.save(self.state)
        for line, reason in _left_out(batch, answers):
            self.report(line, reason)
        if self.stop_on_error and answers and answers[-1] is not None:
            raise Stopped

    def _after(self, batch: _Batch, answers: Sequence[str | None]) -> Checkpoint:
        """Return the checkpoint when these are the outcomes of a batch's objects."""
        stored = answers.count(None)
        if self.stop_on_error:
            # The row that was refused, if there is one, isn't done with.
            rows, refused = stored, 0
        else:
            rows, refused = len(batch.items), len(batch.items) - stored
        return replace(
            self.checkpoint,
            rows=self.checkpoint.rows + rows,
            stored=self.checkpoint.stored + stored,
            refused=self.checkpoint.refused + refused,
        )


def _left_out(batch: _Batch, answers: Sequence[str | None]) -> Iterator[tuple[int, str]]:
    """Yield the lines and reasons of the rows that weren't stored."""
    of_objects = iter(answers)
    for item in batch.items:
        reason = item.problem if item.new is None else next(of_objects, None)
        if reason is not None:
            yield item.line, reason
