"""What a grid shows: the filter and order in its address, and the page of rows that they give."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from django.http import HttpRequest

from backend.kernel.errors import OperationForbidden
from backend.kernel.json_types import Json
from objects import service
from objects.admin.browser import pagination
from objects.admin.class_sizes import estimate
from objects.admin.grid import filters
from objects.admin.staff_access import Place, permission
from objects.core.names import FieldName, FieldPath
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
from objects.definitions.indexes import is_ordered_by_index

_MANY: Final = 50_000  # objects that take long to sort without an index


@dataclass(frozen=True, slots=True)
class Question:
    """The parameters of a grid's address, read."""

    where: dict[str, Json]
    tree: Query
    order: str

    @property
    def is_by_distance(self) -> bool:
        """Whether the nearest objects come first, because no other order was chosen."""
        return near_of(self.tree) is not None and not self.order

    def query_string(self, **more: str) -> str:
        parameters = {"where": filters.as_text(self.where), "order": self.order} | more
        return urlencode({name: value for name, value in parameters.items() if value})


def read_question(request: HttpRequest) -> Question:
    """Return the question of a request.

    Raises ``ServiceError`` for an invalid ``where``, and for one about classes that this staff user
    may not see.
    """
    return question_of(request, request.GET.get("where", ""), request.GET.get("order", ""))


def question_of(request: HttpRequest, where_text: str, order: str) -> Question:
    """Return the question of this filter and order for the staff user of the request.

    Raises what ``read_question`` raises.
    """
    where = filters.read_where(where_text)
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
    return Question(where, tree, order)


def find_page(
    place: Place, question: Question, size: int, names: Collection[FieldName] | None
) -> pagination.PageOfRows:
    """Return a page of rows with these fields, or with all of them. Raises ``ServiceError``."""
    keys: frozenset[FieldPath] | None = None
    if names is not None:
        keys = frozenset((name,) for name in names)

    def find(where: Query, order: tuple[OrderKey, ...], limit: int) -> list[pagination.Row]:
        options = FindOptions(where=where, limit=limit, order=order, keys=keys)
        return service.find(place.reader, place.class_name, options).objects()

    if question.is_by_distance:
        # There is no other page: nothing of a row says how far it is.
        return pagination.PageOfRows(find(question.tree, (), size), None, None)
    sorting = pagination.read_sorting(question.order, place.table.schema)
    if keys is not None:
        keys |= {(sorting.name,)}
    edges = {
        name: pagination.decode_edge(place.request.GET[name])
        for name in ("after", "before")
        if place.request.GET.get(name)
    }
    return pagination.read_page(find, question.tree, sorting, size, **edges)


def slow_order(place: Place, question: Question) -> str:
    """Return the field whose order no index gives, if there is much to sort; else nothing."""
    name = question.order.removeprefix("-")
    if not name or is_ordered_by_index(place.table, (name,)):
        return ""
    return name if estimate(place.table.class_id) > _MANY else ""
