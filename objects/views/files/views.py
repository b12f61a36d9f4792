"""``/files``: uploads, downloads, what is known about a file, removal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, NotRequired, TypeAlias, TypedDict

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from msgspec import Meta

from backend.http import authentication, idempotency, rate_limits
from backend.http.authentication import Credentials
from backend.http.bodies import parsers
from backend.http.call import Call
from backend.http.context import client_address
from backend.http.edge import file_host
from backend.http.exceptions import error_response
from backend.http.idempotency import Keeping
from backend.http.permissions import Requires, check_route
from backend.http.renderers import Answer, render
from backend.http.views import MethodNotAllowed, ServiceView, read_call
from backend.kernel.errors import (
    FileSaveFailed,
    InvalidFileName,
    ObjectNotFound,
    OperationForbidden,
)
from backend.kernel.json_types import Json
from backend.kernel.principal import APPLICATION, Authority, Principal
from backend.kernel.request_context import current
from backend.openapi import (
    JSON_TEXT,
    LOCATION,
    Body,
    DateTime,
    Response,
    Uri,
    answer,
    describes,
    query,
)
from backend.settings.conf import service_settings
from objects.core.values import wire_time
from objects.file_urls import EXPIRES, SIGNATURE, Link, file_url, is_stored_name
from objects.files import service
from objects.files.delivery import check_destination
from objects.files.names import check_name
from objects.files.records import FileRecord
from objects.files.uploads import Upload
from objects.views.bodies import AccessList, EmptyAnswer
from objects.views.files.responses import file_answer
from objects.views.files.uploads import json_upload, receive_form, receive_raw

# The parts of ``fileData``, for bodies that are the file itself; a directory is no JSON.
_NOTE_HEADERS = {"metadata": "FILE_METADATA", "tags": "FILE_TAGS", "acl": "FILE_ACL"}
_DIRECTORY_HEADER = "FILE_DIRECTORY"
_Binary: TypeAlias = Annotated[str, Meta(extra_json_schema={"format": "binary"})]
# Of any type; generators of clients support this one.
_CONTENT = Body({"application/octet-stream": _Binary, "*/*": _Binary})
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


class FileDescription(TypedDict, total=False):
    name: str
    url: Uri
    size: int
    contentType: str
    createdAt: DateTime
    metadata: dict[str, Any]
    tags: dict[str, Any]
    expiresAt: Annotated[DateTime, Meta(description="Of a private file: how long `url` opens it.")]


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
        return _removed(request, name)

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
                return _once(request, call, lambda: _deleted(principal, name))
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


class StoredFileView(ServiceView):
    """A stored file: its content, with or without credentials. To remove a file that is in a
    directory, the same route has the directory where the application's id is."""

    tag = "Files"
    requires = Requires.APPLICATION
    serves_files = True

    def dispatch(  # type: ignore[override]
        self, request: HttpRequest, *args: Any, **kwargs: Any
    ) -> HttpResponseBase:
        if request.method == "POST":
            # An upload: the JavaScript SDK doesn't encode a slash in a name.
            text = "Filename contains invalid characters. It has a slash."
            refusal = error_response(InvalidFileName(text, status=405), request)
            refusal.headers["Allow"] = "GET, HEAD, DELETE"
            return refusal
        if request.method not in self._methods():
            return super().dispatch(request, *args, **kwargs)
        try:
            response: HttpResponseBase
            if request.method == "DELETE":
                response = render(self._removed_from_directory(request, **kwargs))
            else:
                response = self._content(request, **kwargs)
        except Exception as error:
            response = error_response(error, request)
        return rate_limits.stamped(response, request)  # type: ignore[arg-type]

    @describes(
        "downloadFile",
        "The content of a file",
        parameters=(
            query("expires", {"type": "string"}, "Of a signed address."),
            query("signature", {"type": "string"}, "Of a signed address."),
        ),
        response=(
            Response(200, "The file.", _CONTENT),
            Response(206, "The requested range.", _CONTENT),
            Response(304, "It is what you have."),
        ),
        errors=(Response(416, "The file has no such range."),),
        description="Private files need a session, a master key or a signed address.",
        is_public=True,
        method="get",
    )
    def _content(self, request: HttpRequest, app_id: str, name: str) -> HttpResponseBase:
        _check_application(app_id)
        principal = _reader(request)
        check_destination(request.META)
        if service_settings.FILE_HOST and not file_host.is_for_files(request.META):
            return _moved(request, name)
        link = _link(parsers.read_query(request))
        record = service.open_file(principal, name, link)
        return file_answer(record, request.method or "", request.META)

    @describes(
        "removeFileInDirectory",
        "Remove a file that is in a directory",
        response=answer("The file was removed.", EmptyAnswer),
        description="The path is `/files/` and the file's name, whose first word is `appId` here.",
        requires=Requires.MASTER_KEY,
        method="delete",
    )
    def _removed_from_directory(self, request: HttpRequest, app_id: str, name: str) -> Answer:
        if file_host.is_for_files(request.META):
            raise file_host.nothing_else()
        return _removed(request, f"{app_id}/{name}")

    def _methods(self) -> tuple[str, ...]:
        return ("GET", "HEAD", "DELETE")


class FileMetadataView(ServiceView):
    """What is known about a file, for callers who may read it, with or without credentials.

    As with Parse, the answer is an empty object where there is nothing to describe.
    """

    tag = "Files"
    requires = Requires.APPLICATION

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        app_id, name = kwargs["app_id"], kwargs["name"]
        # Also the place of a file in a directory such as "a/metadata".
        stored_name = f"{app_id}/metadata/{name}"
        is_removal = request.method == "DELETE" and is_stored_name(stored_name)
        if request.method != "GET" and not is_removal:
            return super().dispatch(request, *args, **kwargs)
        try:
            response = render(
                _removed(request, stored_name)
                if is_removal
                else self._description(request, app_id, name)
            )
        except Exception as error:
            response = error_response(error, request)
        return rate_limits.stamped(response, request)

    @describes(
        "describeFile",
        "What is known about a file",
        response=answer("The metadata and tags of the file.", FileDescription),
        description="An empty object for a file that isn't there, or that the caller may not read.",
        is_public=True,
        method="get",
    )
    def _description(self, request: HttpRequest, app_id: str, name: str) -> Answer:
        principal = _reader(request)
        if not authentication.is_application(app_id):
            return Answer({})
        try:
            record, signed = service.describe(principal, name)
        except ObjectNotFound:
            return Answer({})
        body: dict[str, Any] = {
            "name": record.name,
            "url": service.address(record) if signed is None else signed.url,
            "size": record.size,
            "contentType": record.content_type,
            "createdAt": wire_time(record.created_at),
            "metadata": record.metadata,
            "tags": record.tags,
        }
        if signed is not None:
            body["expiresAt"] = wire_time(signed.expires_at)
        return Answer(body)

    def _methods(self) -> tuple[str, ...]:
        return ("GET",)


def _reader(request: HttpRequest) -> Principal | None:
    """Return the caller of a request that needs no credentials; None for one without them."""
    credentials = authentication.of_request(request.META)
    if credentials.application_id is None:
        current().address = address = client_address(request.META)
        rate_limits.enter(request, "GET", address, APPLICATION, "")
        return None
    principal, _, _ = rate_limits.admitted(request, credentials, "GET")
    # As everywhere, a session counts with a client key only.
    return None if principal.authority is Authority.APPLICATION else principal


def _moved(request: HttpRequest, name: str) -> HttpResponse:
    """The way to a file on ``FILE_HOST``, for addresses from before it was set."""
    if not is_stored_name(name):
        raise service.missing()
    query = request.META.get("QUERY_STRING", "")
    address = f"{file_url(name)}?{query}" if query else file_url(name)
    headers = {"Location": address, "Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}
    return HttpResponse(status=307, headers=headers)


def _check_application(app_id: str) -> None:
    if not authentication.is_application(app_id):
        raise OperationForbidden("Invalid application ID.", status=403)


def _check_may_upload(principal: Principal, name: str) -> None:
    check_route(Requires.CLIENT_KEY, principal)
    service.check_may_upload(principal)
    check_name(name)
    service.check_room(principal)


def _once(
    request: HttpRequest, call: Call, carry_out: Callable[[], Answer], content: str = ""
) -> Answer:
    """Carry it out, or answer as before if the request is sent again; ``content`` says what with.

    Storage takes no part in transactions.
    """
    request_id = idempotency.request_id(request.META)
    if request_id is None:
        return carry_out()
    path = request.path_info[len(service_settings.MOUNT_PATH) :]
    return idempotency.answer(
        request_id, call, path, Keeping.AFTERWARDS, lambda _: carry_out(), content=content
    )


def _removed(request: HttpRequest, name: str) -> Answer:
    call = read_call(request)
    return _once(request, call, lambda: _deleted(call.principal, name))


def _deleted(principal: Principal, name: str) -> Answer:
    check_route(Requires.CLIENT_KEY, principal)
    service.delete(principal, name)
    return Answer({})


def _stored_once(
    request: HttpRequest,
    principal: Principal,
    name: str,
    upload: Upload,
    media_type: str | None,
    notes: Json,
) -> Answer:
    call = Call(principal, "POST", {}, {"type": media_type, "notes": notes}, "-")
    return _once(
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
    for part, header in _NOTE_HEADERS.items():
        text = _header(meta, header)
        if text is not None:
            # WSGI hands over bytes as if they were Latin-1.
            notes[part] = parsers.decode_json(text.encode("latin-1", "replace"), part)
    directory = _header(meta, _DIRECTORY_HEADER)
    return {**notes, "directory": directory} if directory else notes


def _header(meta: Mapping[str, Any], name: str) -> str | None:
    text: str | None = meta.get(f"HTTP_X_SVC_{name}")
    if text is None and service_settings.PARSE_HEADERS:
        text = meta.get(f"HTTP_X_PARSE_{name}")
    return text


def _link(params: Mapping[str, str]) -> Link | None:
    if EXPIRES in params and SIGNATURE in params:
        return Link(params[EXPIRES], params[SIGNATURE])
    return None
