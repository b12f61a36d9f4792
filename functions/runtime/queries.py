"""Queries in Python: ``objects("Project").where(status="active").order("-createdAt").find()``.

They use the query language of REST with the same access checks: a query runs as the caller, unless
server code uses ``as_master``. A ``Query`` is immutable; every method returns a new one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, Final

import msgspec

from backend.kernel.errors import InvalidQuery, ObjectNotFound
from backend.kernel.json_types import Json
from backend.kernel.limits.result_memory import largest_fitting
from backend.kernel.principal import MASTER, Principal
from backend.settings.conf import service_settings
from functions.runtime.values import Object, Pointer, decode, decode_object, encode
from objects import service
from objects.core.names import ClassName, ObjectId, check_class_name, parse_object_id
from objects.core.pipeline.parser import parse_aggregation
from objects.core.query.options import FindLimits, parse_find_options
from objects.core.query.tree import FindOptions
from objects.storage.records import wire_object

# What stands after two underscores, and the constraint that it means.
_CONSTRAINTS: Final = {
    "eq": "$eq",
    "ne": "$ne",
    "lt": "$lt",
    "lte": "$lte",
    "gt": "$gt",
    "gte": "$gte",
    "in": "$in",
    "nin": "$nin",
    "all": "$all",
    "exists": "$exists",
    "regex": "$regex",
    "contained_by": "$containedBy",
}
_MOST: Final = 2**31 - 1
_PAGE: Final = 1000


@dataclass(frozen=True)
class Query:
    """A query for objects of a class. Raises what ``objects.service`` raises."""

    principal: Principal
    class_name: ClassName
    params: Mapping[str, Any] = field(default_factory=dict)

    # -- Asking ------------------------------------------------------------------------------------

    def where(self, constraints: Mapping[str, Any] | None = None, /, **fields: Any) -> Query:
        """Add constraints, all of which objects must match.

        Fields by name, with a constraint after two underscores (``score__gt=5``), or a mapping in
        the language of REST (``{"score": {"$gt": 5}}``).
        """
        conditions = [*self.params.get("where", ())]
        if constraints:
            conditions.append(encode(constraints, as_field=True))
        conditions += [_constraint(name, value) for name, value in fields.items()]
        return self._with(where=conditions)

    def where_any(self, *alternatives: Mapping[str, Any]) -> Query:
        """Match at least one of these mappings."""
        return self.where({"$or": list(alternatives)})

    def related_to(self, owner: Pointer | Object, key: str) -> Query:
        """Match members of the relation ``key`` of an object."""
        return self.where({"$relatedTo": {"object": _pointer(owner), "key": key}})

    def order(self, *keys: str) -> Query:
        """Sort by these fields; a leading minus means descending."""
        return self._with(order=",".join(keys))

    def limit(self, limit: int) -> Query:
        """Limit the number of objects; the default is 100."""
        return self._with(limit=limit)

    def skip(self, skip: int) -> Query:
        return self._with(skip=skip)

    def include(self, *paths: str) -> Query:
        """Include the objects that these pointers refer to."""
        return self._with(include=",".join((*self._words("include"), *paths)))

    def keys(self, *names: str) -> Query:
        """Return only these fields."""
        return self._with(keys=",".join((*self._words("keys"), *names)))

    def without(self, *names: str) -> Query:
        """Return all fields except these."""
        return self._with(excludeKeys=",".join((*self._words("excludeKeys"), *names)))

    def _words(self, name: str) -> list[str]:
        return [word for word in str(self.params.get(name, "")).split(",") if word]

    def _with(self, **params: Any) -> Query:
        return replace(self, params={**self.params, **params})

    def options(self) -> FindOptions:
        """Return the query as options of the object service."""
        params = {**self.params, "where": self._where()}
        return parse_find_options(params, _limits())

    def _where(self) -> dict[str, Any]:
        parts = self.params.get("where", ())
        return {"$and": list(parts)} if len(parts) > 1 else dict(*parts)

    # -- Answers -----------------------------------------------------------------------------------

    def find(self) -> list[Object]:
        """Return the objects."""
        result = service.find(self.principal, self.class_name, self.options())
        return [
            decode_object(result.class_name or self.class_name, obj) for obj in result.objects()
        ]

    def find_first(self, number: int) -> list[Object]:
        """Return the first objects, up to a number."""
        return self.limit(number).find()

    def first(self) -> Object | None:
        """Return the first object, or None."""
        objects = self.limit(1).find()
        return objects[0] if objects else None

    def get(self, object_id: str) -> Object:
        """Return the object with this id. Raises ``ObjectNotFound``."""
        if self.params.get("where"):
            obj = self.where(objectId=object_id).first()
            if obj is None:
                raise ObjectNotFound
            return obj
        record = service.get(self.principal, self.class_name, _id(object_id), self.options())
        return decode_object(self.class_name, wire_object(record))

    def count(self) -> int:
        """Return the number of objects."""
        return service.count(self.principal, self.class_name, self.options().where)

    def exists(self) -> bool:
        """Whether an object matches."""
        return bool(self.keys("objectId").limit(1).find())

    def each(self, page: int = _PAGE) -> Iterator[Object]:
        """Iterate over all objects in the order of their ids, read in pages.

        Objects that change meanwhile may have their old or new state; none is returned twice.
        """
        if self.params.keys() & {"order", "skip", "limit"}:
            raise InvalidQuery("each() reads by id: it takes no order, skip or limit")
        query = self.order("objectId")
        last = ""
        while True:
            remaining = query.where(objectId__gt=last) if last else query
            objects, limit = largest_fitting(remaining.find_first, page)
            yield from objects
            if len(objects) < limit:
                return
            last = objects[-1].id

    def aggregate(self, pipeline: Sequence[Mapping[str, Any]]) -> list[Any]:
        """Return the results of a pipeline. Requires the master key."""
        aggregation = parse_aggregation({"pipeline": encode(list(pipeline), as_field=True)})
        rows = service.aggregate(self.principal, self.class_name, aggregation)
        return [decode(msgspec.json.decode(text)) for text in rows]

    def distinct(self, key: str) -> list[Any]:
        """Return the distinct values of a field. Requires the master key."""
        aggregation = parse_aggregation({"distinct": key, "where": self._where()})
        rows = service.aggregate(self.principal, self.class_name, aggregation)
        return [decode(msgspec.json.decode(text)) for text in rows]

    # -- Changing ----------------------------------------------------------------------------------

    def create(self, fields: Mapping[str, Any] | None = None, /, **more: Any) -> Object:
        """Create an object and return it as stored."""
        body = _body(fields, more)
        created = service.create(self.principal, self.class_name, body)
        stored: dict[str, Any] = {
            name: value
            for name, value in body.items()
            if "." not in name and not (isinstance(value, dict) and "__op" in value)
        }
        stored |= created.fields
        stored |= {"objectId": created.object_id, "createdAt": created.created_at}
        stored.setdefault("updatedAt", created.created_at)
        return decode_object(self.class_name, stored)

    def update(
        self,
        target: str | Object | Pointer,
        fields: Mapping[str, Any] | None = None,
        /,
        **more: Any,
    ) -> dict[str, Any]:
        """Update fields of an object; return its update time and the results of operators."""
        body = _body(fields, more)
        updated = service.update(self.principal, self.class_name, _id(target), body)
        done = decode_object(self.class_name, {"updatedAt": updated.updated_at, **updated.fields})
        if isinstance(target, Object):
            values = {
                name: deepcopy(value)
                for name, value in decode(body).items()
                if not (isinstance(value, dict) and "__op" in value)
            }
            target.update({**values, **done})
        return dict(done)

    def delete(self, target: str | Object | Pointer) -> None:
        """Delete an object. Raises ``ObjectNotFound``."""
        service.delete(self.principal, self.class_name, _id(target))


class ObjectAccess:
    """Access to objects for server code: ``objects("Project")`` as the caller."""

    def __init__(self, principal: Principal) -> None:
        self._principal = principal

    def __call__(self, class_name: str) -> Query:
        """Return a query for a class, with the rights of the caller."""
        return Query(self._principal, check_class_name(class_name))

    def as_master(self, class_name: str) -> Query:
        """Return access with the master key, which ignores ACLs and permissions."""
        return Query(MASTER, check_class_name(class_name))


def _constraint(name: str, value: Any) -> dict[str, Json]:
    path, _, suffix = name.rpartition("__")
    operator = _CONSTRAINTS.get(suffix) if path else None
    wire = encode(value, as_field=True)
    if operator is None:
        return {name: wire}
    return {path: {operator: wire}}


def _body(fields: Mapping[str, Any] | None, more: Mapping[str, Any]) -> dict[str, Any]:
    values = dict(fields or {})
    if isinstance(fields, Object):
        # What it is known by and when it was written aren't its fields.
        for name in ("objectId", "createdAt", "updatedAt"):
            values.pop(name, None)
    body: dict[str, Any] = encode({**values, **more}, as_field=True)
    return body


def _limits() -> FindLimits:
    """Those of clients, but for the number of objects: server code knows what it asks for."""
    settings = service_settings
    return FindLimits(
        default_limit=settings.DEFAULT_LIMIT,
        max_limit=_MOST,
        include_depth=settings.INCLUDE_DEPTH,
        include_count=settings.INCLUDE_COUNT,
    )


def _id(target: str | Object | Pointer) -> ObjectId:
    return parse_object_id(target if isinstance(target, str) else target.id)


def _pointer(target: Object | Pointer) -> Pointer:
    return target.pointer() if isinstance(target, Object) else target
