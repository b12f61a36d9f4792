"""The parameters of a function as inputs of a form, each by its type, and back.

``inputs`` shows them, ``read`` takes what was entered, as the JSON that a client would send.
The function itself validates them when it is called; here only values that aren't a number, a date
or JSON at all are rejected.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import msgspec
from msgspec import inspect

from backend.kernel.errors import InvalidJSON, ServiceError
from backend.kernel.json_types import Json
from functions.runtime.parameters import Parameter, Parameters, expected
from functions.runtime.values import File, GeoPoint, Object, Pointer, Polygon, Relation
from objects.admin.values import read_json, read_number
from objects.core.values import date, normalise_date

Kind = Literal["text", "number", "checkbox", "choice", "moment", "day", "json"]
MORE: Final = "more"
"""The control for what the signature doesn't name: a JSON object."""

_KINDS: Final[Mapping[type[inspect.Type], Kind]] = {
    inspect.StrType: "text",
    inspect.UUIDType: "text",
    inspect.DecimalType: "text",
    inspect.TimeType: "text",
    inspect.TimeDeltaType: "text",
    inspect.IntType: "number",
    inspect.FloatType: "number",
    inspect.BoolType: "checkbox",
    inspect.DateTimeType: "moment",
    inspect.DateType: "day",
}
_WIRE: Final[Mapping[type, str]] = {
    Pointer: '{"__type": "Pointer", "className": "…", "objectId": "…"}',
    GeoPoint: '{"__type": "GeoPoint", "latitude": 0, "longitude": 0}',
    Polygon: '{"__type": "Polygon", "coordinates": [[0, 0], [0, 1], [1, 0]]}',
    File: '{"__type": "File", "name": "…"}',
    Relation: '{"__type": "Relation", "className": "…"}',
    Object: '{"__type": "Object", "className": "…", "objectId": "…"}',
    bytes: '{"__type": "Bytes", "base64": "…"}',
}
_LIMITS: Final[Mapping[str, str]] = {
    "minimum": "at least {}",
    "exclusiveMinimum": "more than {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "less than {}",
    "multipleOf": "a multiple of {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "pattern": "like {}",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
}


@dataclass(slots=True)
class Input:
    """One parameter in a form. ``text`` is what its control holds, ``default`` empty for none."""

    name: str
    kind: Kind
    what: str
    description: str
    is_required: bool
    default: str
    example: str = ""
    choices: list[Json] = field(default_factory=list)
    is_nullable: bool = False
    text: str = ""
    is_empty_text: bool = False
    error: str = ""

    @property
    def key(self) -> str:
        """The name of its control."""
        return f"p.{self.name}"

    @property
    def options(self) -> list[tuple[str, str]]:
        """The choices: what the control holds, and what people read."""
        return [
            (_json(choice), choice if isinstance(choice, str) else _json(choice))
            for choice in self.choices
        ]

    @property
    def rows(self) -> int:
        """How many lines its control has."""
        return min(max(self.text.count("\n") + 1, len(self.text) // 80 + 1), 20)


def inputs(parameters: Parameters) -> list[Input]:
    """Return the inputs of an empty form."""
    return [_input(parameter) for parameter in parameters]


def read(parameters: Parameters, form: Mapping[str, str]) -> tuple[dict[str, Json], list[Input]]:
    """What was entered, as wire JSON by parameter, and the inputs as they were filled in.

    An empty input isn't sent. An invalid one carries its error.
    """
    filled, params = inputs(parameters), {}
    for item in filled:
        item.text, item.is_empty_text = form.get(item.key, ""), f"{item.key}.empty" in form
        try:
            value = _value(item)
        except ServiceError as error:
            item.error = error.message
            continue
        if value is not _NOTHING:
            params[item.name] = value
    return params, filled


def read_more(text: str) -> dict[str, Json]:
    """Further parameters. Raises ``InvalidJSON``."""
    value = read_json(text) if text.strip() else {}
    if not isinstance(value, dict):
        raise InvalidJSON('expected an object in JSON, like {"a": 1}')
    return value


def example(parameters: Parameters) -> dict[str, Json]:
    """What a call has to have at least, with values to be replaced."""
    return {item.name: _example(item) for item in inputs(parameters) if item.is_required}


def in_words(parameter: Parameter) -> str:
    """What a parameter has to be."""
    schema = _own_schema(parameter.schema)
    if "enum" in schema:
        return "one of " + ", ".join(_shown(value) for value in parameter_choices(parameter))
    limits = [text.format(schema[name]) for name, text in _LIMITS.items() if name in schema]
    return ", ".join([expected(parameter), *limits])


def parameter_choices(parameter: Parameter) -> list[Json]:
    """The values that a parameter may have, where its type lists them."""
    choices = _own_schema(parameter.schema).get("enum", [])
    return list(choices)


_NOTHING: Final[Any] = object()


def _own_schema(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema of the values that aren't null."""
    schemas = [option for option in schema.get("anyOf", ()) if option != {"type": "null"}]
    return schemas[0] if len(schemas) == 1 else schema


def _input(parameter: Parameter) -> Input:
    kind, is_nullable, type_ = _kind(parameter.type)
    choices = parameter_choices(parameter)
    if choices:
        kind = "choice"
    elif kind == "checkbox" and not _is_switch(parameter, is_nullable):
        kind, choices = "choice", [True, False]
    default = "" if parameter.default is None else _shown(parameter.default)
    made = Input(
        parameter.name,
        kind,
        in_words(parameter),
        parameter.description,
        parameter.is_required,
        default,
        _sample(type_) if kind == "json" else "",
        choices,
        is_nullable,
    )
    if kind == "checkbox" and parameter.default is True:
        made.text = "on"
    return made


def _is_switch(parameter: Parameter, is_nullable: bool) -> bool:
    """Whether there are just two cases, and a checkbox can tell them."""
    return not is_nullable and (parameter.is_required or isinstance(parameter.default, bool))


def _kind(type_: Any) -> tuple[Kind, bool, inspect.Type]:
    """Return the kind of control, whether null is allowed, and the type without null."""
    info = _plain(inspect.type_info(type_))
    is_nullable = False
    if isinstance(info, inspect.UnionType):
        types = [member for member in info.types if not isinstance(member, inspect.NoneType)]
        is_nullable = len(types) < len(info.types)
        if len(types) == 1:
            info = _plain(types[0])
    return _KINDS.get(type(info), "json"), is_nullable, info


def _plain(type_: inspect.Type) -> inspect.Type:
    while isinstance(type_, inspect.Metadata):
        type_ = type_.type
    return type_


def _sample(type_: inspect.Type) -> str:
    if isinstance(type_, inspect.CustomType):
        return _WIRE.get(type_.cls, "")
    if isinstance(type_, inspect.BytesType):
        return _WIRE[bytes]
    if isinstance(type_, inspect.ListType | inspect.SetType | inspect.VarTupleType):
        return "[…]"
    return "" if isinstance(type_, inspect.AnyType | inspect.UnionType) else "{…}"


def _value(item: Input) -> Any:
    """Return the entered value as a client sends it, or ``_NOTHING`` if it isn't sent."""
    text = item.text.strip()
    if item.kind == "checkbox":
        return bool(text)
    if item.kind == "text":
        # Browsers send every end of a line as two characters.
        if item.text or item.is_empty_text:
            return item.text.replace("\r\n", "\n")
        return _absent(item)
    if not text:
        return _absent(item)
    match item.kind:
        case "number":
            return read_number(text)
        case "moment":
            return date(normalise_date(text, item.name))
        case "day":
            return text
    return read_json(text)


def _absent(item: Input) -> Any:
    return None if item.is_required and item.is_nullable else _NOTHING


def _example(item: Input) -> Json:
    match item.kind:
        case "number":
            return 1
        case "checkbox":
            return True
        case "choice":
            return item.choices[0]
        case "moment":
            return {"__type": "Date", "iso": "2030-01-31T12:00:00.000Z"}
        case "day":
            return "2030-01-31"
        case "json":
            try:
                return read_json(item.example)
            except InvalidJSON:
                return [] if item.example.startswith("[") else {}
    return "…"


def _shown(value: Any) -> str:
    return value if isinstance(value, str) and value else _json(value)


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
