"""A running Parse Server, read over its REST API with the master key.

Its API never shows password hashes, to no key: ``sources.database`` and ``sources.folder`` have
them.
"""

from __future__ import annotations

import http.client
import json
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote, urlencode

from backend.kernel.json_types import Json
from backend.kernel.outgoing import parts_of
from backend.operations.parse_import.formats import rest_objects
from backend.operations.parse_import.formats.definitions import (
    UNDECLARED,
    ClassDefinition,
    of_api,
)
from backend.operations.parse_import.formats.stored_objects import NESTED_TOO_DEEPLY, member_of
from backend.operations.parse_import.sources.base import (
    BATCH,
    AppSettings,
    Batch,
    Members,
    SourceFailed,
    read_batch,
)

_TIMEOUT: Final = 60.0  # seconds for one read from the connection
_MOST_BYTES: Final = 256 * 1024 * 1024
_PAUSES: Final = (0.5, 2.0, 5.0, 15.0, 30.0)
"""Seconds before a request that failed is repeated; all of them only read."""
_ALL_COUNTED: Final = json.dumps({"objectId": {"$exists": True}})
"""A condition that all objects meet: without any, Parse Server returns an estimate."""


class _Refused(SourceFailed):
    """The server answered a request with an error."""


class RestServer:
    """The API at ``url`` (with its mount path, ``https://api.example.org/parse``)."""

    has_password_hashes = False

    def __init__(
        self,
        url: str,
        app_id: str,
        master_key: str,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        parts = parts_of(url)
        if parts is None or parts.scheme not in ("http", "https") or parts.query:
            raise SourceFailed("expected a URL like https://api.example.org/parse")
        self._host, self._port = parts.hostname, parts.port
        self._mount = parts.path.rstrip("/")
        self._is_encrypted = parts.scheme == "https"
        self._headers = {
            "X-Parse-Application-Id": app_id,
            "X-Parse-Master-Key": master_key,
            "Accept": "application/json",
        }
        self._sleep = sleep
        self._connection: http.client.HTTPConnection | None = None
        self.name = f"{parts.scheme}://{parts.netloc}{self._mount}"

    # -- Source -----------------------------------------------------------------------------------

    def classes(self) -> list[ClassDefinition]:
        schemas = self._get("/schemas").get("results")
        if not isinstance(schemas, list):
            raise SourceFailed(f"{self.name}/schemas: no list of classes in the response")
        undeclared = [definition for name, definition in UNDECLARED.items() if self._has(name)]
        return [*map(of_api, schemas), *undeclared]

    def foreign(self) -> list[str]:
        return []  # what it returns is the Parse Server's alone

    def count(self, definition: ClassDefinition) -> int:
        query = {"where": _ALL_COUNTED, "limit": "0", "count": "1"}
        count = self._find(definition.name, query).get("count")
        if not isinstance(count, int):
            raise SourceFailed(f"{definition.name}: no number of objects in the response")
        return count

    def objects(self, definition: ClassDefinition, position: str) -> Iterator[Batch]:
        while True:
            where: dict[str, Json] = {"objectId": {"$gt": position}} if position else {}
            rows = self._rows(definition.name, where, "objectId")
            # A short page isn't the last one: Parse Server cuts ``limit`` to its ``maxLimit``.
            if not rows:
                return
            position = _advanced(position, str(rows[-1].get("objectId")), definition.name)
            yield read_batch(
                position, ((str(row.get("objectId")), row) for row in rows), rest_objects.read
            )

    def members(self, definition: ClassDefinition, key: str, position: str) -> Iterator[Members]:
        table = f"_Join:{key}:{definition.name}"
        while True:
            where: dict[str, Json] = {}
            if position:
                owning_id, _, related_id = position.partition(" ")
                where = {
                    "$or": [
                        {"owningId": {"$gt": owning_id}},
                        {"owningId": owning_id, "relatedId": {"$gt": related_id}},
                    ]
                }
            rows = self._rows(table, where, "owningId,relatedId")
            if not rows:
                return
            members = [member_of(row) for row in rows]
            position = _advanced(position, " ".join(members[-1]), table)
            yield Members(position, members)

    def settings(self) -> AppSettings:
        config = self._get("/config")
        hooks = [*self._list("/hooks/functions"), *self._list("/hooks/triggers")]
        return AppSettings(
            {
                "params": config.get("params") or {},
                "masterKeyOnly": config.get("masterKeyOnly") or {},
            },
            [hook for hook in hooks if hook.get("url")],  # those without are functions of its own
        )

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _has(self, class_name: str) -> bool:
        """Return whether the server has a class; old ones don't have all classes of Parse."""
        try:
            self._get(f"/schemas/{class_name}")
        except _Refused:
            return False
        return True

    # -- Requests ---------------------------------------------------------------------------------

    def _rows(self, class_name: str, where: Mapping[str, Json], order: str) -> list[dict[str, Any]]:
        query = {"where": json.dumps(where), "order": order, "limit": str(BATCH)}
        rows = self._find(class_name, query).get("results")
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise SourceFailed(f"{class_name}: no list of objects in the response")
        return rows

    def _find(self, class_name: str, query: Mapping[str, str]) -> dict[str, Any]:
        return self._get(f"/classes/{quote(class_name)}?{urlencode(query)}")

    def _get(self, path: str) -> dict[str, Any]:
        response = self._read(path)
        if not isinstance(response, dict):
            raise SourceFailed(f"{path.partition('?')[0]}: expected an object in the response")
        return response

    def _list(self, path: str) -> list[dict[str, Any]]:
        response = self._read(path)
        return (
            [item for item in response if isinstance(item, dict)]
            if isinstance(response, list)
            else []
        )

    def _read(self, path: str) -> Any:
        place = path.partition("?")[0]
        failure = ""
        for pause in (0.0, *_PAUSES):
            if pause:
                self._sleep(pause)
            try:
                status, body = self._request(path)
            except (OSError, http.client.HTTPException) as error:
                self.close()
                failure = f"{type(error).__name__}: {error}"
                continue
            if status == 429 or status >= 500:
                failure = f"status {status}"
                continue
            return _decoded(status, body, place)
        raise SourceFailed(f"{self.name}{place}: {failure}")

    def _request(self, path: str) -> tuple[int, bytes]:
        if self._connection is None:
            self._connection = self._connect()
        self._connection.request("GET", f"{self._mount}{path}", headers=self._headers)
        response = self._connection.getresponse()
        body = response.read(_MOST_BYTES + 1)
        if len(body) > _MOST_BYTES:
            raise SourceFailed(f"a response of more than {_MOST_BYTES:,} bytes")
        return response.status, body

    def _connect(self) -> http.client.HTTPConnection:
        assert self._host is not None
        if self._is_encrypted:
            return http.client.HTTPSConnection(
                self._host, self._port, timeout=_TIMEOUT, context=ssl.create_default_context()
            )
        return http.client.HTTPConnection(self._host, self._port, timeout=_TIMEOUT)


def _advanced(position: str, end: str, class_name: str) -> str:
    """Return the position behind a page. Raises ``SourceFailed`` for the same page again."""
    if end == position:
        raise SourceFailed(f"{class_name}: the server returned the same objects twice")
    return end


def _decoded(status: int, body: bytes, place: str) -> Any:
    try:
        response = json.loads(body)
    except RecursionError:
        raise SourceFailed(f"{place}: {NESTED_TOO_DEEPLY}") from None
    except ValueError:
        raise SourceFailed(f"{place}: no JSON in the response (status {status})") from None
    if status >= 400:
        error = response.get("error") if isinstance(response, dict) else None
        raise _Refused(f"{place}: status {status}, {str(error)[:200]}")
    return response
