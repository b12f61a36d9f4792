"""``/schemas`` and ``/purge``: classes themselves, for the master key."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias, TypedDict

from msgspec import Meta

from backend.http.call import Call
from backend.http.idempotency import Keeping
from backend.http.permissions import Requires
from backend.http.renderers import Answer
from backend.http.views import ServiceView
from backend.openapi import answer, describes, optional
from objects.core.names import ClassName
from objects.core.schema.changes import class_name_of
from objects.core.values import FieldKind
from objects.service import classes
from objects.views.base import ClassView
from objects.views.bodies import DONE

ClassField = TypedDict(
    "ClassField",
    {
        "type": Literal[FieldKind, "ACL"],
        "targetClass": str,
        "required": bool,
        "defaultValue": Any,
        "unique": bool,
        "__op": Annotated[Literal["Delete"], Meta(description="Removes the field.")],
    },
    total=False,
)
_Permissions: TypeAlias = Annotated[
    dict[str, Any] | None,
    Meta(
        title="ClassPermissions",
        description="Who may do what: `find`, `get`, `count`, `create`, `update`, `delete`,"
        " `addField`, `readUserFields`, `writeUserFields`, `protectedFields`, `ACL`.",
    ),
]


class ClassSchema(TypedDict, total=False):
    className: str | None
    fields: dict[str, ClassField] | None
    classLevelPermissions: _Permissions
    indexes: dict[str, dict[str, Any]] | None


class ClassSchemas(TypedDict):
    results: list[ClassSchema]


class SchemasView(ServiceView):
    """All classes: list them, create one that the body names."""

    tag = "Classes"
    requires = Requires.MASTER_KEY
    # A change takes several transactions, in which others go on.
    keeping = Keeping.AFTERWARDS

    @describes(
        "listClasses", "All classes", response=answer("The schemas of all classes.", ClassSchemas)
    )
    def get(self, call: Call) -> Answer:
        return Answer({"results": classes.all_schemas(call.principal)})

    @describes(
        "addNamedClass",
        "Create the class that the body names",
        request=ClassSchema,
        response=answer("The schema of the new class.", ClassSchema),
    )
    def post(self, call: Call) -> Answer:
        classes.check_may_manage(call.principal, "create")
        class_name = class_name_of(None, call.body)
        return Answer(classes.create(call.principal, class_name, call.body))


class SchemaView(ClassView):
    """One class: show, create, change, remove it."""

    tag = "Classes"
    requires = Requires.MASTER_KEY
    keeping = Keeping.AFTERWARDS

    @describes("readClass", "A class", response=answer("The schema of the class.", ClassSchema))
    def get(self, call: Call, class_name: ClassName) -> Answer:
        return Answer(classes.schema(call.principal, class_name))

    @describes(
        "addClass",
        "Create a class",
        request=optional(ClassSchema),
        response=answer("The schema of the new class.", ClassSchema),
    )
    def post(self, call: Call, class_name: ClassName) -> Answer:
        name = class_name_of(class_name, call.body)
        return Answer(classes.create(call.principal, name, call.body))

    @describes(
        "changeClass",
        "Change fields, permissions and indexes of a class",
        request=optional(ClassSchema),
        response=answer("The schema after the change.", ClassSchema),
    )
    def put(self, call: Call, class_name: ClassName) -> Answer:
        name = class_name_of(class_name, call.body)
        return Answer(classes.change(call.principal, name, call.body))

    @describes("removeClass", "Remove an empty class", response=DONE)
    def delete(self, call: Call, class_name: ClassName) -> Answer:
        classes.delete(call.principal, class_name)
        return Answer({})


class PurgeView(ClassView):
    """All objects of a class: remove them."""

    tag = "Classes"
    requires = Requires.MASTER_KEY
    keeping = Keeping.AFTERWARDS

    @describes("purgeClass", "Remove all objects of a class", response=DONE)
    def delete(self, call: Call, class_name: ClassName) -> Answer:
        classes.purge(call.principal, class_name)
        return Answer({})
