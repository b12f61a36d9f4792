"""A plain keep-alive HTTP client for what isn't measured: making classes, loading, checking."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, Self

from bench.failure import BenchFailure


class Client:
    """One connection to one server, with its credentials."""

    def __init__(self, port: int, mount: str, headers: dict[str, str]) -> None:
        self.mount = mount
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        self._headers = {**headers, "Content-Type": "application/json"}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; the next request makes another."""
        self._connection.close()

    def send(self, method: str, path: str, body: Any = None) -> Any:
        """The decoded answer; anything but a success ends the benchmark."""
        text = body if isinstance(body, str) or body is None else json.dumps(body)
        status, answer = self.attempt(method, self.mount + path, text)
        if not 200 <= status < 300:
            raise BenchFailure(f"{method} {path} was answered {status}: {answer[:400]!r}")
        return json.loads(answer)

    def attempt(self, method: str, path: str, body: str | None) -> tuple[int, bytes]:
        """The status and the body of the answer; ``path`` includes the mount path."""
        self._connection.request(
            method, path, body.encode() if body is not None else None, self._headers
        )
        response = self._connection.getresponse()
        return response.status, response.read()


def wait_until_answering(port: int, path: str, patience: float = 60.0) -> None:
    """Return when the server answers on this path, whatever it says."""
    end = time.monotonic() + patience
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        try:
            connection.request("GET", path)
            connection.getresponse().read()
            return
        except OSError:
            if time.monotonic() > end:
                raise BenchFailure(f"nothing answers on port {port}") from None
            time.sleep(0.1)
        finally:
            connection.close()


def create_all(
    open_client: Any, class_name: str, objects: Iterable[dict[str, Any]], connections: int = 4
) -> list[str]:
    """Create the objects through REST, 50 a batch; return their ids in the order of the objects."""

    def load(batch: list[dict[str, Any]]) -> list[str]:
        with open_client() as client:
            path = f"{client.mount}/classes/{class_name}"
            answer = client.send(
                "POST",
                "/batch",
                {"requests": [{"method": "POST", "path": path, "body": item} for item in batch]},
            )
        for result in answer:
            if "success" not in result:
                raise BenchFailure(f"an object of {class_name} was refused: {result}")
        return [result["success"]["objectId"] for result in answer]

    with ThreadPoolExecutor(connections) as pool:
        return [name for names in pool.map(load, _batches(objects, 50)) for name in names]


def _batches(items: Iterable[dict[str, Any]], size: int) -> Iterator[list[dict[str, Any]]]:
    batch: list[dict[str, Any]] = []
    for item in items:
        batch.append(item)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch
