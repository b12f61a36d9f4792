"""The page of a class's objects: the frame of the grid, its filters, and what its script needs."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.http import HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse

from backend.kernel.errors import InvalidKeyName, ServiceError
from backend.kernel.texts.shown import shown
from objects.admin.browser.labels import labels_of
from objects.admin.browser.pagination import SORTABLE
from objects.admin.grid import filters, layouts, saved_views
from objects.admin.grid.changes import MOST_OBJECTS
from objects.admin.grid.questions import Question, read_question
from objects.admin.grid.texts import is_editable
from objects.admin.grid.words import pointers
from objects.admin.staff_access import Place, class_page, permission
from objects.core.names import CREATED_AT, OBJECT_ID, UPDATED_AT, FieldName, is_field_name
from objects.core.query.parser import parse_where
from objects.core.schema.definition import FieldType


@class_page("", "objects")
def objects(place: Place) -> HttpResponseBase:
    """The grid. Its rows are requested by its script (``rows``)."""
    request = place.request
    error: ServiceError | None = None
    question = Question({}, parse_where({}), "")
    try:
        question = read_question(request)
        if "add" in request.GET:
            return HttpResponseRedirect(f"{request.path}?{_with_condition(place, question)}")
    except ServiceError as refused:
        error = refused
    response = place.render(
        "objects",
        place.class_name,
        error=error,
        where=request.GET.get("where", "") if error else filters.as_text(question.where),
        order=question.order,
        conditions=[] if error else _conditions(place, question),
        address=question.query_string(),
        views=saved_views.listed(place),
        view=request.GET.get("view", ""),
        grid=None if error else _grid(place),
        **_builder(place, request.GET.get("field", ""), request.GET.get("value", "")),
    )
    response.status_code = error.status if error else 200
    return response


def _grid(place: Place) -> dict[str, Any]:
    """Return what the grid's script needs to know of the class and the staff user."""
    schema = place.table.schema
    names = ("rows", "cells", "count", "layout", "views", "deletions")
    return {
        "className": place.class_name,
        "urls": {name: place.url(name) for name in names},
        "objects": f"{place.url('objects')}o/",
        "export": place.url("export", "csv"),
        "fields": [_field(place, name) for name in layouts.column_names(schema)],
        "sizes": layouts.SIZES,
        "mostObjects": MOST_OBJECTS,
        "mayChange": place.may("change"),
        "mayDelete": place.may("delete"),
    }


def _field(place: Place, name: FieldName) -> dict[str, Any]:
    """A field as the script needs it; ``names`` is where names of its objects are looked up."""
    schema = place.table.schema
    field = schema.field_type(name)
    kind = field.kind if field else "ACL"
    described = {
        "name": name,
        "kind": kind,
        "type": str(field or "ACL"),
        "isSortable": kind in SORTABLE,
        "isEditable": is_editable(schema, name) and place.may("change"),
    }
    if field and _may_look_up(place, field):
        described["names"] = reverse("admin:data_names", args=(field.target_class,))
    return described


def _may_look_up(place: Place, field: FieldType) -> bool:
    """Whether the staff user chooses the values of the field by the names of objects."""
    target = field.target_class
    if field.kind not in ("Pointer", "Relation") or target is None:
        return False
    return bool(place.request.user.has_perm(permission("view", target)))


def _with_condition(place: Place, question: Question) -> str:
    query = place.request.GET
    name = query.get("field", "")
    field = place.table.schema.field_type(name) if is_field_name(name) else None
    if field is None:
        raise InvalidKeyName(f"There is no field {shown(name)}.")
    where = filters.add(
        question.where, name, field, query.get("operator", ""), query.get("value", "")
    )
    parse_where(where)
    return Question(where, question.tree, question.order).query_string()


def _conditions(place: Place, question: Question) -> list[tuple[str, str]]:
    """Each condition in words, and the query of the grid without it."""
    labels = labels_of(place, pointers(question.where))
    return [
        (condition.text, urlencode({"where": condition.remaining, "order": question.order}))
        for condition in filters.conditions(question.where, labels)
    ]


def _builder(place: Place, name: str, entered: str) -> dict[str, Any]:
    """What the form that adds a condition shows, for this field or the first one."""
    schema = place.table.schema
    names = [*sorted(schema.fields), OBJECT_ID, CREATED_AT, UPDATED_AT]
    chosen = next((each for each in names if each == name), names[0])
    field = schema.field_type(chosen)
    assert field is not None, "these are the fields of the class"
    return {"fields": names, "field": chosen, "entered": entered, **_asking(place, field)}


def _asking(place: Place, field: FieldType) -> dict[str, Any]:
    """Return the filters for a field of this type, for ``operators.html``."""
    operators = filters.operators(field)
    return {
        "operators": operators,
        "kind": field.kind,
        "field_type": str(field),
        "hint": next((operator.hint for operator in operators if operator.hint), ""),
        "looked_up": field.target_class if _may_look_up(place, field) else None,
    }


@class_page("operators/", "operators")
def operators(place: Place) -> HttpResponse:
    """Render the part of the filter form that depends on the field."""
    name = place.request.GET.get("field", "")
    field = place.table.schema.field_type(name) if is_field_name(name) else None
    if field is None:
        raise InvalidKeyName(f"There is no field {shown(name)}.")
    return TemplateResponse(place.request, "admin/data/operators.html", _asking(place, field))
