"""Loads the application once, for all the processes that are forked afterwards."""

from __future__ import annotations

import gc
import traceback
from importlib import import_module

from backend.kernel.process.frozen_heap import leave_out_loaded


def preload() -> None:
    """Import what the processes of all roles need, and freeze it: a garbage collection writes to
    each object, and pages that are written to are no longer shared. Raises ``SystemExit`` with a
    sentence if one of the two applications can't be imported. Opens no connection and starts no
    thread."""
    gc.disable()

    _preload_sockets()
    _preload_celery()
    # Now, so that a fault in them keeps the present application running during a reload.
    _import("backend.wsgi")
    _import("backend.asgi")
    _import("backend.operations.processes.server_rules")
    leave_out_loaded()
    gc.enable()


def _import(name: str) -> None:
    try:
        import_module(name)
    except Exception as error:
        traceback.print_exc()
        reason = f"{name} can't be loaded: {type(error).__name__}: {error}"
        raise SystemExit(reason) from None


def _preload_sockets() -> None:
    import uvicorn.protocols.http.h11_impl  # noqa: F401
    import uvloop  # noqa: F401

    import realtime.process.server
    import realtime.sockets.wire  # noqa: F401


def _preload_celery() -> None:
    import kombu.transport.redis  # noqa: F401

    from backend.celery import app

    app.loader.import_default_modules()
    app.finalize()
