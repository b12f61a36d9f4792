"""The request that a job receives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from backend.kernel.principal import MASTER
from backend.kernel.texts.encoding import describe
from functions.runtime.request import Request


class JobRequest(Request):
    """A run of a job, always with the rights of the master key.

    ``request.objects`` reads and writes all objects.
    """

    def __init__(
        self,
        name: str,
        params: dict[str, Any],
        *,
        status_id: str,
        attempt: int,
        say: Callable[[str], None],
    ) -> None:
        super().__init__(name, MASTER)
        self.params = params
        """All parameters, decoded."""
        self.status_id = status_id
        """The id of the run's object of ``_JobStatus``."""
        self.attempt = attempt
        """1, and more where a job with ``restart`` is run again because its worker died."""
        self._say = say

    @property
    def job_name(self) -> str:
        return self.name

    def message(self, text: str) -> None:
        """Publish the progress of the run.

        Cheap to call: at most one message a second is written, the latest.
        """
        self._say(describe(text))
