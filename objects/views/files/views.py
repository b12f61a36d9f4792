"""``/files/NAME``: uploads, and removal by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, NotRequired, TypeAlias, TypedDict

from django.http import HttpRequest, HttpResponse
from msgspec import Meta

from backend.http import authentication, rate_limits
from backend.http.authentication import Credentials
from backend.http.bodies import parsers
from backend.http.call import Call
from backend.http.exceptions import error_response
from backend.http.headers import header_names, read_header
from backend.http.permissions import Requires, check_route
from backend.http.renderers import Answer, render
from backend.http.views import MethodNotAllowed, ServiceView
from backend.kernel.errors import FileSaveFailed, InvalidFileName
from backend.kernel.json_types import Json
from backend.kernel.principal import Principal
from backend.openapi import JSON_TEXT, LOCATION, Body, Uri, answer, describes
from backend.settings.conf import service_settings
from objects.files import service
from objects.files.names import check_name
from objects.files.records import FileRecord
from objects.files.uploads import Upload
from objects.views.bodies import AccessList, EmptyAnswer
from objects.views.files.removals import deleted, once, removed
from objects.views.files.uploads import json_upload, receive_form, receive_raw

# The parts of ``fileData``, for bodies that are the file itself; a directory is no JSON.
_NOTE_HEADERS = {part: header_names(f"FILE_{part.upper()}") for part in ("metadata", "tags", "acl")}
_DIRECTORY_HEADER = header_names("FILE_DIRECTORY")
_Binary: TypeAlias = Annotated[str, Meta(extra_json_schema={"format": "binary"})]
_NOTE_PARAMETERS = tuple(
    {"name": f"X-Svc-File-{name}", "in": "header", "description": description, "schema": schema}
    for name, description, schema in (
        ("Metadata", "What to store about the file, as JSON.", JSON_TEXT),
        ("Tags", "Tags, as JSON.", JSON_TEXT),
        ("ACL", "Who may read the file, as JSON.", JSON_TEXT),
        ("Directory", "Where the master key puts it, such as `a/b`.", {"type": "string"}),
    )
)


class StoredFile(TypedDict):
    name: str
    url: Uri


class FileNotes(TypedDict, total=False):
    metadata: dict[str, Any]
    tags: dict[str, Any]
    acl: AccessList
    directory: str


class FileForm(TypedDict):
    file: _Binary
    fileData: NotRequired[FileNotes]


class FileView(ServiceView):
    """A name: upload a file under it (POST), remove the file that has it (DELETE).

    As with Parse, a request that names its application in a header has the file as its body, or a
    form with the file; any other is JSON, with credentials and the file in base64. Items of a batch
    can do neither: storage takes no part in transactions.
    """

    tag = "Files"

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        handlers = {"POST": self._uploaded, "DELETE": self._removed}
        try:
            handler = handlers.get(request.method or "")
            if handler is None:
                # The body isn't parsed: it may be a file, whose type says nothing here.
                raise MethodNotAllowed(request.method or "", self._methods())
            response = render(handler(request, kwargs["name"]))
        except Exception as error:
            response = error_response(error, request)
        return rate_limits.stamped(response, request)

    def _methods(self) -> tuple[str, ...]:
        return ("POST", "DELETE")

    @describes(
        "removeFile",
        "Remove a file",
        response=answer("The file was removed.", EmptyAnswer),
        requires=Requires.MASTER_KEY,
        method="delete",
    )
    def _removed(self, request: HttpRequest, name: str) -> Answer:
        return removed(request, name)

    @describes(
        "uploadFile",
        "Upload a file",
        parameters=_NOTE_PARAMETERS,
        request=Body({"application/octet-stream": _Binary, "multipart/form-data": FileForm}),
        response=answer("The file.", StoredFile, 201, LOCATION),
        description="The body is the file, of whatever type, or a form with one file.",
        method="post",
    )
    def _uploaded(self, request: HttpRequest, name: str) -> Answer:
        credentials = authentication.of_request(request.META)
        if credentials.application_id is None:
            return self._from_json(request, name)
        principal, _, _ = rate_limits.admitted(request, credentials, "POST")
        _check_may_upload(principal, name)
        media_type = request.META.get("CONTENT_TYPE", "")
        notes: Json = _notes_in_headers(request.META)
        with Upload(service_settings.MAX_UPLOAD_SIZE) as upload:
            if parsers.media_type(request.META) == "multipart/form-data":
                media_type, metadata = receive_form(request, upload)
                notes = metadata if metadata is not None else notes
            else:
                receive_raw(request, upload)
            return _stored_once(request, principal, name, upload, media_type, notes)

    def _from_json(self, request: HttpRequest, name: str) -> Answer:
        with json_upload(request) as body:
            fields = body.fields
            media_type, method = fields.get("_ContentType"), fields.get("_method", "POST")
            credentials = authentication.take_from_body(fields, Credentials())
            if method == "DELETE":
                principal, _, _ = rate_limits.admitted(request, credentials, "DELETE", fields)
                call = Call(principal, "DELETE", {}, {}, "-")
                return once(request, call, lambda: deleted(principal, name))
            if method != "POST":
                raise MethodNotAllowed(str(method)[:10], self._methods())
            principal, _, _ = rate_limits.admitted(request, credentials, "POST", fields)
            _check_may_upload(principal, name)
            if media_type is not None and not isinstance(media_type, str):
                raise FileSaveFailed("Invalid file upload. _ContentType: expected a string.")
            with Upload(service_settings.MAX_UPLOAD_SIZE) as upload:
                body.receive(upload)
                notes: Json = fields.get("fileData")
                return _stored_once(request, principal, name, upload, media_type, notes)


class NamelessFileView(ServiceView):
    """Where a name is missing."""

    tag = "Files"

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if request.method != "POST":
            return super().dispatch(request, *args, **kwargs)
        return self._refused(request)

    @describes(
        "uploadNamelessFile", "Always refused: a file needs a name", response=(), method="post"
    )
    def _refused(self, request: HttpRequest) -> HttpResponse:
        return error_response(InvalidFileName("Filename not provided."), request)

    def _methods(self) -> tuple[str, ...]:
        return ("POST",)


def _check_may_upload(principal: Principal, name: str) -> None:
    check_route(Requires.CLIENT_KEY, principal)
    service.check_may_upload(principal)
    check_name(name)
    service.check_room(principal)


def _stored_once(
    request: HttpRequest,
    principal: Principal,
    name: str,
    upload: Upload,
    media_type: str | None,
    notes: Json,
) -> Answer:
    call = Call(principal, "POST", {}, {"type": media_type, "notes": notes}, "-")
    return once(
        request, call, lambda: _stored(principal, name, upload, media_type, notes), upload.sha256
    )


def _stored(
    principal: Principal, name: str, upload: Upload, media_type: str | None, notes: Json
) -> Answer:
    record: FileRecord = service.upload(
        principal, name, upload, media_type, service.read_notes(notes)
    )
    url = service.address(record)
    return Answer({"url": url, "name": record.name}, status=201, headers={"Location": url})


def _notes_in_headers(meta: Mapping[str, Any]) -> dict[str, Json]:
    notes: dict[str, Json] = {}
    for part, names in _NOTE_HEADERS.items():
        text = read_header(meta, names)
        if text is not None:
            notes[part] = parsers.decode_json(text.encode("latin-1", "replace"), part)
    directory = read_header(meta, _DIRECTORY_HEADER)
    return {**notes, "directory": directory} if directory else notes
