"""One operation of a route, and the words to describe it with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from backend.http.permissions import Requires

Json: TypeAlias = dict[str, Any]
Method: TypeAlias = Literal["get", "post", "put", "delete"]

JSON_TYPE = "application/json"

_APPLICATION: Json = {"applicationId": []}
_CLIENT: Json = {**_APPLICATION, "restApiKey": []}
_MASTER: Json = {**_APPLICATION, "masterKey": []}
CLIENT_SECURITY: list[Json] = [_CLIENT, {**_CLIENT, "sessionToken": []}, _MASTER]
_USER_SECURITY: list[Json] = [{**_CLIENT, "sessionToken": []}, _MASTER]
_SECURITY: Mapping[Requires | None, list[Json]] = {
    # A client key is what the document says of operations that say nothing themselves.
    Requires.APPLICATION: [_APPLICATION, *CLIENT_SECURITY],
    Requires.MASTER_KEY: [_MASTER],
    None: [{}],
}
_ALWAYS = ("400", "403", "404", "429", "500", "503")
_WITH_BODY = ("413", "415")


@dataclass(frozen=True, slots=True)
class Operation:
    """What one method of a route does.

    ``answers`` are the successes by status; the errors that every route has are added.
    ``requires`` None is a route that needs no header at all; ``needs_user`` one that asks for a
    session, or for the master key. ``refuses`` False is an operation that can't fail on what is
    sent.
    """

    id: str
    tag: str
    summary: str
    answers: Mapping[str, Json]
    requires: Requires | None = Requires.CLIENT_KEY
    description: str = ""
    parameters: tuple[Json, ...] = ()
    body: Json | None = None
    more_errors: Mapping[str, Json] = field(default_factory=dict)
    refuses: bool = True
    needs_user: bool = False

    def to_json(self, operation_id: str, *, shows_master: bool) -> Json:
        """The operation as OpenAPI has it; of one for the master key only that it is there,
        unless ``shows_master``."""
        found: Json = {"operationId": operation_id, "tags": [self.tag]}
        if self.needs_user:
            found["security"] = _USER_SECURITY
        elif self.requires in _SECURITY:
            found["security"] = _SECURITY[self.requires]
        if self.requires is Requires.MASTER_KEY and not shows_master:
            found["summary"] = "For the master key"
            found["responses"] = _ERRORS
            return found
        found["summary"] = self.summary
        if self.description:
            found["description"] = self.description
        if self.parameters:
            found["parameters"] = self.parameters
        if self.body is not None:
            found["requestBody"] = self.body
        found["responses"] = {**self.answers, **self._errors(), **self.more_errors}
        return found

    def _errors(self) -> Json:
        if not self.refuses:
            return {status: _error(status) for status in ("500", "503")}
        return _ERRORS if self.body is None else _ERRORS_WITH_BODY


def _error(status: str) -> Json:
    return {"$ref": f"#/components/responses/{status}"}


_ERRORS = {status: _error(status) for status in _ALWAYS}
_ERRORS_WITH_BODY = {status: _error(status) for status in (*_ALWAYS, *_WITH_BODY)}


def ref(name: str) -> Json:
    """A reference to a component schema."""
    return {"$ref": f"#/components/schemas/{name}"}


def parameter(name: str) -> Json:
    """A reference to a component parameter."""
    return {"$ref": f"#/components/parameters/{name}"}


def query(name: str, schema: Json, description: str, *, required: bool = False) -> Json:
    """A parameter of the query string."""
    found: Json = {"name": name, "in": "query", "description": description, "schema": schema}
    if required:
        found["required"] = True
    return found


# Text that holds JSON, as the query string has it. With a ``contentMediaType`` Swagger UI would ask
# for a file, and generators of clients leave out parameters that have ``content``.
JSON_TEXT: Json = {"type": "string", "format": "json"}


def answer(description: str, schema: Json, **headers: str) -> Json:
    """A success with a JSON body; ``headers`` are names of component headers."""
    found: Json = {"description": description, "content": {JSON_TYPE: {"schema": schema}}}
    if headers:
        found["headers"] = {
            name: {"$ref": f"#/components/headers/{component}"}
            for name, component in headers.items()
        }
    return found


def body(schema: Json, description: str = "", *, required: bool = True) -> Json:
    """A JSON body."""
    found: Json = {"content": {JSON_TYPE: {"schema": schema}}, "required": required}
    if description:
        found["description"] = description
    return found
