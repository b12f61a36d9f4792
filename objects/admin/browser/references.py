"""What is around an object: the fields that may point to it, and code that reads it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

import msgspec
from django.urls import reverse

from backend.kernel.json_types import Json
from backend.settings.conf import service_settings
from objects.admin.staff_access import Place, permission
from objects.core.names import INSTALLATION, ROLE, SESSION, USER
from objects.core.values import pointer
from objects.definitions import registry

_MOST: Final = 50
_ROUTES: Final = {
    USER: "users",
    ROLE: "roles",
    SESSION: "sessions",
    INSTALLATION: "installations",
}


@dataclass(frozen=True, slots=True)
class Reference:
    """A Pointer field of a class; ``address`` is the grid of the objects that point here by it."""

    name: str
    address: str


def references(place: Place, object_id: str) -> list[Reference]:
    """Return the fields that may point to the object, of classes that the staff user may see."""
    target = pointer(place.class_name, object_id)
    fields: list[Reference] = []
    for table in registry.all_classes():
        names = [
            name
            for name, field in sorted(table.schema.fields.items())
            if field.kind == "Pointer" and field.target_class == place.class_name
        ]
        if names and place.request.user.has_perm(permission("view", table.class_name)):
            grid = reverse("admin:data_objects", args=(table.class_name,))
            fields += [
                Reference(
                    f"{table.class_name}.{name}",
                    f"{grid}?{_where(name, target)}",
                )
                for name in names
            ]
    return fields[:_MOST]


def _where(name: str, target: Json) -> str:
    return urlencode({"where": msgspec.json.encode({name: target}).decode()})


def as_code(place: Place, object_id: str) -> dict[str, str]:
    """Return code that reads the object, by the name of the tool."""
    route = _ROUTES.get(place.class_name, f"classes/{place.class_name}")
    url = f"{service_settings.PUBLIC_URL}{service_settings.MOUNT_PATH}/{route}/{object_id}"
    return {
        "curl": f'curl "{url}" \\\n'
        '  -H "X-Svc-Application-Id: $APP_ID" \\\n  -H "X-Svc-REST-API-Key: $REST_API_KEY"',
        "JavaScript SDK": f'const object = await new Parse.Query("{place.class_name}")'
        f'.get("{object_id}");',
    }
