"""What the search of the admin finds in this app: classes, objects, users and roles."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from django.db.models import Case, IntegerField, QuerySet, Value, When
from django.http import HttpRequest
from django.urls import reverse

from backend.kernel.json_types import Wire
from backend.kernel.principal import READ_ONLY_MASTER
from backend.site.search import Note, Result, search_source
from objects.admin.browser.cells import object_address
from objects.admin.browser.impersonation import label, label_field
from objects.admin.classes.visible import visible_classes, without_built_in
from objects.admin.people.pages import by_ids, find
from objects.core.names import (
    ROLE,
    USER,
    ClassName,
    FieldName,
    Subject,
    is_class_name,
    is_object_id,
)
from objects.core.query.tree import Compare, OrderKey, all_of
from objects.definitions import registry
from objects.definitions.models import ObjectClass
from objects.service import lookups
from objects.staff import favourites
from objects.users.accounts import directory

_MOST: Final = 6
_MOST_CLASSES: Final = 30
_LAST: Final = "\U0010ffff"
_ID_CLASSES: Final = 200
"""Classes in which an id is looked up: favourites, then by name."""
_TEXT_CLASSES: Final = 12
"""Classes in which a text is looked up: favourites, then by name."""
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
    yield from _of_classes(rows, rows[:_TEXT_CLASSES], text)
    searched = min(len(rows), _TEXT_CLASSES)
    if searched < total:
        yield Note(
            f"Objects were searched by text in {searched} of {total:,} classes, your favourites"
            f" first, and by id in {len(rows)}. Write the name of a class before the text to search"
            " in that class."
        )


def _chosen(request: HttpRequest, visible: QuerySet[ObjectClass]) -> tuple[list[ObjectClass], int]:
    """Return the classes in which objects are looked up, the most important first, and the number
    of all."""
    names = favourites.favourites(request.user)
    preferred = list(visible.filter(name__in=names).order_by("name"))
    own = list(without_built_in(visible).exclude(name__in=names).order_by("name")[:_ID_CLASSES])
    rows = [*preferred, *own]
    if len(rows) < _ID_CLASSES:
        chosen = {row.pk for row in rows}
        rows += [row for row in visible.order_by("name")[:_ID_CLASSES] if row.pk not in chosen]
        return rows[:_ID_CLASSES], len(rows)
    return rows[:_ID_CLASSES], visible.count()


def _of_classes(
    id_rows: list[ObjectClass], text_rows: list[ObjectClass], text: str
) -> Iterator[Result]:
    if is_object_id(text):
        names = {row.pk: _name(row) for row in id_rows}
        for class_name in lookups.classes_with_id(READ_ONLY_MASTER, names, text):
            yield Result(text, object_address(class_name, text), class_name, is_match=True)
    for row in text_rows:
        # Users and roles have sources of their own.
        if row.name not in (USER, ROLE):
            yield from _by_text(_name(row), text)


def _by_text(class_name: ClassName, text: str) -> Iterator[Result]:
    table = registry.find(class_name)
    if table is None:
        return
    name = label_field(table.schema)
    labels = [FieldName(name)] if name else []
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
        yield user_result(user)


def user_result(user: Wire, detail: str = "") -> Result:
    """Return the result that leads to a user."""
    user_id = str(user["objectId"])
    return Result(
        str(user.get("username") or user_id),
        reverse("admin:people_user", args=(user_id,)),
        detail or str(user.get("email") or user_id),
        is_match=True,
    )


@search_source("Roles", icon="group", position=40, permission="objects.view_role")
def roles(request: HttpRequest, text: str) -> Iterator[Result]:
    """Roles by the beginnings of their names."""
    name = FieldName("name")
    where = all_of(Compare((name,), "gte", text), Compare((name,), "lt", text + _LAST))
    for role in find(ROLE, where, (OrderKey((name,)),), _MOST):
        link = reverse("admin:people_role", args=(str(role["objectId"]),))
        yield Result(str(role.get("name", "")), link, is_match=True)
