"""Where imported objects go: through the door of this process, or over REST to any instance."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import urlsplit

from django.db import transaction

from backend.errors import (
    DuplicateValue,
    ObjectNotFound,
    OperationForbidden,
    ServiceError,
    UnderMaintenance,
)
from backend.principal import MASTER
from objects import maintenance, registry, service
from objects.core.names import ClassName, parse_object_id
from objects.core.values import Json


@dataclass(frozen=True, slots=True)
class NewObject:
    """An object to be stored. ``chosen`` says that its id was made for this import."""

    object_id: str
    chosen: bool
    fields: Mapping[str, Json]


class Unreachable(Exception):
    """The instance doesn't take any object at the moment."""


class Destination(Protocol):
    def store(self, objects: Sequence[NewObject], stop: bool) -> list[str | None]:
        """Store the objects; for each of them None, or why it was refused.

        With ``stop`` nothing is stored after the first one that is refused, and the list ends
        with it.
        """

    def close(self) -> None:
        """Nothing more is stored."""


class Door:
    """The door, as the master key. A batch is one transaction while nothing is refused.

    Raises ``UnderMaintenance``, unless ``during_maintenance`` says to store nevertheless.
    """

    def __init__(self, class_name: ClassName, *, during_maintenance: bool = False) -> None:
        self._class_name = class_name
        self._during_maintenance = during_maintenance

    def store(self, objects: Sequence[NewObject], stop: bool) -> list[str | None]:
        allowed = maintenance.own_records if self._during_maintenance else nullcontext
        with allowed():
            return self._store(objects, stop)

    def _store(self, objects: Sequence[NewObject], stop: bool) -> list[str | None]:
        try:
            with transaction.atomic():
                for obj in objects:
                    self._create(obj)
        except UnderMaintenance:
            registry.forget(self._class_name)
            raise
        except ServiceError:
            # What the transaction has added to the class is gone with it.
            registry.forget(self._class_name)
            return _each(objects, self._attempt, stop)
        return [None] * len(objects)

    def _create(self, obj: NewObject) -> None:
        service.create(MASTER, self._class_name, obj.fields, object_id=obj.object_id)

    def _attempt(self, obj: NewObject) -> str | None:
        try:
            with transaction.atomic():
                self._create(obj)
        except UnderMaintenance:
            raise
        except DuplicateValue as error:
            # Stored by the run before this one, which ended before it could note that.
            return None if obj.chosen and self._is_stored(obj.object_id) else str(error)
        except ServiceError as error:
            return str(error)
        return None

    def close(self) -> None:
        pass

    def _is_stored(self, object_id: str) -> bool:
        try:
            service.get(MASTER, self._class_name, parse_object_id(object_id))
        except ObjectNotFound:
            return False
        return True


class Rest:
    """The REST interface at ``url`` (with its mount path). The instance chooses the ids."""

    def __init__(self, class_name: ClassName, url: str, headers: Mapping[str, str]) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("expected a URL like https://api.example.org/api")
        self._mount = parts.path.rstrip("/")
        self._path = f"{self._mount}/classes/{class_name}"
        self._headers = {**headers, "Content-Type": "application/json"}
        self._connection = (
            http.client.HTTPSConnection(
                parts.hostname, parts.port, timeout=120, context=ssl.create_default_context()
            )
            if parts.scheme == "https"
            else http.client.HTTPConnection(parts.hostname, parts.port, timeout=120)
        )

    def store(self, objects: Sequence[NewObject], stop: bool) -> list[str | None]:
        answer = self._batch(objects, transaction=stop)
        if isinstance(answer, list):
            if all(_is_forbidden(part) for part in answer):
                # No right to the class, or maintenance mode: it isn't about the rows.
                raise Unreachable(f"the instance refuses all: {_error(answer[0]['error'])}")
            return [None if "success" in part else _error(part.get("error")) for part in answer]
        if not stop:
            raise Unreachable(f"the instance refuses the batch: {_error(answer)}")
        return _each(objects, self._attempt, stop)

    def _attempt(self, obj: NewObject) -> str | None:
        answer = self._batch([obj], transaction=False)
        part = answer[0] if isinstance(answer, list) else {"error": answer}
        return None if "success" in part else _error(part.get("error"))

    def _batch(self, objects: Sequence[NewObject], *, transaction: bool) -> Any:
        requests = [
            {"method": "POST", "path": self._path, "body": self._body(obj)} for obj in objects
        ]
        return self._send(json.dumps({"requests": requests, "transaction": transaction}))

    def close(self) -> None:
        self._connection.close()

    def _body(self, obj: NewObject) -> dict[str, Json]:
        return dict(obj.fields) if obj.chosen else {**obj.fields, "objectId": obj.object_id}

    def _send(self, body: str) -> Any:
        try:
            self._connection.request("POST", f"{self._mount}/batch", body.encode(), self._headers)
            return json.loads(self._connection.getresponse().read())
        except (OSError, http.client.HTTPException) as error:
            raise Unreachable(f"the instance can't be reached: {error}") from error
        except ValueError:
            raise Unreachable("the instance doesn't answer with JSON: is the URL right?") from None


def _each(
    objects: Sequence[NewObject], attempt: Callable[[NewObject], str | None], stop: bool
) -> list[str | None]:
    """Attempt one after the other, to the end or to the first refusal."""
    answers: list[str | None] = []
    for obj in objects:
        answers.append(attempt(obj))
        if stop and answers[-1] is not None:
            break
    return answers


def _is_forbidden(part: Any) -> bool:
    error = part.get("error")
    return isinstance(error, dict) and error.get("code") == OperationForbidden.code


def _error(answer: Any) -> str:
    return str(answer.get("error", answer)) if isinstance(answer, dict) else str(answer)[:200]
