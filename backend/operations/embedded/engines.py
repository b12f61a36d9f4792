"""PostgreSQL and Redis of one data folder, together."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType

from backend.instance.account import Account
from backend.instance.folder import DataFolder, temporary_folder
from backend.operations.embedded.binaries import engine_binaries
from backend.operations.embedded.postgres import UNSAFE_BUT_FAST, PostgreSQL
from backend.operations.embedded.redis_server import Redis


class Engines:
    """The engines that are asked for, running while the ``with`` block does; PostgreSQL ends last.

    The folder has to be prepared, by ``DataFolder.prepare``.
    """

    def __init__(
        self,
        folder: DataFolder,
        account: Account,
        *,
        postgres: bool = True,
        redis: bool = True,
        settings: Mapping[str, str] | None = None,
        durable: bool = True,
        is_small: bool = False,
    ) -> None:
        self._engines: list[PostgreSQL | Redis] = []
        self._stack = contextlib.ExitStack()
        if not (postgres or redis):
            return
        binaries = engine_binaries(account, folder.runtime)
        if postgres:
            self._engines.append(PostgreSQL(folder, account, binaries, settings, is_small=is_small))
        if redis:
            self._engines.append(Redis(folder, account, binaries, durable=durable))

    @property
    def programs(self) -> Sequence[PostgreSQL | Redis]:
        return self._engines

    @property
    def pids(self) -> set[int]:
        return set().union(*(engine.pids for engine in self._engines))

    def pass_on_lines(self) -> None:
        """Pass on what the engines have written to their logs since the last time."""
        for engine in self._engines:
            engine.lines.look()

    def __enter__(self) -> Engines:
        with contextlib.ExitStack() as stack:
            for engine in self._engines:
                stack.callback(engine.stop)
                engine.start()
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()


@contextlib.contextmanager
def temporary_engines() -> Iterator[DataFolder]:
    """Engines of one test run: fast, and gone with all their data when the block ends."""
    with temporary_folder() as folder:
        account = folder.prepare()
        with Engines(folder, account, settings=UNSAFE_BUT_FAST, durable=False):
            yield folder
