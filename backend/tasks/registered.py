"""Tasks by their names, for code below the modules that declare them."""

from __future__ import annotations

from typing import Any

from celery import Task, current_app


def task(name: str) -> Task[Any, Any]:
    """Return the task that is registered under a name. Raises ``KeyError`` if there is none.

    Every process registers the tasks of all apps when Django has loaded them (``wiring`` modules).
    """
    registered: Task[Any, Any] = current_app.tasks[name]
    return registered
