"""The objects of a class as a table: columns, order, filter, pages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.template.response import TemplateResponse

from backend.kernel.errors import InvalidKeyName, OperationForbidden, ServiceError, Timeout
from backend.kernel.json_types import Json
from backend.kernel.texts.shown import shown
from objects import service
from objects.admin.browser import filters, pagination
from objects.admin.browser.cells import MISSING, Cell, cell
from objects.admin.browser.impersonation import label_field
from objects.admin.class_sizes import estimate
from objects.admin.staff_access import Place, class_page, permission
from objects.core.names import (
    CREATED_AT,
    OBJECT_ID,
    UPDATED_AT,
    FieldName,
    FieldPath,
    is_field_name,
)
from objects.core.query.parser import parse_where
from objects.core.query.tree import (
    FindOptions,
    InQuery,
    OrderKey,
    Query,
    RelatedTo,
    Select,
    near_of,
    walk,
)
from objects.core.schema.definition import ClassSchema, FieldType
from objects.definitions.indexes import is_ordered_by_index

PAGE: Final = 50
_FIRST: Final = (OBJECT_ID,)
_LAST: Final = (CREATED_AT, UPDATED_AT, FieldName("ACL"))
_SHOWN_AT_FIRST: Final = 6  # fields of the class itself
# The fields that tell most come first.
_RANKS: Final = ("String", "Number", "Boolean", "Date", "Pointer", "File", "GeoPoint", "Array")
_COLUMNS: Final = "data_columns"
_MOST_REMEMBERED: Final = 50  # classes, in a session
_MANY: Final = 50_000  # objects that one doesn't want to sort without an index


@dataclass(frozen=True, slots=True)
class Question:
    """What a table shows: the parameters of its address, read."""

    where: dict[str, Json]
    tree: Query
    order: str

    def query_string(self, **more: str) -> str:
        parameters = {"where": filters.as_text(self.where), "order": self.order} | more
        return urlencode({name: value for name, value in parameters.items() if value})


def read_question(request: HttpRequest) -> Question:
    """Return the question of a request.

    Raises ``ServiceError`` for an invalid ``where``, and for one about classes that this staff user
    may not see.
    """
    where = filters.read_where(request.GET.get("where", ""))
    tree = parse_where(where)
    for node in walk(tree, into_subqueries=True):
        if isinstance(node, InQuery | Select):
            class_name = node.query.class_name
        elif isinstance(node, RelatedTo):
            class_name = node.class_name
        else:
            continue
        if not request.user.has_perm(permission("view", class_name)):
            raise OperationForbidden(f"You have no permission to see objects of {class_name}.")
    return Question(where, tree, request.GET.get("order", ""))


def column_names(schema: ClassSchema) -> list[FieldName]:
    """Everything that can be a column."""
    return [*_FIRST, *sorted(schema.fields), *_LAST]


def chosen_columns(place: Place) -> list[FieldName]:
    """The columns that this staff user has chosen for the class, or the first ones."""
    names = column_names(place.table.schema)
    remembered = place.request.session.get(_COLUMNS)
    chosen = remembered.get(place.class_name) if isinstance(remembered, dict) else None
    if isinstance(chosen, list):
        own_chosen = [name for name in names if name in chosen]
        return own_chosen if OBJECT_ID in own_chosen else [OBJECT_ID, *own_chosen]
    own = _by_rank(place.table.schema)[:_SHOWN_AT_FIRST]
    columns = [*own, *_asked(place, names)]
    return [*_FIRST, *dict.fromkeys(columns), CREATED_AT]


def _by_rank(schema: ClassSchema) -> list[FieldName]:
    """The fields of the class itself, those that tell most first."""
    name = label_field(schema)

    def rank(field: FieldName) -> tuple[int, str]:
        kind = schema.fields[field].kind
        place = _RANKS.index(kind) if kind in _RANKS else len(_RANKS)
        return (-1 if field == name else place, field)

    return sorted(schema.fields, key=rank)


def _asked(place: Place, names: list[FieldName]) -> list[FieldName]:
    """Return the fields that the URL sorts or filters by, so that they become columns."""
    try:
        where = filters.read_where(place.request.GET.get("where", ""))
    except ServiceError:
        where = {}
    mentioned = {*where, place.request.GET.get("order", "").removeprefix("-")}
    return [name for name in names if name in mentioned and name not in ("objectId", "createdAt")]


def _choose_columns(place: Place) -> None:
    chosen = set(place.request.GET.getlist("columns"))
    remembered = place.request.session.get(_COLUMNS)
    choices = dict(remembered) if isinstance(remembered, dict) else {}
    choices.pop(place.class_name, None)
    if chosen:
        names = column_names(place.table.schema)
        choices[place.class_name] = [name for name in names if name in chosen]
    place.request.session[_COLUMNS] = dict([*choices.items()][-_MOST_REMEMBERED:])


@class_page("", "objects")
def objects(place: Place) -> HttpResponseBase:
    """The table."""
    request = place.request
    if "choose" in request.GET:
        _choose_columns(place)
        parameters = {key: request.GET.get(key, "") for key in ("where", "order")}
        return HttpResponseRedirect(f"{request.path}?{urlencode(parameters)}")
    error: ServiceError | None = None
    question = Question({}, parse_where({}), "")
    read = pagination.PageOfRows([], None, None)
    count = None
    try:
        question = read_question(request)
        if "add" in request.GET:
            return HttpResponseRedirect(f"{request.path}?{_with_condition(place, question)}")
        read = find_page(place, question)
        if "count" in request.GET:
            count = service.count(place.reader, place.class_name, question.tree)
    except ServiceError as refused:
        error = refused
    columns = chosen_columns(place)
    schema = place.table.schema
    response = place.render(
        "objects",
        place.class_name,
        error=error,
        too_slow=isinstance(error, Timeout),
        where=request.GET.get("where", "") if error else filters.as_text(question.where),
        order=question.order,
        conditions=[] if error else _conditions(question),
        headers=[_header(schema, question, name) for name in columns],
        rows=[_row(place, columns, row) for row in read.rows],
        columns=columns,
        all_columns=column_names(schema),
        newer=read.before and question.query_string(before=read.before.encode()),
        older=read.after and question.query_string(after=read.after.encode()),
        address=question.query_string(),
        count=count,
        estimate=estimate(place.table.class_id),
        is_all=not error and not question.where and not read.before and not read.after,
        slow_order=_slow_order(place, question),
        by_distance=near_of(question.tree) is not None and not question.order,
        **_builder(schema, request.GET.get("field", ""), request.GET.get("value", "")),
    )
    response.status_code = error.status if error else 200
    return response


def find_page(place: Place, question: Question) -> pagination.PageOfRows:
    """The rows of a page. Raises ``ServiceError``."""
    names = {*chosen_columns(place), FieldName("ACL")}
    keys: frozenset[FieldPath] = frozenset((name,) for name in names)

    def find(where: Query, order: tuple[OrderKey, ...], limit: int) -> list[pagination.Row]:
        options = FindOptions(where=where, limit=limit, order=order, keys=keys)
        return service.find(place.reader, place.class_name, options).objects()

    if near_of(question.tree) is not None and not question.order:
        # By distance: there is no other page, since nothing of a row says how far it is.
        return pagination.PageOfRows(find(question.tree, (), PAGE), None, None)
    sorting = pagination.read_sorting(question.order, place.table.schema)
    keys |= {(sorting.name,)}
    edges = {
        name: pagination.decode_edge(place.request.GET[name])
        for name in ("after", "before")
        if place.request.GET.get(name)
    }
    return pagination.read_page(find, question.tree, sorting, PAGE, **edges)


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


def _conditions(question: Question) -> list[tuple[str, str]]:
    """Each condition, and the query of the table without it."""
    return [
        (condition.text, urlencode({"where": condition.remaining, "order": question.order}))
        for condition in filters.conditions(question.where)
    ]


@dataclass(frozen=True, slots=True)
class Header:
    """The head of a column; ``link`` sorts by it."""

    name: str
    kind: str
    link: str
    arrow: str


def _header(schema: ClassSchema, question: Question, name: FieldName) -> Header:
    field = schema.field_type(name)
    if field is None or field.kind not in pagination.SORTABLE:
        return Header(name, str(field or ""), "", "")
    current = question.order or str(pagination.NEWEST_FIRST)
    arrow = {name: "↑", f"-{name}": "↓"}.get(current, "")
    following = f"-{name}" if current == name else name
    link = Question(question.where, question.tree, following).query_string()
    return Header(name, str(field), link, arrow)


def _slow_order(place: Place, question: Question) -> str:
    """The field whose order no index gives, where there is much to sort; else nothing."""
    name = question.order.removeprefix("-")
    if not name or is_ordered_by_index(place.table, (name,)):
        return ""
    return name if estimate(place.table.class_id) > _MANY else ""


@dataclass(frozen=True, slots=True)
class Row:
    """One object: its id and its cells."""

    object_id: str
    cells: list[Cell]


def _row(place: Place, columns: list[FieldName], row: dict[str, Any]) -> Row:
    schema, object_id = place.table.schema, str(row["objectId"])
    cells = []
    for name in columns:
        field = schema.field_type(name)
        is_there = name in row or name == "ACL" or (field is not None and field.kind == "Relation")
        made = cell(place.class_name, object_id, name, field, row.get(name))
        cells.append(made if is_there else MISSING)
    return Row(object_id, cells)


def _builder(schema: ClassSchema, name: str, entered: str) -> dict[str, Any]:
    """What the form that adds a condition shows, for this field or the first one."""
    names = [*_by_rank(schema), OBJECT_ID, CREATED_AT, UPDATED_AT]
    chosen = next((each for each in names if each == name), names[0])
    field = schema.field_type(chosen)
    assert field is not None, "these are the fields of the class"
    return {"fields": names, "field": chosen, "entered": entered, **_asking(field)}


def _asking(field: FieldType) -> dict[str, Any]:
    """Return the filters for a field of this type, for ``operators.html``."""
    operators = filters.operators(field)
    return {
        "operators": operators,
        "kind": field.kind,
        "field_type": str(field),
        "hint": next((operator.hint for operator in operators if operator.hint), ""),
    }


@class_page("operators/", "operators")
def operators(place: Place) -> HttpResponse:
    """Render the part of the filter form that depends on the field."""
    name = place.request.GET.get("field", "")
    field = place.table.schema.field_type(name) if is_field_name(name) else None
    if field is None:
        raise InvalidKeyName(f"There is no field {shown(name)}.")
    return TemplateResponse(place.request, "admin/data/operators.html", _asking(field))
