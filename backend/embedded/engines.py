"""PostgreSQL and Redis of one data folder, together."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping

from backend.embedded.binaries import engine_binaries
from backend.embedded.folder import DataFolder, temporary_folder
from backend.embedded.postgres import UNSAFE_BUT_FAST, PostgreSQL
from backend.embedded.redis_server import Redis


@contextlib.contextmanager
def running_engines(
    folder: DataFolder,
    *,
    postgres: bool = True,
    redis: bool = True,
    user: str = "",
    settings: Mapping[str, str] | None = None,
    durable: bool = True,
) -> Iterator[DataFolder]:
    """Run the engines that are asked for while the block runs; PostgreSQL ends last."""
    account = folder.prepare(user)
    with contextlib.ExitStack() as stack:
        if postgres or redis:
            binaries = engine_binaries(account, folder.runtime)
        if postgres:
            database = PostgreSQL(folder, account, binaries, settings)
            stack.callback(database.stop)
            database.start()
        if redis:
            broker = Redis(folder, account, binaries, durable=durable)
            stack.callback(broker.stop)
            broker.start()
        yield folder


@contextlib.contextmanager
def temporary_engines() -> Iterator[DataFolder]:
    """Engines of one test run: fast, and gone with all their data when the block ends."""
    with (
        temporary_folder() as folder,
        running_engines(folder, settings=UNSAFE_BUT_FAST, durable=False),
    ):
        yield folder
