"""Component schemas from typed declarations: a ``TypedDict`` or a ``msgspec.Struct`` that stands
for the JSON of a request or a response."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec import Meta

from backend.kernel.json_types import Schema

_COMPONENTS = "#/components/schemas/"

DateTime: TypeAlias = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
Uri: TypeAlias = Annotated[str, Meta(extra_json_schema={"format": "uri"})]
EmptyObject: TypeAlias = Annotated[dict[str, Any], Meta(max_length=0)]


class AnyOf:
    """One of several types, also where ``msgspec`` has no union of them."""

    def __init__(self, *types: Any) -> None:
        self.types = types


def ref(name: str) -> Schema:
    """Return a reference to a component schema."""
    return {"$ref": f"{_COMPONENTS}{name}"}


def schema_of(type_: Any, components: dict[str, Schema]) -> Schema:
    """Return the schema of a declared type, and add those it refers to to ``components``.

    Each ``TypedDict`` and ``Struct`` is a component with the name of the class, unless the name
    starts with an underscore: then it is written in place. Any other type is a component if its
    ``Meta`` has a title. A mapping is taken as the schema itself. Raises ``ValueError`` for two
    components with the same name.
    """
    if isinstance(type_, Mapping):
        return dict(type_)
    if isinstance(type_, AnyOf):
        return {"anyOf": [schema_of(each, components) for each in type_.types]}
    (schema,), parts = msgspec.json.schema_components([type_], ref_template=_COMPONENTS + "{name}")
    private = {ref(name)["$ref"]: part for name, part in parts.items() if name.startswith("_")}

    def finish(value: Any) -> Any:
        if isinstance(value, list):
            return [finish(item) for item in value]
        if not isinstance(value, dict):
            return value
        value = {**private.get(value.get("$ref", ""), value)}
        # A property may be called title, too; its value is a schema.
        name = value.pop("title") if isinstance(value.get("title"), str) else "_"
        result = _simplified({key: finish(each) for key, each in value.items()})
        if name.startswith("_"):
            return result
        if components.setdefault(name, result) != result:
            raise ValueError(f"There are two component schemas {name}.")
        return ref(name)

    for name, part in parts.items():
        if not name.startswith("_"):
            finish(part)
    finished: Schema = finish(schema)
    return finished


def _simplified(schema: Schema) -> Schema:
    """Write ``type: [string, null]`` for a union of plain types and ``const`` for one value, and
    leave out an empty ``required``."""
    if isinstance(schema.get("description"), str):  # a docstring has line breaks
        schema["description"] = schema["description"].replace("\n", " ")
    if schema.get("required") == []:
        del schema["required"]
    if schema.get("type") == "array":
        schema.setdefault("items", {})
    if isinstance(schema.get("enum"), list) and len(schema["enum"]) == 1:
        schema["const"] = schema.pop("enum")[0]
    members = schema.get("anyOf")
    if isinstance(members, list) and all(isinstance(each.get("type"), str) for each in members):
        types = [each["type"] for each in members]
        del schema["anyOf"]
        for each in members:
            schema = {**each, **schema}
        schema["type"] = types
    return schema
