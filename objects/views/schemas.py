"""``/schemas`` and ``/purge``: classes themselves, for the master key."""

from __future__ import annotations

from backend.http.call import Call
from backend.http.idempotency import Keeping
from backend.http.permissions import Requires
from backend.http.renderers import Answer
from backend.http.views import ServiceView
from objects.core.names import ClassName
from objects.core.schema.changes import class_name_of
from objects.service import classes
from objects.views.base import ClassView


class SchemasView(ServiceView):
    """All classes: list them, create one that the body names."""

    requires = Requires.MASTER_KEY
    # Inside of a transaction, building an index would stop all writes to the class.
    keeping = Keeping.AFTERWARDS

    def get(self, call: Call) -> Answer:
        return Answer({"results": classes.all_schemas(call.principal)})

    def post(self, call: Call) -> Answer:
        class_name = class_name_of(None, call.body)
        return Answer(classes.create(call.principal, class_name, call.body))


class SchemaView(ClassView):
    """One class: show, create, change, remove it."""

    requires = Requires.MASTER_KEY
    keeping = Keeping.AFTERWARDS

    def get(self, call: Call, class_name: ClassName) -> Answer:
        return Answer(classes.schema(call.principal, class_name))

    def post(self, call: Call, class_name: ClassName) -> Answer:
        name = class_name_of(class_name, call.body)
        return Answer(classes.create(call.principal, name, call.body))

    def put(self, call: Call, class_name: ClassName) -> Answer:
        name = class_name_of(class_name, call.body)
        return Answer(classes.change(call.principal, name, call.body))

    def delete(self, call: Call, class_name: ClassName) -> Answer:
        classes.delete(call.principal, class_name)
        return Answer({})


class PurgeView(ClassView):
    """All objects of a class: remove them."""

    requires = Requires.MASTER_KEY

    def delete(self, call: Call, class_name: ClassName) -> Answer:
        classes.purge(call.principal, class_name)
        return Answer({})
