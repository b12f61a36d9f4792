"""Files, and the pages behind mailed links."""

from __future__ import annotations

from typing import Any

from backend.http.permissions import Requires
from backend.openapi import Operation, answer, ref
from backend.openapi.operations import JSON_TEXT, query
from objects.views.openapi.classes import Paths

Json = dict[str, Any]

_FILES, _PAGES = "Files", "Pages"
_TEXT: Json = {"type": "string"}
_BYTES: Json = {"type": "string", "format": "binary"}
_HTML: Json = {"text/html": {"schema": _TEXT}}
# Of any type; generators of clients know this one.
_ANY_TYPE: Json = {"application/octet-stream": {"schema": _BYTES}, "*/*": {"schema": _BYTES}}

SCHEMAS: dict[str, Json] = {
    "StoredFile": {
        "type": "object",
        "properties": {"name": _TEXT, "url": {"type": "string", "format": "uri"}},
        "required": ["name", "url"],
    },
    "FileNotes": {
        "type": "object",
        "properties": {
            "metadata": {"type": "object"},
            "tags": {"type": "object"},
            "acl": ref("AccessList"),
        },
    },
    "FileForm": {
        "type": "object",
        "properties": {"file": _BYTES, "fileData": ref("FileNotes")},
        "required": ["file"],
    },
    "FileDescription": {
        "type": "object",
        "properties": {
            "name": _TEXT,
            "url": {"type": "string", "format": "uri"},
            "size": {"type": "integer"},
            "contentType": _TEXT,
            "createdAt": {"type": "string", "format": "date-time"},
            "metadata": {"type": "object"},
            "tags": {"type": "object"},
            "expiresAt": {
                "type": "string",
                "format": "date-time",
                "description": "Of a private file: how long `url` opens it.",
            },
        },
        "required": ["name", "url", "size", "contentType", "createdAt", "metadata", "tags"],
    },
}


def files() -> Paths:
    """``/files``."""
    notes = tuple(
        {
            "name": f"X-Svc-File-{name}",
            "in": "header",
            "description": about,
            "schema": JSON_TEXT,
        }
        for name, about in (
            ("Metadata", "What to keep about the file, as JSON."),
            ("Tags", "Tags, as JSON."),
            ("ACL", "Who may read the file, as JSON."),
        )
    )
    return {
        "/files/{name}": {
            "post": Operation(
                "uploadFile",
                _FILES,
                "Upload a file",
                {"201": answer("The file.", ref("StoredFile"), Location="Location")},
                parameters=notes,
                body={
                    "required": True,
                    "content": {
                        "application/octet-stream": {"schema": _BYTES},
                        "multipart/form-data": {"schema": ref("FileForm")},
                    },
                },
                description="The body is the file, of whatever type, or a form with one file.",
            ),
            "delete": Operation(
                "removeFile",
                _FILES,
                "Remove a file",
                {"200": answer("It is removed.", ref("EmptyAnswer"))},
                requires=Requires.MASTER_KEY,
            ),
        },
        "/files": {
            "post": Operation(
                "uploadNamelessFile",
                _FILES,
                "Always refused: a file needs a name",
                {},
            )
        },
        "/files/{appId}/{name}": {
            "get": Operation(
                "downloadFile",
                _FILES,
                "The content of a file",
                {
                    "200": {"description": "The file.", "content": _ANY_TYPE},
                    "206": {"description": "The range that was asked for.", "content": _ANY_TYPE},
                    "304": {"description": "It is what you have."},
                },
                requires=None,
                parameters=(
                    query("expires", _TEXT, "Of a signed address."),
                    query("signature", _TEXT, "Of a signed address."),
                ),
                more_errors={"416": {"description": "The file has no such range."}},
                description="Private files need a session, a master key or a signed address.",
            )
        },
        "/files/{appId}/metadata/{name}": {
            "get": Operation(
                "describeFile",
                _FILES,
                "What is known about a file",
                {"200": answer("The description.", ref("FileDescription"))},
            )
        },
    }


def pages() -> Paths:
    """``/apps``: for people, in HTML. Scripts that ask for JSON get JSON."""
    form = {
        name: query(name, _TEXT, about)
        for name, about in (
            ("token", "From the link."),
            ("id", "The application id."),
        )
    }
    verify, reset, resend = (
        f"/apps/{{appId}}/{name}"
        for name in ("verify_email", "request_password_reset", "resend_verification_email")
    )
    return {
        "/apps/choose_password": {
            "get": _page("choosePasswordPage", "Choose a password", form["token"], form["id"])
        },
        verify: {
            "get": _page("verifyEmailPage", "The link of a verification mail", form["token"]),
            "post": _taken("verifyEmail", "Verify an address", "token"),
        },
        reset: {
            "get": _page("resetPasswordPage", "The link of a reset mail", form["token"]),
            "post": _taken(
                "resetPassword",
                "Set a password, or ask for a link",
                *("token", "new_password", "repeat_password", "email"),
            ),
        },
        resend: {
            "get": _page("resendVerificationPage", "Ask for another verification mail"),
            "post": _taken("resendVerification", "Send another verification mail", "email"),
        },
        "/apps/{appId}/{notice}": {"get": _page("noticePage", "A page to which forms lead")},
    }


def _page(operation_id: str, summary: str, *parameters: Json) -> Operation:
    return Operation(
        operation_id,
        _PAGES,
        summary,
        {"200": {"description": "The page.", "content": _HTML}},
        requires=None,
        parameters=parameters,
        more_errors=_FAILURES,
    )


def _taken(operation_id: str, summary: str, *names: str) -> Operation:
    form = {"type": "object", "properties": dict.fromkeys(names, _TEXT)}
    return Operation(
        operation_id,
        _PAGES,
        summary,
        {
            "200": answer("For scripts.", {"type": ["object", "string"]}),
            "303": {
                "description": "The page to go to.",
                "headers": {"Location": {"schema": _TEXT}},
            },
        },
        requires=None,
        body={
            "required": True,
            "content": {
                "application/x-www-form-urlencoded": {"schema": form},
                "application/json": {"schema": form},
            },
        },
        more_errors={**_FAILURES, **_FAILURES_OF_FORMS},
    )


def _failure(description: str) -> Json:
    schema = {"schema": ref("ErrorAnswer")}
    return {"description": description, "content": {**_HTML, "application/json": schema}}


_FAILURES = {
    status: _failure(description)
    for status, description in (
        ("400", "What was sent isn't right."),
        ("403", "Another application's id, for scripts."),
        ("404", "There is no such page, or the link is no good any more."),
        ("429", "Too many requests."),
        ("500", "A fault of the service."),
        ("503", "Something that the service needs can't be reached."),
    )
}
_FAILURES_OF_FORMS = {
    "413": _failure("The form is too large."),
    "415": _failure("Neither a form nor JSON."),
}
