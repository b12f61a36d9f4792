"""All classes and their pointers as a diagram."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final

from django.http import HttpRequest, HttpResponseBase
from django.urls import reverse
from django.views.decorators.http import require_safe

from backend.site.model_admin import page, render
from objects.core.names import ClassName
from objects.core.schema.definition import SYSTEM_FIELDS, ClassSchema, FieldType
from objects.definitions import registry

MOST: Final = 100  # classes that are drawn
_LINKS: Final = ("Pointer", "Relation")


@page(
    "schema/",
    name="schema",
    permission="objects.view_objectclass",
    title="Schema",
    section="Data",
    icon="account_tree",
    position=15,
)
@require_safe
def schema(request: HttpRequest) -> HttpResponseBase:
    """Draw all classes, or one with its neighbours."""
    schemas = {table.class_name: table.schema for table in registry.all_classes()}
    links = _links(schemas.values())
    name = request.GET.get("class", "").strip()
    centre = next((each for each in schemas if each == name), None)
    if centre is not None:
        shown = [centre, *sorted(links[centre])]
    else:
        # Those that are linked say most, and own classes more than those of the service.
        shown = sorted(schemas, key=lambda each: (not links[each], each.startswith("_"), each))
    shown = shown[:MOST]
    return render(
        request,
        "admin/data/diagram.html",
        "Schema",
        drawn={
            "classes": [_drawn(schemas[each]) for each in sorted(shown)],
            "centre": centre,
        },
        names=[*schemas],
        name=name,
        centre=centre,
        shown_count=len(shown),
        count=len(schemas),
        links=sorted(
            (source, field, str(type_), type_.target_class)
            for source in shown
            for field, type_ in schemas[source].fields.items()
            if type_.kind in _LINKS
        ),
    )


def _links(schemas: Iterable[ClassSchema]) -> Mapping[ClassName, set[ClassName]]:
    """The neighbours of each class, in both directions."""
    links: dict[ClassName, set[ClassName]] = defaultdict(set)
    by_name = {each.class_name: each for each in schemas}
    for each in by_name.values():
        for field in each.fields.values():
            target = field.target_class
            if field.kind in _LINKS and target in by_name and target is not None:
                links[each.class_name].add(target)
                links[target].add(each.class_name)
    for name, neighbours in links.items():
        neighbours.discard(name)
    return links


def _drawn(schema: ClassSchema) -> dict[str, Any]:
    own = SYSTEM_FIELDS.get(schema.class_name, {})
    # Fields that lead to other classes first: their lines are short then.
    fields = sorted(
        schema.fields.items(),
        key=lambda entry: (entry[1].kind not in _LINKS, entry[0] in own, entry[0]),
    )
    return {
        "name": schema.class_name,
        "address": reverse("admin:data_fields", args=(schema.class_name,)),
        "fields": [_drawn_field(name, field) for name, field in fields],
    }


def _drawn_field(name: str, field: FieldType) -> dict[str, Any]:
    return {
        "name": name,
        "kind": field.kind,
        "target": field.target_class,
        "is_required": field.required,
        "is_unique": field.unique,
    }
