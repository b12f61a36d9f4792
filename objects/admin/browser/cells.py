"""Values as the cells of a table show them: short, typed, never as markup."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

import msgspec
from django.urls import reverse

from backend.kernel.json_types import Json
from backend.kernel.texts.encoding import shortened
from objects.core.names import is_class_name, is_object_id
from objects.core.schema.definition import FieldType
from objects.core.values import kind
from objects.file_urls import is_stored_name
from objects.files.names import given_name

_SHORT: Final = 80  # characters
_TITLE: Final = 500
_PICTURES: Final = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".avif")


@dataclass(frozen=True, slots=True)
class Cell:
    """What a template shows of a value: text, perhaps as a link, perhaps beside a picture."""

    kind: str
    text: str
    title: str = ""
    href: str = ""
    picture: str = ""


def cell(class_name: str, object_id: str, name: str, field: FieldType | None, value: Json) -> Cell:
    """The cell of one field of one object."""
    if name == "objectId":
        return Cell("id", str(value), href=object_address(class_name, object_id))
    if field is not None and field.kind == "Relation":
        members = reverse("admin:data_relation", args=(class_name, object_id, name))
        return Cell("relation", "members", title=str(field), href=members)
    if name in ("createdAt", "updatedAt") and isinstance(value, str):
        return _date(value)
    if name == "ACL":
        return _acl(value)
    return value_cell(value)


def value_cell(value: Json) -> Cell:
    """The cell of a value as such."""
    if value is None:
        return Cell("null", "null")
    if isinstance(value, bool):
        return Cell("boolean", "true" if value else "false")
    if isinstance(value, str):
        return Cell("string", short(value), title=value[:_TITLE] if len(value) > _SHORT else "")
    if isinstance(value, dict) and kind(value) != "Object":
        return _typed(value)
    text = msgspec.json.encode(value).decode()
    return Cell((kind(value) or "null").lower(), short(text), title=text[:_TITLE])


def _typed(value: dict[str, Json]) -> Cell:
    match value.get("__type"):
        case "Date":
            return _date(str(value.get("iso")))
        case "Pointer" | "Object":
            class_name, object_id = str(value.get("className")), str(value.get("objectId"))
            address = ""
            if is_class_name(class_name) and is_object_id(object_id):
                address = object_address(class_name, object_id)
            return Cell("pointer", object_id, title=f"{class_name} {object_id}", href=address)
        case "File":
            return file_cell(value)
        case "GeoPoint":
            return Cell("geopoint", f"{value.get('latitude')}°, {value.get('longitude')}°")
        case "Polygon":
            corners = value.get("coordinates")
            count = len(corners) - 1 if isinstance(corners, list) else 0
            return Cell("polygon", f"{count} corners", title=str(corners)[:_TITLE])
        case "Bytes":
            text = str(value.get("base64"))
            return Cell("bytes", f"{len(text) * 3 // 4 - text.count('=')} bytes")
    return Cell("object", short(msgspec.json.encode(value).decode()))


def file_cell(value: dict[str, Json]) -> Cell:
    """A link to a file: ours by a page that also opens private ones, others where they are."""
    name = str(value.get("name"))
    if is_stored_name(name):
        address = reverse("admin:data_file", args=(name,))
        plain = given_name(name)
        picture = address if plain.lower().endswith(_PICTURES) else ""
        return Cell("file", short(plain), title=name, href=address, picture=picture)
    url = str(value.get("url") or "")
    web = urlsplit(url).scheme in ("http", "https") if _is_plain(url) else False
    return Cell("file", short(name), title=name, href=url if web else "")


def _is_plain(url: str) -> bool:
    return url.isascii() and not any(character <= " " for character in url)


def _date(iso: str) -> Cell:
    return Cell("date", iso[:19].replace("T", " "), title=iso)


def _acl(value: Json) -> Cell:
    if not isinstance(value, dict):
        return Cell("acl", "public")
    rights = []
    for entity, entry in value.items():
        granted = entry if isinstance(entry, dict) else {}
        letters = ("r" if granted.get("read") else "") + ("w" if granted.get("write") else "")
        rights.append(f"{entity}: {letters}")
    text = ", ".join(rights) or "master key only"
    return Cell("acl", short(text), title=text[:_TITLE])


def short(text: str) -> str:
    """A text as one line of a table."""
    return shortened(" ".join(text[: _SHORT * 4].split()), _SHORT)


def object_address(class_name: str, object_id: str) -> str:
    """Where the page of an object is."""
    return reverse("admin:data_object", args=(class_name, object_id))
