"""Clients that write without a pause and note what they were answered."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from tests.rest import MASTER

PATIENCE = 60  # seconds, for a machine that is busy with other things
REFUSED = {"code": 119, "error": "System is currently in read-only mode for maintenance."}

Accepted = bool | None
"""Whether a write was accepted; None if the answer is neither that nor a refusal."""


@dataclass
class Log:
    """What one writer has been answered, in order."""

    answers: list[tuple[int, Accepted, Any]] = field(default_factory=list)
    news: threading.Condition = field(default_factory=threading.Condition)

    def add(self, n: int, accepted: Accepted, body: Any) -> None:
        with self.news:
            self.answers.append((n, accepted, body))
            self.news.notify_all()

    def wait_for(self, number: int, accepted: bool) -> None:
        """Wait for so many further answers of the kind."""
        begun = len(self.answers)

        def enough() -> bool:
            return sum(answer[1] is accepted for answer in self.answers[begun:]) >= number

        with self.news:
            assert self.news.wait_for(enough, PATIENCE), self.answers[-3:]

    def numbers(self, accepted: Accepted) -> list[int]:
        return [n for n, item, _ in self.answers if item is accepted]


class Writer(threading.Thread):
    """One client of one process. Subclasses say what it writes."""

    def __init__(self, port: int, name: str) -> None:
        super().__init__(daemon=True, name=name)
        self.log = Log()
        self._port = port
        self._is_over = threading.Event()

    def write(self, n: int, call: Call) -> tuple[Accepted, Any]:
        raise NotImplementedError

    def run(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE)

        def call(method: str, path: str, body: Any) -> tuple[int, Any]:
            headers = {**MASTER, "Content-Type": "application/json"}
            try:
                connection.request(method, f"/api{path}", json.dumps(body), headers)
                response = connection.getresponse()
                return response.status, json.loads(response.read())
            except OSError:
                connection.close()
                raise

        try:
            for n in self._numbers():
                self.log.add(n, *self.write(n, call))
        finally:
            connection.close()

    def _numbers(self) -> Iterator[int]:
        for n in count(1):
            if self._is_over.is_set():
                return
            yield n

    def stop(self) -> None:
        self._is_over.set()


Call = Callable[[str, str, Any], tuple[int, Any]]


def _outcome(status: int, body: Any) -> tuple[Accepted, Any]:
    if (status, body) == (400, REFUSED):
        return False, body
    return (True if status in (200, 201) else None), body


class Creator(Writer):
    """One object at a time."""

    def write(self, n: int, call: Call) -> tuple[Accepted, Any]:
        return _outcome(*call("POST", "/classes/Load", {"writer": self.name, "n": n}))


class BatchOfFive(Writer):
    """Five objects and a step of a counter in one transaction.

    It goes on reading before it ends, so that some are always under way with all written.
    """

    def __init__(self, port: int, name: str, counter: str) -> None:
        super().__init__(port, name)
        self._counter = counter

    def write(self, n: int, call: Call) -> tuple[Accepted, Any]:
        create = {"method": "POST", "path": "/api/classes/Load"}
        requests = [{**create, "body": {"writer": self.name, "n": n}} for _ in range(5)]
        step = {
            "method": "PUT",
            "path": f"/api/classes/Counter/{self._counter}",
            "body": {"steps": {"__op": "Increment", "amount": 1}},
        }
        reads = [{"method": "GET", "path": f"/api/classes/Counter/{self._counter}"}] * 30
        requests = [*requests[:3], step, *requests[3:], *reads]
        body = {"transaction": True, "requests": requests}
        return _outcome(*call("POST", "/batch", body))


class Counting(Writer):
    """Steps of a counter that others step as well."""

    def __init__(self, port: int, name: str, counter: str) -> None:
        super().__init__(port, name)
        self._path = f"/classes/Counter/{counter}"

    def write(self, n: int, call: Call) -> tuple[Accepted, Any]:
        return _outcome(*call("PUT", self._path, {"steps": {"__op": "Increment", "amount": 1}}))


class Uploader(Writer):
    """A file at a time."""

    def write(self, n: int, call: Call) -> tuple[Accepted, Any]:
        try:
            return _outcome(*call("POST", f"/files/{self.name}-{n}.txt", {"is": "a file"}))
        except OSError:
            # Refused before the body was read; the server doesn't wait for it.
            return False, None


class Growing(Writer):
    """An object with a field that the class hasn't yet: the class changes as well."""

    def write(self, n: int, call: Call) -> tuple[Accepted, Any]:
        new = {"writer": self.name, "n": n, f"field{n}": n}
        return _outcome(*call("POST", "/classes/Growing", new))
