"""Engines that are there and answer nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import psutil

from tests.backend.operations.service import Service


@contextlib.contextmanager
def stalled(service: Service, *engines: str) -> Iterator[None]:
    """Stop all processes of the engines (SIGSTOP), named as for ``Service.child``, until the block
    ends."""
    stopped: list[psutil.Process] = []
    try:
        for engine in engines:
            root = service.child(engine)
            # The root before its children: it starts no other meanwhile.
            _suspend(root, stopped)
            for process in root.children(recursive=True):
                _suspend(process, stopped)
        yield
    finally:
        for process in stopped:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.resume()


def _suspend(process: psutil.Process, stopped: list[psutil.Process]) -> None:
    with contextlib.suppress(psutil.NoSuchProcess):
        process.suspend()
        stopped.append(process)
