"""What a job is handed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from backend.kernel.principal import MASTER
from functions.runtime.request import Request


class JobRequest(Request):
    """A run of a job. It is the master key's, whoever has started it: ``request.objects`` reads
    and writes everything."""

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
        """Tell whoever looks at the run how far it is. Costs nothing: at most one message a second
        is written, the latest."""
        self._say(str(text))
