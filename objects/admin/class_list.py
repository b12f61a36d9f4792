"""Classes in the admin, to look at.

They are changed through the door (``/schemas``, ``objects.classes``), which keeps tables, indexes
and definitions together; so the admin's own forms stay closed.
"""

from __future__ import annotations

import json
from typing import Any

from django.contrib import admin
from django.db.models import BigIntegerField, QuerySet
from django.db.models.expressions import RawSQL
from django.http import HttpRequest
from django.template.defaultfilters import filesizeformat
from django.utils.html import format_html

from backend.admin_base import ReadOnlyModelAdmin
from objects import registry
from objects.files import admin as _files  # noqa: F401 (registers)
from objects.models import GENERIC_TABLE, ObjectClass

# What PostgreSQL's statistics say, so that the page is quick whatever the classes hold.
_TABLE = "to_regclass(COALESCE(%s::jsonb ->> objects_class.name, %s || objects_class.id))"
_OBJECTS = f"(SELECT greatest(reltuples, 0)::bigint FROM pg_class WHERE oid = {_TABLE})"
_SIZE = f"COALESCE(pg_total_relation_size({_TABLE}), 0)"


@admin.register(ObjectClass)
class ObjectClassAdmin(ReadOnlyModelAdmin):
    """The list of classes with their sizes, and the schema of each."""

    section = "Data"
    icon = "database"
    position = 10

    list_display = ("name", "field_count", "objects", "size", "updated_at")
    search_fields = ("name",)
    readonly_fields = ("name", "objects", "size", "schema", "version", "created_at", "updated_at")
    fields_shown = readonly_fields

    def get_fields(self, request: HttpRequest, obj: ObjectClass | None = None) -> Any:
        return self.fields_shown

    def get_queryset(self, request: HttpRequest) -> QuerySet[ObjectClass]:
        places = [json.dumps(registry.model_tables()), f"{GENERIC_TABLE}_"]
        return (
            super()
            .get_queryset(request)
            .annotate(
                object_estimate=RawSQL(_OBJECTS, places, BigIntegerField()),
                total_size=RawSQL(_SIZE, places, BigIntegerField()),
            )
        )

    @admin.display(description="fields")
    def field_count(self, obj: ObjectClass) -> int:
        return len(obj.definition.get("fields", {}))

    @admin.display(description="objects (estimate)", ordering="object_estimate")
    def objects(self, obj: Any) -> int:
        return int(obj.object_estimate or 0)

    @admin.display(description="size with indexes", ordering="total_size")
    def size(self, obj: Any) -> str:
        return filesizeformat(obj.total_size)

    @admin.display(description="schema")
    def schema(self, obj: ObjectClass) -> str:
        table = registry.find(obj.name)
        wire = table.schema.to_wire() if table is not None else obj.definition
        return format_html("<pre>{}</pre>", json.dumps(wire, indent=2, ensure_ascii=False))
