"""Reading objects: find, get, count, aggregate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import msgspec

from backend.kernel.errors import InvalidQuery, MasterKeyRequired, ObjectNotFound
from backend.kernel.json_types import Json, Wire
from backend.kernel.limits import result_memory
from backend.kernel.memory_pool import ResultMemory
from backend.kernel.principal import Principal
from backend.settings.conf import service_settings
from objects import triggers
from objects.access.policy import check_class, check_missing_class, read_action, readable
from objects.access.protection import check_question, hidden_fields, hides_by_object
from objects.access.scope import Scope
from objects.core.names import CREATED_AT, ClassName, ObjectId, is_object_id
from objects.core.pipeline.parser import Aggregation
from objects.core.query.tree import (
    Everything,
    Exists,
    FindOptions,
    OrderKey,
    Query,
    all_of,
    near_of,
)
from objects.definitions import registry
from objects.rules import rules_of
from objects.service.stale_definitions import with_current_classes
from objects.sql.pipeline.statement import compile_aggregation
from objects.sql.tables import ClassTable
from objects.storage import reads
from objects.storage.includes import expand, visible
from objects.storage.projection import projection
from objects.storage.records import Record, decoded, wire_object

_NOTHING_ELSE = Everything()
_WHOLE = FindOptions(where=_NOTHING_ELSE, limit=1)


@dataclass(frozen=True, slots=True)
class Found:
    """The results of a query: records if none had to be decoded, else wire objects.

    ``class_name`` is set if the objects are of another class than the queried one
    (``redirectClassNameForKey``).
    """

    results: list[Record] | list[Wire]
    count: int | None = None
    class_name: ClassName | None = None

    def objects(self) -> list[Wire]:
        """Return the results as wire objects."""
        return [wire_object(item) for item in self.results]


def find(
    principal: Principal,
    class_name: ClassName,
    options: FindOptions,
    *,
    also: Query = _NOTHING_ELSE,
) -> Found:
    """Return the objects of a class that satisfy a query and that the caller may read.

    They satisfy ``also`` as well, which isn't the caller's question: it may ask for what the caller
    may not.

    A query by an object's id alone needs the permission to get it, one that only counts (a limit
    of 0) that to count.

    Raises ``OperationForbidden`` (class-level permissions, protected fields, a class that isn't
    there), ``InvalidQuery`` and the like for what the query can't mean. For the master key a class
    that isn't there is an empty one.
    """
    return with_current_classes(lambda: _find(principal, class_name, options, also))


def _find(principal: Principal, class_name: ClassName, options: FindOptions, also: Query) -> Found:
    table = table_for_reading(principal, class_name)
    if table is None:
        return _find_nothing(principal, class_name, options)
    redirected = None
    scope = Scope(principal)
    if options.redirect_key is not None:
        target = table.schema.fields.get(options.redirect_key)
        if target is not None and target.kind == "Relation" and target.target_class:
            # Check the field's own class as well: the response reveals the field's target.
            check_class(principal, table, "find")
            check_question(principal, table, Exists((options.redirect_key,), True))
            redirected = target.target_class
            scope = Scope(principal, table)
            table = table_for_reading(principal, redirected)
            if table is None:
                return Found([], 0 if options.count else None, redirected)
    check_question(principal, table, options.where, options.order)
    if options.explain:
        _check_explain(principal)
    action = read_action(table.class_name, options.where)
    if options.count and options.limit == 0:
        check_class(principal, table, "count")
        condition = None
    else:
        condition = readable(principal, table, action)
    # What triggers ask for isn't the caller's question; they may ask for anything.
    options, preset = triggers.before_find(principal, table.class_name, options)
    if preset is not None:
        count = len(preset) if options.count else None
        return Found(run_after_find(principal, table, preset, options), count, redirected)
    count = None
    if options.count:
        count = _count(principal, table, all_of(options.where, also), scope)
    if options.limit == 0:
        return Found([], count, redirected)
    if condition is None:
        # A trigger has changed the limit.
        condition = readable(principal, table, action)
    if options.explain:
        plan = _explained(principal, table, options, all_of(condition, also), scope)
        return Found([plan], count)
    memory = result_memory.of_query()
    records = reads.find(
        table,
        all_of(options.where, condition, also),
        scope,
        order=_order(options),
        limit=options.limit,
        skip=options.skip,
        with_score=options.score,
        memory=memory,
    )
    shaped = shape(principal, table, records, options, memory)
    results = run_after_find(principal, table, shaped, options)
    return Found(results, count, redirected)


def _check_explain(principal: Principal) -> None:
    if not (principal.is_master or service_settings.ALLOW_PUBLIC_EXPLAIN):
        raise InvalidQuery("Using the explain query parameter requires the master key")


def _explained(
    principal: Principal, table: ClassTable, options: FindOptions, condition: Query, scope: Scope
) -> Wire:
    """Return PostgreSQL's plan of a find, in the form of Parse Server's."""
    plan = reads.explain(
        table,
        all_of(options.where, condition),
        scope,
        order=_order(options),
        limit=options.limit,
        skip=options.skip,
    )
    return _plan_as_result(plan if principal.is_master else _without_names(plan))


def _plan_as_result(plan: Json) -> Wire:
    return {"QUERY PLAN": [plan]}


_PUBLIC: Final = frozenset(
    {
        *("Plan", "Plans", "Node Type", "Join Type", "Strategy", "Parent Relationship"),
        *("Startup Cost", "Total Cost", "Plan Rows", "Plan Width"),
    }
)
"""What clients may see of a plan: no names of tables and indexes, no conditions."""


def _without_names(plan: Json) -> Json:
    if isinstance(plan, list):
        return [_without_names(part) for part in plan]
    if not isinstance(plan, dict):
        return plan
    return {name: _without_names(value) for name, value in plan.items() if name in _PUBLIC}


def _find_nothing(principal: Principal, class_name: ClassName, options: FindOptions) -> Found:
    """Find in a class that isn't there. Its triggers are called as for an empty one."""
    options, preset = triggers.before_find(principal, class_name, options)
    results = preset or []
    if triggers.has(class_name, "after_find"):
        results = triggers.after_find(principal, class_name, results, options)
    return Found(results, len(results) if options.count else None)


def run_after_find(
    principal: Principal,
    table: ClassTable,
    results: list[Record] | list[Wire],
    options: FindOptions,
    *,
    is_get: bool = False,
) -> list[Record] | list[Wire]:
    """Return what handlers after a find make of the results."""
    if not triggers.has(table.class_name, "after_find"):
        return results
    objects = [wire_object(item) for item in results]
    return triggers.after_find(principal, table.class_name, objects, options, is_get=is_get)


_BY_AGE = (OrderKey((CREATED_AT,)),)


def _order(options: FindOptions) -> tuple[OrderKey, ...]:
    """Return the requested order, by distance for a search around a point, else by age."""
    if options.order or near_of(options.where) is not None:
        return options.order
    return _BY_AGE


def get(
    principal: Principal, class_name: ClassName, object_id: ObjectId, options: FindOptions = _WHOLE
) -> Record | Wire:
    """Return one object; ``keys``, ``excludeKeys`` and ``include`` of ``options`` apply.

    Raises ``ObjectNotFound`` also when the caller may not read it.
    """
    return with_current_classes(lambda: _get(principal, class_name, object_id, options))


def _get(
    principal: Principal, class_name: ClassName, object_id: ObjectId, options: FindOptions
) -> Record | Wire:
    table = table_for_reading(principal, class_name)
    if table is None:
        triggers.before_find(principal, class_name, options, is_get=True, object_id=object_id)
        raise ObjectNotFound
    condition = readable(principal, table, "get")
    options, preset = triggers.before_find(
        principal, table.class_name, options, is_get=True, object_id=object_id
    )
    results: list[Record] | list[Wire] = preset or []
    if preset is None and is_object_id(object_id):
        where = all_of(options.where, condition)
        memory = result_memory.of_query()
        record = reads.get(table, object_id, where, Scope(principal), memory)
        if record is not None:
            results = shape(principal, table, [record], options, memory)
    if results:
        results = run_after_find(principal, table, results, options, is_get=True)
    if not results:
        raise ObjectNotFound
    return results[0]


def count(principal: Principal, class_name: ClassName, where: Query) -> int:
    """Return how many objects satisfy a query, of those that the caller may read."""

    def counted() -> int:
        table = table_for_reading(principal, class_name)
        if table is None:
            return 0
        check_question(principal, table, where)
        count_options = FindOptions(where=where, limit=0, count=True)
        options, preset = triggers.before_find(principal, table.class_name, count_options)
        if preset is not None:
            return len(preset)
        return _count(principal, table, options.where, Scope(principal))

    return with_current_classes(counted)


def _count(principal: Principal, table: ClassTable, where: Query, scope: Scope) -> int:
    condition = readable(principal, table, "count")
    return reads.count(table, all_of(where, condition), scope)


def aggregate(principal: Principal, class_name: ClassName, aggregation: Aggregation) -> list[str]:
    """Return the results of a pipeline, or the distinct values of a field, each as JSON text.

    With ``explain`` the only result is PostgreSQL's plan, in the form of Parse Server's.
    For the master key: a pipeline sees all objects and fields.
    """
    if not principal.has_master_key:
        raise MasterKeyRequired

    def aggregated() -> list[str]:
        table = table_for_reading(principal, class_name)
        if table is None:
            return []
        scope = Scope(principal)
        statement = compile_aggregation(aggregation, table, scope)
        if aggregation.explain:
            plan = reads.plan(table, statement, scope)
            return [msgspec.json.encode(_plan_as_result(plan)).decode()]
        return reads.select(table, statement, scope, result_memory.of_query())

    return with_current_classes(aggregated)


def table_for_reading(principal: Principal, class_name: ClassName) -> ClassTable | None:
    """Return the class; None where a class that isn't there reads as an empty one."""
    table = registry.find(class_name)
    if table is None:
        check_missing_class(principal, class_name)
    return table


def shape(
    principal: Principal,
    table: ClassTable,
    records: list[Record],
    options: FindOptions,
    memory: ResultMemory,
) -> list[Record] | list[Wire]:
    """Return the records as the caller gets them, unchanged if no field is added or hidden."""
    includes = options.include or options.include_all
    project = projection(table, options)
    protects = hidden_fields(principal, table) or hides_by_object(principal, table)
    rules = rules_of(table.class_name) if principal.is_maintenance else None
    if not (includes or project or protects or rules):
        return records
    objects = visible(principal, table, decoded(records, memory))
    if rules is not None:
        rules.add_internal_fields(objects)
    if includes:
        expand(principal, table, objects, options, memory)
    return objects if project is None else [project(obj) for obj in objects]
