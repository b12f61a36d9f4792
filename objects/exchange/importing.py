"""An import: rows become objects, batch by batch, and every row that doesn't is reported."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from objects.exchange.checkpoint import Checkpoint
from objects.exchange.destinations import Destination, NewObject
from objects.exchange.mapping import RowMapping
from objects.exchange.problems import BadRow
from objects.exchange.reading import Row


class Stopped(Exception):
    """A row was refused, and the import was to stop at the first one."""


@dataclass
class Import:
    """One run. ``report(line, reason)`` hears of every row that is left out."""

    mapping: RowMapping
    destination: Destination | None
    """None checks the rows and stores nothing."""
    checkpoint: Checkpoint
    state: Path | None
    """Where the checkpoint is kept; None: nowhere."""
    batch_size: int
    stop_on_error: bool
    report: Callable[[int, str], None]

    def run(self, rows: Iterable[Row], advanced: Callable[[], None]) -> None:
        """Store the rows that the checkpoint doesn't have; ``advanced`` is called after a batch.

        With ``stop_on_error`` raises ``Stopped`` after the rows before the bad one are stored.
        """
        numbered = enumerate(rows)
        fresh = itertools.islice(numbered, self.checkpoint.rows, None)
        while batch := list(itertools.islice(fresh, self.batch_size)):
            self._store(batch)
            advanced()

    def _store(self, batch: list[tuple[int, Row]]) -> None:
        made: list[tuple[Row, NewObject]] = []
        for number, row in batch:
            try:
                made.append((row, self._object(number, row)))
            except BadRow as problem:
                if self.stop_on_error:
                    self._send(made)
                    self._note(len(made))
                    self.report(row.line, str(problem))
                    raise Stopped from None
                self._refuse(row, str(problem))
        self._send(made)
        self._note(len(batch))

    def _object(self, number: int, row: Row) -> NewObject:
        if row.problem is not None:
            raise BadRow(row.problem)
        object_id, fields = self.mapping.apply(row.values)
        if object_id is not None:
            return NewObject(object_id, False, fields)
        return NewObject(self.checkpoint.object_id(number), True, fields)

    def _send(self, made: list[tuple[Row, NewObject]]) -> None:
        """Store what was made of rows; stop or go on at what the destination refuses."""
        if not made:
            return
        if self.destination is None:
            self.checkpoint.stored += len(made)
            return
        answers = self.destination.store([obj for _, obj in made], self.stop_on_error)
        for done, ((row, _), refusal) in enumerate(zip(made, answers, strict=False)):
            if refusal is None:
                self.checkpoint.stored += 1
            elif self.stop_on_error:
                self._note(done)
                self.report(row.line, refusal)
                raise Stopped
            else:
                self._refuse(row, refusal)

    def _refuse(self, row: Row, reason: str) -> None:
        self.checkpoint.refused += 1
        self.report(row.line, reason)

    def _note(self, rows: int) -> None:
        self.checkpoint.rows += rows
        if self.state is not None:
            self.checkpoint.save(self.state)
