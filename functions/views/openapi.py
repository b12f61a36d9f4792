"""The functions' part of the API document: what each takes and returns, from its signature."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec

from backend.http.permissions import Requires
from backend.kernel.json_types import Schema
from backend.kernel.principal import Principal
from backend.openapi import Body, Names, Offer, Operation, Part, Route, answer, ref
from backend.openapi.operations import JSON_TYPE
from functions.runtime.parameters import Parameter
from functions.runtime.registry import Function, registry
from functions.runtime.values import Object

# Values of objects, by what the schema of a signature says of them.
_TYPED = frozenset({"Pointer", "GeoPoint", "File", "Polygon", "Relation"})


def described_functions(principal: Principal, routes: list[Route]) -> Offer:
    """Describe ``/functions/{name}``, and each function that the caller may call."""
    visible = [each for each in registry.functions.values() if may_see(each, principal)]
    visible.sort(key=lambda each: each.name)
    fingerprint = tuple((each.name, each.parameters) for each in visible)
    return Offer(fingerprint, lambda names: _part(visible, routes, names))


def may_see(function: Function, principal: Principal) -> bool:
    """Whether the caller could call it, as far as that doesn't depend on the user's object."""
    requirements = function.requirements
    if principal.has_master_key:
        return True
    if requirements.master or (requirements.asks_for_user and principal.user_id is None):
        return False
    roles = principal.roles
    return requirements.all_roles <= roles and not (
        requirements.any_role and requirements.any_role.isdisjoint(roles)
    )


def _part(visible: list[Function], routes: list[Route], names: Names) -> Part:
    part = Part({route.path: dict(route.operations) for route in routes})
    schemas = _Schemas(names, part.schemas)
    for function in visible:
        part.paths[f"/functions/{function.name}"] = {"post": _operation(function, schemas)}
    return part


def _operation(function: Function, schemas: _Schemas) -> Operation:
    summary, _, details = function.description.partition("\n")
    requirements = function.requirements
    parameters = schemas.of_parameters(function)
    returned = result_of(schemas.of_result(function))
    return Operation(
        f"call{function.name[:1].upper()}{function.name[1:]}",
        "Functions",
        summary.strip() or f"Call {function.name}",
        (answer("What it returned.", returned),),
        requires=Requires.MASTER_KEY if requirements.master else Requires.APPLICATION,
        needs_user=requirements.asks_for_user and not requirements.master,
        description=details.strip(),
        request=Body({JSON_TYPE: parameters}, required="required" in parameters),
    )


def result_of(schema: Schema) -> Schema:
    """Return the schema of the response to a call."""
    return {"type": "object", "properties": {"result": schema}, "required": ["result"]}


class _Schemas:
    """Schemas of Python types, as of the JSON that stands for their values. The types that they
    are made of are components of their own."""

    def __init__(self, names: Names, components: dict[str, Schema]) -> None:
        self._names = names
        self._components = components

    def of_parameters(self, function: Function) -> Schema:
        """Return the schema of the body of a call."""
        schema: Schema = {
            "type": "object",
            "properties": {each.name: self._of_parameter(each) for each in function.parameters},
        }
        required = [each.name for each in function.parameters if each.is_required]
        return {**schema, "required": required} if required else schema

    def _of_parameter(self, parameter: Parameter) -> Schema:
        schema = dict(self._of_type(parameter.type))
        if parameter.description:
            schema["description"] = parameter.description
        if not parameter.is_required and parameter.default is not None:
            schema["default"] = parameter.default
        return schema

    def of_result(self, function: Function) -> Schema:
        """Return the schema of the annotated result, or that of any value without one."""
        try:
            hints = get_type_hints(function.body, include_extras=True)
            return self._of_type(hints.get("return", Any))
        except (TypeError, NameError):
            return {}

    def _of_type(self, type_: Any) -> Schema:
        (own,), parts = msgspec.json.schema_components(
            [_with_zone(type_)], schema_hook=_of_value, ref_template="{name}"
        )
        chosen = {name: self._names.take(name) for name in parts}
        for name, part in parts.items():
            self._components[chosen[name]] = _wire(part, chosen)
        schema: Schema = _wire(own, chosen)
        return schema


def _with_zone(type_: Any) -> Any:
    """The type, with times marked: without, their schema is that of any text."""
    if type_ is datetime:
        return Annotated[datetime, msgspec.Meta(tz=True)]
    origin, arguments = get_origin(type_), get_args(type_)
    if origin in (Union, UnionType):
        return Union[tuple(map(_with_zone, arguments))]  # noqa: UP007 (made at run time)
    if origin in (list, set, frozenset, tuple, dict):
        return origin[tuple(map(_with_zone, arguments))]
    return type_


def _of_value(type_: type[Any]) -> Schema:
    """Of the values of ``functions.runtime.values``."""
    if type_.__name__ in _TYPED:
        return {"$ref": f"{type_.__name__}Value"}
    return {"type": "object"} if issubclass(type_, Object) else {}


def _wire(schema: Any, chosen: Mapping[str, str]) -> Any:
    if isinstance(schema, list):
        return [_wire(item, chosen) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return ref(chosen.get(schema["$ref"], schema["$ref"]))
    value = "DateValue" if schema.get("format") in ("date-time", "date") else None
    if schema.get("contentEncoding") == "base64":
        value = "BytesValue"
    if value is not None:
        # Text in the usual form is taken as well.
        return {"anyOf": [ref(value), schema]}
    return {key: _wire(item, chosen) for key, item in schema.items() if key != "title"}
