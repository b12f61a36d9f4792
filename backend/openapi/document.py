"""The document itself, put together from the parts of all sources."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from threading import Lock

import msgspec

from backend import __version__
from backend.kernel.json_types import Schema
from backend.kernel.principal import Principal
from backend.kernel.texts.encoding import encode_json
from backend.openapi import components
from backend.openapi.operations import CLIENT_SECURITY, Operation
from backend.openapi.sources import Names, Offer, fixed_schemas, offers
from backend.settings.conf import service_settings

_NAMES = re.compile(r"{(\w+)}")
_REFERENCES = re.compile(rb'"\$ref":"#/components/schemas/([^"]+)"')

# The number of documents in memory: callers with the same rights get the same one.
_KEPT = 8
_DESCRIPTION = """\
Objects in classes, users and roles, files, and server functions. Every response to a failed request
is an `ErrorAnswer`.

Bodies of objects may hold fields beside those that are listed, where the caller may add fields. Any
`POST` may stand for another method, with `_method` and the parameters in its body.

With `X-Svc-Request-Id` a request is carried out once, however often it is sent.
`X-Svc-Installation-Id` names the installation that a session belongs to. `X-Request-Id` is found
again in the log and in the answer."""


@dataclass(frozen=True, slots=True)
class Document:
    """The JSON text of the document for one kind of caller, and its entity tag."""

    text: bytes
    etag: str


_documents: dict[Hashable, Document] = {}
_lock = Lock()


def document_for(principal: Principal) -> Document:
    """Return the API as this caller may know it: the same text for the same rights."""
    parts = offers(principal)
    key = (
        principal.has_master_key,
        _settings(),
        tuple(fixed_schemas()),
        tuple(offer.fingerprint for offer in parts),
    )
    document = _documents.get(key)
    if document is None:
        text = encode_json(_assembled(parts, shows_master=principal.has_master_key))
        document = Document(text, f'"{sha256(text).hexdigest()[:32]}"')
        _keep(key, document)
    return document


def _keep(key: Hashable, document: Document) -> None:
    with _lock:
        while len(_documents) >= _KEPT:
            del _documents[next(iter(_documents))]
        _documents[key] = document


def _settings() -> Hashable:
    settings = service_settings
    return (
        settings.PUBLIC_URL,
        settings.MOUNT_PATH,
        settings.APP_NAME,
        settings.DEFAULT_LIMIT,
        settings.MAX_LIMIT,
    )


def _assembled(parts: list[Offer], *, shows_master: bool) -> Schema:
    names = Names(frozenset(fixed_schemas()) | {"ErrorAnswer"})
    ids = Names(frozenset())
    paths: dict[str, Schema] = {}
    schemas: dict[str, Schema] = {}
    tags: dict[str, None] = {}
    for offer in parts:
        part = offer.part(names)
        schemas.update(part.schemas)
        for path, operations in part.paths.items():
            item = paths.setdefault(path, _path_item(path))
            for method, operation in operations.items():
                if method in item:
                    raise ValueError(f"{method} {path} is described twice.")
                item[method] = _operation(operation, ids, shows_master)
                tags[operation.tag] = None
    raw_paths, raw_schemas = encode_json(paths), encode_json(schemas)
    fixed = _used(fixed_schemas(), raw_paths, raw_schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": f"REST API of {service_settings.APP_NAME}",
            "version": __version__,
            "description": _DESCRIPTION,
        },
        "servers": [{"url": f"{service_settings.PUBLIC_URL}{service_settings.MOUNT_PATH}"}],
        "security": CLIENT_SECURITY,
        "tags": [{"name": tag} for tag in tags],
        "paths": msgspec.Raw(raw_paths),
        "components": {
            "securitySchemes": components.SECURITY_SCHEMES,
            "parameters": components.parameters(),
            "headers": components.HEADERS,
            "responses": components.responses(),
            "schemas": {"ErrorAnswer": components.error_schema(), **fixed, **schemas},
        },
    }


def _path_item(path: str) -> Schema:
    parameters = [components.path_parameter(name) for name in _NAMES.findall(path)]
    return {"parameters": parameters} if parameters else {}


def _operation(operation: Operation, ids: Names, shows_master: bool) -> Schema:
    return operation.to_json(ids.take(operation.id), shows_master=shows_master)


def _used(schemas: Mapping[str, Schema], *texts: bytes) -> dict[str, Schema]:
    """The fixed schemas that something refers to: others don't learn of what only the master key
    meets."""
    used: dict[str, Schema] = {}
    remaining = [name for text in texts for name in set(_REFERENCES.findall(text))]
    while remaining:
        name = remaining.pop().decode()
        if name in schemas and name not in used:
            used[name] = schemas[name]
            remaining.extend(_REFERENCES.findall(encode_json(schemas[name])))
    return {name: used[name] for name in schemas if name in used}
