"""A class to browse, with a field of every type."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

from django.test import Client

from backend.kernel.principal import MASTER
from objects import service
from objects.definitions import registry
from objects.service import classes
from objects.storage.records import wire_object

FIELDS: dict[str, Any] = {
    "title": {"type": "String"},
    "score": {"type": "Number"},
    "won": {"type": "Boolean"},
    "playedAt": {"type": "Date"},
    "player": {"type": "Pointer", "targetClass": "_User"},
    "picture": {"type": "File"},
    "place": {"type": "GeoPoint"},
    "tags": {"type": "Array"},
    "details": {"type": "Object"},
    "key": {"type": "Bytes"},
    "area": {"type": "Polygon"},
    "fans": {"type": "Relation", "targetClass": "_User"},
}
GAME = "/admin/data/Game/"


def make_class(name: str = "Game", **schema: Any) -> None:
    registry.forget_all()
    classes.create(MASTER, name, {"fields": FIELDS, **schema})


def make(name: str = "Game", **fields: Any) -> str:
    """A new object; its id."""
    return service.create(MASTER, name, fields).object_id


def stored_object(object_id: str, name: str = "Game") -> dict[str, Any]:
    return wire_object(service.get(MASTER, name, object_id))


def at(object_id: str, tail: str = "") -> str:
    """The address of an object's page."""
    return f"{GAME}o/{object_id}/{tail}"


def query(path: str, **params: str) -> str:
    return f"{path}?{urlencode(params)}"


def grid_rows(client: Client, path: str = GAME, **params: str) -> Any:
    """The response of a page of rows of the grid."""
    return client.get(f"{path}rows/", params)


def send(client: Client, method: str, path: str, body: Any, **headers: str) -> Any:
    """Send JSON to an endpoint of a page."""
    sent = json.dumps(body)
    return client.generic(method, path, sent, "application/json", headers=headers)
