"""What the search of the admin finds in this app: classes, objects, users and roles."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from django.db.models import Case, IntegerField, Q, QuerySet, Value, When
from django.http import HttpRequest
from django.urls import reverse

from backend.kernel.principal import READ_ONLY_MASTER
from backend.site.search import Note, Result, search_source
from objects.admin.browser.cells import object_address
from objects.admin.browser.labels import label, label_field
from objects.admin.class_sizes import largest
from objects.admin.classes.visible import visible_classes
from objects.admin.people.pages import by_ids, find
from objects.admin.staff_access import acting_of
from objects.core.names import (
    OBJECT_ID_LENGTH,
    ROLE,
    SESSION,
    USER,
    ClassName,
    FieldName,
    Subject,
    is_class_name,
    is_object_id,
)
from objects.core.query.tree import AnyOf, Compare, OrderKey, all_of
from objects.definitions import registry
from objects.definitions.models import ObjectClass
from objects.service import lookups
from objects.staff import favourites
from objects.users.accounts import directory

_MOST: Final = 6
_MOST_CLASSES: Final = 30
_LAST: Final = "\U0010ffff"
_ID_CLASSES: Final = 100
"""Classes in which an id is looked up. PostgreSQL takes 0.2 ms to plan it for each of them."""
_TEXT_CLASSES: Final = 12
"""Classes in which a text is looked up, by a statement or two for each of them."""
_MOST_ROWS: Final = 500
_WITH_SOURCES: Final = (USER, ROLE, SESSION)
"""Classes that have sources of their own, or nothing to find an object by."""
_SHORTEST: Final = 3
"""Characters of a text or an id that is looked up in many classes."""


@search_source("Classes", icon="table_rows", position=10, permission=None)
def classes(request: HttpRequest, text: str) -> Iterator[Result]:
    """Classes by a part of their names, those that begin with it first."""
    matches = visible_classes(request.user).filter(name__icontains=text)
    first = Case(
        When(name__iexact=text, then=Value(0)),
        When(name__istartswith=text, then=Value(1)),
        default=Value(2),
        output_field=IntegerField(),
    )
    for row in matches.order_by(first, "name")[:_MOST_CLASSES]:
        yield Result(row.name, reverse("admin:data_objects", args=(row.name,)))


@search_source("Objects", icon="data_object", position=20, permission=None)
def objects(request: HttpRequest, text: str) -> Iterator[Result | Note]:
    """Objects by their ids or by indexed texts; in one class, if its name precedes the text."""
    if acting_of(request) is not None:
        yield Note("Objects aren't searched while you browse as a user.")
        return
    visible = visible_classes(request.user)
    name, _, rest = text.replace("/", " ", 1).partition(" ")
    rest = rest.strip()
    named = visible.filter(name__iexact=name).first() if rest and is_class_name(name) else None
    if named is not None:
        yield from _of_classes([named], [named], rest)
        return
    if len(text) < _SHORTEST:
        return
    rows, total = _chosen(request, visible)
    may_be_id = len(text) == OBJECT_ID_LENGTH or any(map(str.isdigit, text))
    yield from _of_classes(rows if may_be_id else [], rows[:_TEXT_CLASSES], text)
    if total > _TEXT_CLASSES:
        yield Note(
            f"Texts of objects were searched in {min(len(rows), _TEXT_CLASSES)} of {total:,}"
            f" classes, ids in {len(rows)}: your favourites and the largest. To search in another"
            " class, write its name first."
        )


def _chosen(request: HttpRequest, visible: QuerySet[ObjectClass]) -> tuple[list[ObjectClass], int]:
    """Return the classes in which objects are looked up, favourites and then the largest, and the
    number of all."""
    names = favourites.favourites(request.user)
    place = {class_id: number for number, class_id in enumerate(largest())}
    rows = visible
    if len(place) > _ID_CLASSES:
        rows = visible.filter(Q(name__in=names) | Q(pk__in=[*place][:_ID_CLASSES]))
    chosen = sorted(
        rows.exclude(name__in=_WITH_SOURCES)[:_MOST_ROWS],
        key=lambda row: (row.name not in names, place.get(row.pk, len(place))),
    )
    return chosen[:_ID_CLASSES], visible.exclude(name__in=_WITH_SOURCES).count()


def _of_classes(
    id_rows: list[ObjectClass], text_rows: list[ObjectClass], text: str
) -> Iterator[Result]:
    if id_rows and is_object_id(text):
        names = {row.pk: _name(row) for row in id_rows}
        for class_name in lookups.classes_with_id(READ_ONLY_MASTER, names, text):
            yield Result(text, object_address(class_name, text), class_name, is_match=True)
    for row in text_rows:
        yield from _by_text(_name(row), text)


def _by_text(class_name: ClassName, text: str) -> Iterator[Result]:
    table = registry.find(class_name)
    if table is None:
        return
    name = label_field(table.schema)
    labels = [name] if name else []
    for obj in lookups.with_text(READ_ONLY_MASTER, class_name, text, labels, _MOST):
        object_id = str(obj["objectId"])
        yield Result(
            label(table.schema, obj) or object_id,
            object_address(class_name, object_id),
            f"{class_name} {object_id}",
            is_match=True,
        )


def _name(row: ObjectClass) -> ClassName:
    return ClassName(Subject(row.name))


@search_source("Users", icon="person", position=30, permission="objects.view_user")
def users(request: HttpRequest, text: str) -> Iterator[Result]:
    """Users by their ids, and by the beginnings of their names and email addresses."""
    for user in by_ids(USER, directory.search(text, _MOST)):
        user_id = str(user["objectId"])
        link = reverse("admin:people_user", args=(user_id,))
        title, detail = (str(user.get(name) or user_id) for name in ("username", "email"))
        yield Result(title, link, detail, is_match=True)


@search_source("Roles", icon="group", position=40, permission="objects.view_role")
def roles(request: HttpRequest, text: str) -> Iterator[Result]:
    """Roles by the beginnings of their names, as typed, in lower case or with a capital."""
    name = FieldName("name")
    starts = dict.fromkeys((text, text.lower(), text.capitalize()))
    where = AnyOf(
        tuple(
            all_of(Compare((name,), "gte", start), Compare((name,), "lt", start + _LAST))
            for start in starts
        )
    )
    for role in find(ROLE, where, (OrderKey((name,)),), _MOST):
        link = reverse("admin:people_role", args=(str(role["objectId"]),))
        yield Result(str(role.get("name", "")), link, is_match=True)
