"""Routes of stored files: downloads, and what is known about a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias, TypedDict

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from msgspec import Meta

from backend.http import authentication, rate_limits
from backend.http.bodies import parsers
from backend.http.context import client_address
from backend.http.edge import file_host
from backend.http.exceptions import error_response
from backend.http.permissions import Requires
from backend.http.renderers import Answer, render
from backend.http.views import ServiceView
from backend.kernel.errors import InvalidFileName, ObjectNotFound, OperationForbidden
from backend.kernel.principal import APPLICATION, Authority, Principal
from backend.kernel.request_context import current
from backend.openapi import Body, DateTime, Response, Uri, answer, describes, query
from backend.settings.conf import service_settings
from objects.core.values import wire_time
from objects.file_urls import EXPIRES, SIGNATURE, Link, file_url, is_stored_name
from objects.files import service
from objects.files.delivery import check_destination
from objects.views.bodies import EmptyAnswer
from objects.views.files.removals import removed
from objects.views.files.responses import file_answer

_Binary: TypeAlias = Annotated[str, Meta(extra_json_schema={"format": "binary"})]
# Of any type; generators of clients support this one.
_CONTENT = Body({"application/octet-stream": _Binary, "*/*": _Binary})


class FileDescription(TypedDict, total=False):
    name: str
    url: Uri
    size: int
    contentType: str
    createdAt: DateTime
    metadata: dict[str, Any]
    tags: dict[str, Any]
    expiresAt: Annotated[DateTime, Meta(description="Of a private file: how long `url` opens it.")]


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
            return self._refused(request)
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
        return removed(request, f"{app_id}/{name}")

    @describes(
        "uploadFileWithSlash",
        "Always refused: the name of a file has no slash",
        response=(),
        method="post",
    )
    def _refused(self, request: HttpRequest) -> HttpResponse:
        return _slash_refused(request)

    def _methods(self) -> tuple[str, ...]:
        return ("GET", "HEAD", "POST", "DELETE")


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
        if request.method == "POST":
            return self._refused(request)
        if request.method != "GET" and not is_removal:
            return super().dispatch(request, *args, **kwargs)
        try:
            response = render(
                removed(request, stored_name)
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

    @describes(
        "uploadFileWithSlashes",
        "Always refused: the name of a file has no slash",
        response=(),
        method="post",
    )
    def _refused(self, request: HttpRequest) -> HttpResponse:
        return _slash_refused(request)

    def _methods(self) -> tuple[str, ...]:
        return ("GET", "POST")


def _slash_refused(request: HttpRequest) -> HttpResponse:
    """Refuse an upload: a name with a slash, which the JavaScript SDK doesn't encode."""
    text = "Filename contains invalid characters. It has a slash."
    return error_response(InvalidFileName(text), request)


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


def _link(params: Mapping[str, str]) -> Link | None:
    if EXPIRES in params and SIGNATURE in params:
        return Link(params[EXPIRES], params[SIGNATURE])
    return None
