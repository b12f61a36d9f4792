"""The functions' part of the API document: what each takes and returns, from its signature."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec

from backend.http.permissions import Requires
from backend.kernel.principal import Principal
from backend.openapi import Names, Offer, Operation, Part, answer, body, contribute, ref
from functions.runtime.parameters import Parameter
from functions.runtime.registry import Function, registry
from functions.runtime.values import Object

Json = dict[str, Any]

_TAG = "Functions"
# Values of objects, by what the schema of a signature says of them.
_TYPED = frozenset({"Pointer", "GeoPoint", "File", "Polygon", "Relation"})


def contribute_functions() -> None:
    """Describe the routes of ``functions.views``."""
    contribute(_functions)


def _functions(principal: Principal) -> Offer:
    visible = [one for one in registry.functions.values() if may_see(one, principal)]
    visible.sort(key=lambda one: one.name)
    return Offer(
        tuple((one.name, one.parameters) for one in visible), lambda names: _part(visible, names)
    )


def may_see(function: Function, principal: Principal) -> bool:
    """Whether the caller could call it, as far as that doesn't depend on the user's object."""
    asked = function.requirements
    if principal.is_master:
        return True
    if asked.master or (asked.asks_for_user and principal.user_id is None):
        return False
    held = principal.roles
    return asked.all_roles <= held and not (asked.any_role and asked.any_role.isdisjoint(held))


def _part(visible: list[Function], names: Names) -> Part:
    part = Part(
        {
            "/functions/{name}": {
                "post": Operation(
                    "callFunction",
                    _TAG,
                    "Call a function",
                    {"200": answer("What it returned.", _result({}))},
                    requires=Requires.APPLICATION,
                    body=body({"type": "object"}, required=False),
                )
            }
        }
    )
    schemas = _Schemas(names, part.schemas)
    for function in visible:
        part.paths[f"/functions/{function.name}"] = {"post": _operation(function, schemas)}
    return part


def _operation(function: Function, schemas: _Schemas) -> Operation:
    summary, _, rest = function.description.partition("\n")
    asked = function.requirements
    parameters = schemas.of_parameters(function)
    returned = _result(schemas.of_result(function))
    return Operation(
        f"call{function.name[:1].upper()}{function.name[1:]}",
        _TAG,
        summary.strip() or f"Call {function.name}",
        {"200": answer("What it returned.", returned)},
        requires=Requires.MASTER_KEY if asked.master else Requires.APPLICATION,
        needs_user=asked.asks_for_user and not asked.master,
        description=rest.strip(),
        body=body(parameters, required="required" in parameters),
    )


def _result(schema: Json) -> Json:
    return {"type": "object", "properties": {"result": schema}, "required": ["result"]}


class _Schemas:
    """Schemas of Python types, as of the JSON that stands for their values. The types that they
    are made of are components of their own."""

    def __init__(self, names: Names, components: dict[str, Json]) -> None:
        self._names = names
        self._components = components

    def of_parameters(self, function: Function) -> Json:
        """The body of a call."""
        found: Json = {
            "type": "object",
            "properties": {one.name: self._of_parameter(one) for one in function.parameters},
        }
        required = [one.name for one in function.parameters if one.is_required]
        return {**found, "required": required} if required else found

    def _of_parameter(self, one: Parameter) -> Json:
        schema = dict(self._of_type(one.type))
        if one.description:
            schema["description"] = one.description
        if not one.is_required and one.default is not None:
            schema["default"] = one.default
        return schema

    def of_result(self, function: Function) -> Json:
        """What a function says it returns; any value if it says nothing that a schema can say."""
        try:
            hints = get_type_hints(function.body, include_extras=True)
            return self._of_type(hints.get("return", Any))
        except (TypeError, NameError):
            return {}

    def _of_type(self, type_: Any) -> Json:
        (found,), parts = msgspec.json.schema_components(
            [_with_zone(type_)], schema_hook=_of_value, ref_template="{name}"
        )
        chosen = {name: self._names.take(name) for name in parts}
        for name, part in parts.items():
            self._components[chosen[name]] = _wire(part, chosen)
        schema: Json = _wire(found, chosen)
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


def _of_value(type_: type[Any]) -> Json:
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
