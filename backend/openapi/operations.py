"""One operation of a route, and what its parts are written with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from backend.http.permissions import Requires
from backend.kernel.json_types import Schema

Method: TypeAlias = Literal["get", "post", "put", "delete"]

JSON_TYPE = "application/json"

_APPLICATION: Schema = {"applicationId": []}
_CLIENT: Schema = {**_APPLICATION, "restApiKey": []}
_MASTER: Schema = {**_APPLICATION, "masterKey": []}
CLIENT_SECURITY: list[Schema] = [_CLIENT, {**_CLIENT, "sessionToken": []}, _MASTER]
_USER_SECURITY: list[Schema] = [{**_CLIENT, "sessionToken": []}, _MASTER]
_SECURITY: Mapping[Requires | None, list[Schema]] = {
    # The document's own security, which operations without any have, is a client key.
    Requires.APPLICATION: [_APPLICATION, *CLIENT_SECURITY],
    Requires.MASTER_KEY: [_MASTER],
    None: [{}],
}
_ALWAYS = ("400", "403", "404", "429", "500", "503")
_WITH_BODY = ("413", "415")


@dataclass(frozen=True, slots=True)
class Body:
    """The body of a request or a response: its type (``schemas.schema_of``) by media type."""

    content: Mapping[str, Any]
    required: bool = True

    def resolved(self, schema: Callable[[Any], Schema]) -> Body:
        """Return it with the schemas of its types."""
        return replace(self, content={name: schema(type_) for name, type_ in self.content.items()})

    def to_json(self) -> Schema:
        """Return the media types with their schemas. The body has to be resolved."""
        return {name: {"schema": schema} for name, schema in self.content.items()}


@dataclass(frozen=True, slots=True)
class Response:
    """A response: its status, what it means, its body and headers."""

    status: int
    description: str
    body: Body | None = None
    headers: Mapping[str, Schema] = field(default_factory=dict)

    def resolved(self, schema: Callable[[Any], Schema]) -> Response:
        """Return it with the schemas of its types."""
        return replace(self, body=self.body and self.body.resolved(schema))

    def to_json(self) -> Schema:
        """Return the response as OpenAPI has it."""
        result: Schema = {"description": self.description}
        if self.body is not None:
            result["content"] = self.body.to_json()
        return {**result, "headers": self.headers} if self.headers else result


@dataclass(frozen=True, slots=True)
class Operation:
    """What one method of a route does.

    ``responses`` are those of this operation alone; the errors that every route has are added.
    ``requires`` None is a route that needs no header at all; ``needs_user`` one that needs a
    session or the master key. ``can_refuse`` False is an operation that can't fail on what is sent.
    With ``setting`` it is in the document only while the setting of that name is on.
    """

    id: str
    tag: str
    summary: str
    responses: tuple[Response, ...]
    requires: Requires | None = Requires.CLIENT_KEY
    description: str = ""
    parameters: tuple[Schema, ...] = ()
    request: Body | None = None
    can_refuse: bool = True
    needs_user: bool = False
    setting: str = ""

    def resolved(self, schema: Callable[[Any], Schema]) -> Operation:
        """Return it with the schemas of its types, which ``schema`` makes."""
        return replace(
            self,
            request=self.request and self.request.resolved(schema),
            responses=tuple(each.resolved(schema) for each in self.responses),
        )

    def to_json(self, operation_id: str, *, shows_master: bool) -> Schema:
        """Return the operation as OpenAPI has it. It has to be resolved.

        Of one for the master key only that it exists, unless ``shows_master``.
        """
        result: Schema = {"operationId": operation_id, "tags": [self.tag]}
        if self.needs_user:
            result["security"] = _USER_SECURITY
        elif self.requires in _SECURITY:
            result["security"] = _SECURITY[self.requires]
        if self.requires is Requires.MASTER_KEY and not shows_master:
            result["summary"] = "Master key only"
            result["responses"] = _errors(*_ALWAYS)
            return result
        result["summary"] = self.summary
        if self.description:
            result["description"] = self.description
        if self.parameters:
            result["parameters"] = self.parameters
        statuses = _ALWAYS if self.can_refuse else ("500", "503")
        if self.request is not None:
            content = self.request.to_json()
            result["requestBody"] = {"content": content, "required": self.request.required}
            statuses = (*statuses, *_WITH_BODY)
        own = {str(each.status): each.to_json() for each in self.responses}
        result["responses"] = {**own, **_errors(*(each for each in statuses if each not in own))}
        return result


def _errors(*statuses: str) -> Schema:
    return {status: {"$ref": f"#/components/responses/{status}"} for status in statuses}


def parameter(name: str) -> Schema:
    """Return a reference to a component parameter."""
    return {"$ref": f"#/components/parameters/{name}"}


def query(name: str, schema: Schema, description: str = "", *, required: bool = False) -> Schema:
    """Return a parameter of the query string."""
    result: Schema = {"name": name, "in": "query", "description": description, "schema": schema}
    return {**result, "required": True} if required else result


# Text that holds JSON, as the query string has it. With a ``contentMediaType`` Swagger UI would ask
# for a file, and generators of clients leave out parameters that have ``content``.
JSON_TEXT: Schema = {"type": "string", "format": "json"}
LOCATION: Schema = {"Location": {"$ref": "#/components/headers/Location"}}


def answer(
    description: str, type_: Any, status: int = 200, headers: Mapping[str, Schema] | None = None
) -> Response:
    """Return a response with a JSON body of a type (``schemas.schema_of``)."""
    return Response(status, description, Body({JSON_TYPE: type_}), headers or {})


def optional(type_: Any) -> Body:
    """Return a JSON body that a request may leave out."""
    return Body({JSON_TYPE: type_}, required=False)
