"""Everything that happens to files, for a principal.

``upload``, ``open_file``, ``describe`` and ``delete`` check rights; their callers have only
decoded a request. The read-only master key reads all and writes nothing. In maintenance mode
nobody writes anything (``UnderMaintenance``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

import msgspec

from backend.kernel.errors import (
    FileDeleteFailed,
    FileSaveFailed,
    InvalidFileName,
    InvalidJSON,
    MasterKeyRequired,
    ObjectNotFound,
    OperationForbidden,
    ServiceUnavailable,
    UnderMaintenance,
)
from backend.kernel.json_types import Json
from backend.kernel.principal import EVERYBODY, Principal
from backend.kernel.texts.redaction import mask_text
from backend.logs.setup import get_logger
from backend.settings.conf import service_settings
from objects.core.access.acl import parse_acl
from objects.core.values import normalise
from objects.database import maintenance
from objects.file_urls import (
    Link,
    SignedUrl,
    file_url,
    has_expired,
    is_genuine,
    is_stored_name,
    signed_url,
)
from objects.files import quotas, records, storage, triggers
from objects.files.names import check_directory, check_name, new_stored_name
from objects.files.records import FileRecord
from objects.files.types import settled_type, with_extension
from objects.files.uploads import Upload
from objects.users.models import User

MAX_NOTES: Final = 16 * 1024
"""How many bytes of JSON the metadata and tags of a file may have."""

log = get_logger("files")


@dataclass(frozen=True, slots=True)
class Notes:
    """What an uploader says about a file: ``fileData``, checked."""

    metadata: Mapping[str, Json] = field(default_factory=dict)
    tags: Mapping[str, Json] = field(default_factory=dict)
    readers: frozenset[str] | None = None
    directory: Json = None
    """Not checked yet: who may say so matters first."""


def check_may_upload(principal: Principal) -> None:
    """Raise what keeps this caller from uploading, also before the body is read."""
    maintenance.check()
    if principal.is_master:
        if not principal.may_write_as_master:
            raise OperationForbidden("read-only masterKey isn't allowed to create a file.")
        return
    settings = service_settings
    refused = _refused(
        principal,
        public=settings.FILE_UPLOAD_PUBLIC,
        anonymous=settings.FILE_UPLOAD_ANONYMOUS,
        authenticated=settings.FILE_UPLOAD_AUTHENTICATED,
    )
    if refused:
        raise FileSaveFailed(f"File upload by {refused} is disabled.")


def check_room(principal: Principal) -> None:
    """Raise ``FileSaveFailed`` if the caller's storage quota is used up; before the body is read.

    ``upload`` itself compares the quota with the size of the file.
    """
    quotas.check_room(principal)


def _check_may_download(principal: Principal | None) -> None:
    """Raise ``OperationForbidden`` if the settings close all files to this kind of caller."""
    if principal is not None and principal.is_master:
        return
    settings = service_settings
    refused = _refused(
        principal,
        public=settings.FILE_DOWNLOAD_PUBLIC,
        anonymous=settings.FILE_DOWNLOAD_ANONYMOUS,
        authenticated=settings.FILE_DOWNLOAD_AUTHENTICATED,
    )
    if refused:
        raise OperationForbidden(f"File download by {refused} is disabled.", status=403)


def _refused(
    principal: Principal | None, *, public: bool, anonymous: bool, authenticated: bool
) -> str | None:
    """Return the kind of this caller if that kind isn't allowed, or None."""
    if principal is None or principal.user_id is None:
        return None if public else "public"
    # No user is looked up where both are allowed.
    if not (anonymous and authenticated) and _is_anonymous(principal.user_id):
        return None if anonymous else "anonymous user"
    return None if authenticated else "authenticated user"


def _is_anonymous(user_id: str) -> bool:
    return User.objects.filter(object_id=user_id, auth_data__has_key="anonymous").exists()


def read_notes(body: Json) -> Notes:
    """``{"metadata": {…}, "tags": {…}, "acl": {…}, "directory": …}`` as a client sent it.

    Raises ``InvalidJSON``, ``InvalidACL`` and what ``values.normalise`` raises.
    """
    if body is None:
        return Notes()
    if not isinstance(body, dict):
        raise InvalidJSON("fileData: expected an object")
    notes: dict[str, dict[str, Json]] = {}
    for name in ("metadata", "tags"):
        value = normalise(body.get(name) or {}, f"fileData.{name}")
        if not isinstance(value, dict) or "__type" in value:
            raise InvalidJSON(f"fileData.{name}: expected an object")
        notes[name] = value
    if len(msgspec.json.encode(notes)) > MAX_NOTES:
        raise InvalidJSON(f"fileData: metadata and tags have at most {MAX_NOTES} bytes")
    ids = parse_acl(body.get("acl"), "fileData.acl").read_ids
    readers = None if ids is None or EVERYBODY in ids else frozenset(ids)
    return Notes(notes["metadata"], notes["tags"], readers, body.get("directory"))


def upload(
    principal: Principal, name: str, upload: Upload, declared_type: str | None, notes: Notes
) -> FileRecord:
    """Store what has come in as a new file.

    Raises ``InvalidFileName``, ``FileSaveFailed`` (an empty file, a type that isn't taken, a
    quota without room for it, a storage that fails), ``OperationForbidden`` for a directory without
    the master key, and what ``check_may_upload`` raises; nothing is stored then.
    """
    check_may_upload(principal)
    directory = None
    if notes.directory is not None:
        if not principal.may_write_as_master:
            raise OperationForbidden("Directory can only be set using the Master Key.")
        directory = check_directory(notes.directory)
    check_name(name)
    if not upload.size:
        raise FileSaveFailed("Invalid file upload.")
    content_type = settled_type(name, declared_type, upload.head)
    record = FileRecord(
        name=new_stored_name(with_extension(name, declared_type), directory),
        size=upload.size,
        content_type=content_type,
        sha256=upload.sha256,
        metadata=notes.metadata,
        tags=notes.tags,
        owner_id=principal.user_id,
        readers=notes.readers,
        charged_to=quotas.account_of(principal),
    )
    record = triggers.before_save(principal, record)
    with maintenance.storing():
        _store(record, upload, name)
    triggers.done("after_save", principal, record)
    return record


def transfer(name: str, upload: Upload, declared_type: str | None) -> bool:
    """Store a file of another server under the name that it has there; False if it is stored.

    It is public and has no owner. Raises ``InvalidFileName`` and what ``upload`` raises.
    """
    if not is_stored_name(name):
        raise InvalidFileName("Filename contains invalid characters.")
    if records.find(name) is not None:
        return False
    record = FileRecord(
        name=name,
        size=upload.size,
        content_type=settled_type(name, declared_type, upload.head),
        sha256=upload.sha256,
    )
    with maintenance.storing():
        _store(record, upload, name)
    return True


def _store(record: FileRecord, upload: Upload, name: str) -> None:
    # The row first: bytes that no row knows of would never be found again.
    quotas.add(record)
    try:
        storage.save(record.name, upload.content(record.content_type))
        if not records.complete(record.name):
            raise TimeoutError("its row was removed as a left-over meanwhile")
    except Exception as error:
        log.error("a file can't be stored", name=record.name, exc_info=error)
        with suppress(Exception):
            storage.delete(record.name)
            records.remove(record.name)
        raise FileSaveFailed(f"Could not store file: {name}.") from error


def open_file(principal: Principal | None, name: str, link: Link | None) -> FileRecord:
    """The file of this name, for a caller who may read its content.

    ``principal`` is None for a request without credentials. A private file is opened by a signed
    link, by the master key, and by a caller whom its access list names; for others it is as if it
    weren't there. Raises ``ObjectNotFound``, and ``OperationForbidden`` (403) for a link that was
    good once, and for callers to whom the settings close all files.
    """
    record = records.find(name) if is_stored_name(name) else None
    if record is None:
        raise missing()
    if record.readers is None or (principal is not None and _may_read(principal, record)):
        _check_may_download(principal)
    elif link is None or not is_genuine(name, link):
        raise missing()
    elif has_expired(link):
        raise OperationForbidden("The link to this file has expired.", status=403)
    triggers.before_reading(principal, record)
    return record


def is_public(record: FileRecord) -> bool:
    """Whether everybody may read a file, so that caches may store it."""
    return record.readers is None and service_settings.FILE_DOWNLOAD_PUBLIC


def content(record: FileRecord, start: int, length: int) -> Iterator[bytes]:
    """So many bytes of a file that ``open_file`` has given. Raises ``ObjectNotFound``, and
    ``ServiceUnavailable`` when the storage fails."""
    try:
        pieces = storage.read(record.name, start, length, size=record.size)
    except Exception as error:  # storages have errors of their own
        reason = mask_text(f"{type(error).__name__}: {error}")
        log.error("a file can't be read", name=record.name, reason=reason)
        raise ServiceUnavailable("The file can't be read at the moment.") from error
    if pieces is None:
        raise missing()
    return pieces


def describe(principal: Principal | None, name: str) -> tuple[FileRecord, SignedUrl | None]:
    """What is known about a file, and for a private one a link that opens it.

    ``principal`` is as for ``open_file``. For callers who may read the file; a link alone is not
    enough. Raises what ``open_file`` raises.
    """
    record = open_file(principal, name, None)
    return record, None if record.readers is None else signed_url(name)


def delete(principal: Principal, name: str) -> None:
    """Remove a file. Raises ``MasterKeyRequired``, ``OperationForbidden`` for the read-only master
    key, ``FileDeleteFailed`` when there is no such file or the storage fails."""
    maintenance.check()
    if not principal.is_master:
        raise MasterKeyRequired
    if not principal.may_write_as_master:
        raise OperationForbidden("read-only masterKey isn't allowed to delete a file.")
    record = records.find(name) if is_stored_name(name) else None
    if record is None:
        raise FileDeleteFailed("Could not delete file.")
    triggers.before_delete(principal, record)
    remove(name)
    triggers.done("after_delete", principal, record)


def remove(name: str, *, is_left_over: bool = False) -> None:
    """Remove a file without checking rights; ``is_left_over`` if its bytes aren't complete.

    Raises ``FileDeleteFailed`` when the storage fails. The file is still there then.
    """
    with maintenance.storing():
        # First, so that what a process that dies here leaves is removed like a broken upload.
        records.begin_removal(name)
        try:
            storage.delete(name)
        except Exception as error:
            if not is_left_over:
                records.complete(name)
            log.error("a file can't be deleted", name=name, exc_info=error)
            raise FileDeleteFailed("Could not delete file.") from error
        records.remove(name)


def remove_unfinished(limit: int = 1000) -> int:
    """Remove what died processes left of uploads and removals; the number of files.

    A storage that fails is logged, and left for the next time. In maintenance mode it does nothing.
    """
    removed = 0
    for name in records.unfinished(limit):
        try:
            remove(name, is_left_over=True)
        except UnderMaintenance:
            return removed
        except FileDeleteFailed:
            continue
        removed += 1
    return removed


def missing() -> ObjectNotFound:
    """The one answer for files that aren't there and files that the caller may not know of."""
    return ObjectNotFound("File not found.")


def address(record: FileRecord) -> str:
    """Where a file is; a private one needs more than this."""
    return file_url(record.name)


def _may_read(principal: Principal, record: FileRecord) -> bool:
    return principal.is_master or (
        record.readers is not None and not record.readers.isdisjoint(principal.acl_ids)
    )
