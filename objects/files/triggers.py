"""What a deployment's own code says about files: triggers of ``@File``.

A handler sees
``{"name", "url", "size", "contentType", "metadata", "tags", "directory", "owner"}``. Before a file
is saved it may change ``metadata``, ``tags`` and ``directory`` or refuse the file; the bytes are in
storage only afterwards, so a trigger after the save examines content.
"""

from __future__ import annotations

from dataclasses import replace

from backend.kernel.errors import InvalidJSON
from backend.kernel.json_types import Wire
from backend.kernel.principal import CLIENT, Principal
from objects import triggers
from objects.core.query.tree import Everything, FindOptions
from objects.core.values import normalise, pointer
from objects.file_urls import file_url
from objects.files.names import check_directory, directory_of, in_directory
from objects.files.records import FileRecord
from objects.triggers import FILE, Event, Occasion

_ONE = FindOptions(where=Everything(), limit=1)


def before_save(principal: Principal, record: FileRecord) -> FileRecord:
    """The file as it is to be saved. Raises what a trigger raises."""
    if not triggers.has(FILE, "before_save"):
        return record
    returned = triggers.run(_occasion("before_save", principal, record)).object or {}
    name = record.name
    if "directory" in returned:
        directory = returned["directory"] or None
        name = in_directory(name, None if directory is None else check_directory(directory))
    return replace(
        record,
        name=name,
        metadata=_notes(returned, "metadata"),
        tags=_notes(returned, "tags"),
    )


def _notes(returned: Wire, name: str) -> Wire:
    value = normalise(returned.get(name) or {}, name)
    if not isinstance(value, dict):
        raise InvalidJSON(f"{name}: a trigger has put no object there")
    return value


def before_delete(principal: Principal, record: FileRecord) -> None:
    """Raises what a trigger raises to keep the file."""
    triggers.run(_occasion("before_delete", principal, record))


def done(event: Event, principal: Principal, record: FileRecord) -> None:
    """Tell triggers that a file is saved or removed."""
    if triggers.has(FILE, event):
        triggers.run_after_commit(_occasion(event, principal, record))


def before_reading(principal: Principal | None, record: FileRecord) -> None:
    """Raise what a trigger raises to refuse a file to a caller who may read it otherwise."""
    if not triggers.has(FILE, "before_find", "after_find"):
        return
    for event in ("before_find", "after_find"):
        occasion = _occasion(event, principal or CLIENT, record)
        triggers.run(replace(occasion, query=_ONE, is_get=True))


def _occasion(event: Event, principal: Principal, record: FileRecord) -> Occasion:
    return Occasion(event, FILE, principal, object=_wire(record))


def _wire(record: FileRecord) -> Wire:
    return {
        "name": record.name,
        "url": file_url(record.name),
        "size": record.size,
        "contentType": record.content_type,
        "metadata": dict(record.metadata),
        "tags": dict(record.tags),
        "directory": directory_of(record.name),
        "owner": None if record.owner_id is None else pointer("_User", record.owner_id),
    }
