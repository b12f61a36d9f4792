"""Where imported objects go: into this instance's database, or over REST to any instance."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, Final, Protocol, TypeAlias
from urllib.parse import urlsplit

from django.db import transaction

from backend.kernel import outgoing
from backend.kernel.errors import (
    DuplicateValue,
    ObjectNotFound,
    OperationForbidden,
    ServiceError,
    ServiceUnavailable,
    UnderMaintenance,
)
from backend.kernel.json_types import Json
from backend.kernel.principal import MASTER
from objects import service
from objects.core.names import ClassName, parse_object_id
from objects.core.schema.definition import ClassSchema
from objects.database import maintenance
from objects.database.transactions import all_or_nothing
from objects.definitions import registry
from objects.service import bulk
from objects.service.bulk import NewObject, NotTogether, Prepared
from objects.service.stale_definitions import with_current_classes

_TIMEOUT: Final = 120.0  # seconds for a batch
_LARGEST_RESPONSE: Final = 64 * 1024 * 1024  # bytes
_ABOUT_ALL: Final = (UnderMaintenance, ServiceUnavailable)
"""Errors that no object is refused for: the next one would get them as well."""


class Unreachable(Exception):
    """The instance doesn't take any object at the moment."""


Answers: TypeAlias = list[str | None]
"""For each object None, or why it was refused."""

Note: TypeAlias = Callable[[Sequence[str | None]], None]
"""Called with the answers in the transaction that stores the objects."""


class Destination(Protocol):
    def prepare(self, objects: Sequence[NewObject]) -> Prepared | None:
        """Do what can be done before the objects are stored, in another thread."""

    def store(
        self, objects: Sequence[NewObject], prepared: Prepared | None, stop: bool, note: Note
    ) -> Answers:
        """Store the objects, and call ``note`` where they are committed together with it.

        With ``stop`` nothing is stored after the first one that is refused, and the answers end
        with it.
        """

    def close(self) -> None:
        """Nothing more is stored."""


class Database:
    """This instance's database, through the object service, as the master key.

    Objects of generic classes are stored in bulk: a batch is one transaction. Those of classes with
    rules or triggers, and of models, are stored one by one, in one transaction while nothing is
    refused. Raises ``UnderMaintenance``, unless ``during_maintenance`` says to store nevertheless,
    and what else keeps every object from being stored.
    """

    def __init__(self, class_name: ClassName, *, during_maintenance: bool = False) -> None:
        self._class_name = class_name
        self._during_maintenance = during_maintenance
        self.in_bulk = bulk.serves(class_name)
        # Objects are prepared for it in another thread, which never asks the database.
        self._schema = bulk.schema_of(class_name)

    def prepare(self, objects: Sequence[NewObject]) -> Prepared | None:
        if not self.in_bulk:
            return None
        prepared = bulk.prepare(self._schema, objects)
        if prepared.grown is not prepared.schema:
            self._schema = prepared.grown
        return prepared

    def store(
        self, objects: Sequence[NewObject], prepared: Prepared | None, stop: bool, note: Note
    ) -> Answers:
        allowed = maintenance.own_records if self._during_maintenance else nullcontext
        with allowed():
            if self.in_bulk:
                try:
                    return self._store_in_bulk(objects, prepared, stop, note)
                except NotTogether:
                    # The class has triggers by now, or what it was to be given isn't in it.
                    self.in_bulk = bulk.serves(self._class_name)
            answers = self._store_each(objects, stop, note)
            self._schema = bulk.schema_of(self._class_name)
            return answers

    def _store_in_bulk(
        self, objects: Sequence[NewObject], prepared: Prepared | None, stop: bool, note: Note
    ) -> Answers:
        def stored() -> tuple[Answers, ClassSchema]:
            with transaction.atomic():
                outcomes, schema = bulk.create(self._class_name, objects, prepared, stop=stop)
                answers = [None if error is None else str(error) for error in outcomes]
                note(answers)
            return answers, schema

        try:
            answers, schema = all_or_nothing(lambda: with_current_classes(stored))
        except BaseException:
            # The rollback has also removed what the transaction added to the class.
            registry.forget(self._class_name)
            raise
        if prepared is None or schema != prepared.grown:
            self._schema = schema
        return answers

    def _store_each(self, objects: Sequence[NewObject], stop: bool, note: Note) -> Answers:
        try:
            with transaction.atomic():
                for obj in objects:
                    self._create(obj)
                answers: Answers = [None] * len(objects)
                note(answers)
        except _ABOUT_ALL:
            registry.forget(self._class_name)
            raise
        except ServiceError:
            registry.forget(self._class_name)
            answers = _each(objects, self._attempt, stop)
            note(answers)
        return answers

    def _create(self, obj: NewObject) -> None:
        service.create(MASTER, self._class_name, obj.fields, object_id=obj.object_id)

    def _attempt(self, obj: NewObject) -> str | None:
        try:
            with transaction.atomic():
                self._create(obj)
        except _ABOUT_ALL:
            raise
        except DuplicateValue as error:
            # Stored by the run before this one, which ended before it could note that.
            return None if obj.has_generated_id and self._is_stored(obj.object_id) else str(error)
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
        mount = parts.path.rstrip("/")
        self._path = f"{mount}/classes/{class_name}"
        self._url = f"{parts.scheme}://{parts.netloc}{mount}/batch"
        self._headers = {**headers, "Content-Type": "application/json"}
        self._client = outgoing.Client()

    def prepare(self, objects: Sequence[NewObject]) -> Prepared | None:
        return None

    def store(
        self, objects: Sequence[NewObject], prepared: Prepared | None, stop: bool, note: Note
    ) -> Answers:
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
        self._client.close()

    def _body(self, obj: NewObject) -> dict[str, Json]:
        return (
            dict(obj.fields) if obj.has_generated_id else {**obj.fields, "objectId": obj.object_id}
        )

    def _send(self, body: str) -> Any:
        try:
            response = self._client.request(
                "POST",
                self._url,
                body=body.encode(),
                headers=self._headers,
                seconds=_TIMEOUT,
                most=_LARGEST_RESPONSE,
            )
            return json.loads(response.body)
        except outgoing.Unreachable as error:
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
