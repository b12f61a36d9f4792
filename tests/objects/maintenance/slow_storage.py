"""A storage whose writes a test holds up."""

from __future__ import annotations

import threading
from typing import Any

from django.core.files.storage import FileSystemStorage

PATIENCE = 30  # seconds


class SlowStorage(FileSystemStorage):
    """Files in a folder. While ``held`` is set, a save says so by ``began`` and waits."""

    held = threading.Event()
    began = threading.Event()
    go_on = threading.Event()

    def save(self, name: str | None, content: Any, max_length: int | None = None) -> str:
        if self.held.is_set():
            self.began.set()
            assert self.go_on.wait(PATIENCE)
        return super().save(name, content, max_length)
