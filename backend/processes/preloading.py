"""Loads the application once, for all the processes that are forked afterwards."""

from __future__ import annotations

import gc

from backend.loaded import leave_out_loaded


def preload() -> None:
    """Import what the processes of all roles need, and freeze it: a garbage collection writes to
    each object, and pages that are written to are no longer shared."""
    gc.disable()

    _preload_sockets()
    _preload_celery()
    leave_out_loaded()
    gc.enable()


def _preload_sockets() -> None:
    import realtime.serving
    import realtime.wire  # noqa: F401


def _preload_celery() -> None:
    import kombu.transport.redis  # noqa: F401

    from backend.celery import app

    app.loader.import_default_modules()
    app.finalize()
