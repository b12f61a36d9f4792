"""A running Parse Server, read over its REST API with the master key.

Its API never shows password hashes, to no key: ``sources.database`` and ``sources.folder`` have
them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from tempfile import SpooledTemporaryFile
from typing import Any, BinaryIO, Final, cast
from urllib.parse import quote, urlencode

from backend.kernel.json_types import Json
from backend.kernel.outgoing import Client, Stream, Unreachable, parts_of
from backend.operations.parse_import.formats import rest_objects
from backend.operations.parse_import.formats.definitions import (
    UNDECLARED,
    ClassDefinition,
    of_api,
)
from backend.operations.parse_import.formats.stored_objects import NESTED_TOO_DEEPLY, member_of
from backend.operations.parse_import.sources import json_values
from backend.operations.parse_import.sources.base import (
    BATCH,
    AppSettings,
    Batch,
    Members,
    Sized,
    SourceFailed,
    batches,
    definition_of,
    read_batch,
)

_TIMEOUT: Final = 300.0  # seconds for a response as a whole
_MOST_BYTES: Final = 256 * 1024 * 1024
_IN_MEMORY: Final = 1024 * 1024  # bytes of a response; the rest is in a file
_MOST_OF_AN_ERROR: Final = 64 * 1024
_MOST_OF_A_VALUE: Final = 8 * 1024 * 1024
"""Bytes of a response that isn't a list of objects."""
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
        self._headers = {
            "X-Parse-Application-Id": app_id,
            "X-Parse-Master-Key": master_key,
            "Accept": "application/json",
        }
        self._sleep = sleep
        self._client = Client()
        self.name = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"

    # -- Source -----------------------------------------------------------------------------------

    def classes(self) -> list[ClassDefinition]:
        with self._results("/schemas", "classes") as schemas:
            stored = [
                definition_of(of_api, schema.value, f"{self.name}/schemas: class {number}")
                for number, schema in enumerate(schemas, 1)
            ]
        undeclared = [definition for name, definition in UNDECLARED.items() if self._has(name)]
        return [*stored, *undeclared]

    def foreign(self) -> list[str]:
        return []  # what it returns is the Parse Server's alone

    def count(self, definition: ClassDefinition) -> int:
        query = {"where": _ALL_COUNTED, "limit": "0", "count": "1"}
        count = self._get(_path(definition.name, query)).get("count")
        if not isinstance(count, int):
            raise SourceFailed(f"{definition.name}: no number of objects in the response")
        return count

    def objects(self, definition: ClassDefinition, position: str) -> Iterator[Batch]:
        is_empty = False
        while not is_empty:
            where: dict[str, Json] = {"objectId": {"$gt": position}} if position else {}
            # A short page isn't the last one: Parse Server cuts ``limit`` to its ``maxLimit``.
            is_empty = True
            for rows in self._rows(definition.name, where, "objectId"):
                is_empty = False
                position = _advanced(position, str(rows[-1].get("objectId")), definition.name)
                yield read_batch(
                    position, ((str(row.get("objectId")), row) for row in rows), rest_objects.read
                )

    def members(self, definition: ClassDefinition, key: str, position: str) -> Iterator[Members]:
        table = f"_Join:{key}:{definition.name}"
        is_empty = False
        while not is_empty:
            where: dict[str, Json] = {}
            if position:
                owning_id, _, related_id = position.partition(" ")
                where = {
                    "$or": [
                        {"owningId": {"$gt": owning_id}},
                        {"owningId": owning_id, "relatedId": {"$gt": related_id}},
                    ]
                }
            is_empty = True
            for rows in self._rows(table, where, "owningId,relatedId"):
                is_empty = False
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
        self._client.close()

    def _has(self, class_name: str) -> bool:
        """Return whether the server has a class; old ones don't have all classes of Parse."""
        try:
            self._get(f"/schemas/{class_name}")
        except _Refused:
            return False
        return True

    # -- Requests ---------------------------------------------------------------------------------

    def _rows(
        self, class_name: str, where: Mapping[str, Json], order: str
    ) -> Iterator[list[dict[str, Any]]]:
        """Return the rows of a page, a few at a time."""
        query = {"where": json.dumps(where), "order": order, "limit": str(BATCH)}
        with self._results(_path(class_name, query), "objects") as values:
            for rows in batches(values):
                if not all(isinstance(row, dict) for row in rows):
                    raise SourceFailed(f"{class_name}: no list of objects in the response")
                yield rows

    @contextmanager
    def _results(self, path: str, items: str) -> Iterator[Iterator[Sized]]:
        place = f"{self.name}{path.partition('?')[0]}"
        with self._response(path) as body:
            results = json_values.results(body, place)
            if results is None:
                raise SourceFailed(f"{place}: no list of {items} in the response")
            yield results

    def _get(self, path: str) -> dict[str, Any]:
        response = self._value(path)
        if not isinstance(response, dict):
            raise SourceFailed(f"{path.partition('?')[0]}: expected an object in the response")
        return response

    def _list(self, path: str) -> list[dict[str, Any]]:
        response = self._value(path)
        return (
            [item for item in response if isinstance(item, dict)]
            if isinstance(response, list)
            else []
        )

    def _value(self, path: str) -> Any:
        with self._response(path) as body:
            text = body.read(_MOST_OF_A_VALUE + 1)
        if len(text) > _MOST_OF_A_VALUE:
            raise SourceFailed(f"{path.partition('?')[0]}: a response that is too large")
        return _decoded(text, path.partition("?")[0])

    @contextmanager
    def _response(self, path: str) -> Iterator[BinaryIO]:
        """Return the body of a response that isn't an error, in memory only as far as it is small.

        Raises ``SourceFailed`` when several attempts have failed.
        """
        place = path.partition("?")[0]
        failure = ""
        for pause in (0.0, *_PAUSES):
            if pause:
                self._sleep(pause)
            with SpooledTemporaryFile(_IN_MEMORY) as spooled:
                body = cast(BinaryIO, spooled)
                try:
                    status = self._fetch(path, body)
                except Unreachable as error:
                    failure = str(error)
                    continue
                if status == 429 or status >= 500:
                    failure = f"status {status}"
                    continue
                if status >= 400:
                    response = _decoded(body.read(_MOST_OF_AN_ERROR), place, status)
                    error_text = response.get("error") if isinstance(response, dict) else None
                    raise _Refused(f"{place}: status {status}, {str(error_text)[:200]}")
                yield body
                return
        raise SourceFailed(f"{self.name}{place}: {failure}")

    def _fetch(self, path: str, body: BinaryIO) -> int:
        """Write the body of a response to a file, and return its status."""
        with self._client.stream(
            "GET", f"{self.name}{path}", seconds=_TIMEOUT, headers=self._headers
        ) as response:
            _write(response, body)
        body.seek(0)
        return response.status


def _write(response: Stream, body: BinaryIO) -> None:
    for piece in response.pieces():
        if body.tell() + len(piece) > _MOST_BYTES:
            raise SourceFailed(f"a response of more than {_MOST_BYTES:,} bytes")
        body.write(piece)


def _path(class_name: str, query: Mapping[str, str]) -> str:
    return f"/classes/{quote(class_name)}?{urlencode(query)}"


def _advanced(position: str, end: str, class_name: str) -> str:
    """Return the position behind a page. Raises ``SourceFailed`` for the same page again."""
    if end == position:
        raise SourceFailed(f"{class_name}: the server returned the same objects twice")
    return end


def _decoded(body: bytes, place: str, status: int = 200) -> Any:
    try:
        return json.loads(body)
    except RecursionError:
        raise SourceFailed(f"{place}: {NESTED_TOO_DEEPLY}") from None
    except ValueError:
        raise SourceFailed(f"{place}: no JSON in the response (status {status})") from None
