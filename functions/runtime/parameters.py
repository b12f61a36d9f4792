"""The parameters of a function, from its signature.

``def pay(request, amount: Annotated[int, Meta(ge=1)], note: str = "")`` takes an ``amount`` and
maybe a ``note``. A type is anything that msgspec converts (``str``, ``int | None``, ``list[int]``,
``Literal``, ``datetime``, dataclasses, …) or a value of ``functions.runtime.values``; constraints
and descriptions stand in ``Annotated``. Plain Python, without Django.

A parameter that is missing or of another type is ``ScriptFailed`` (141), which names it and says
what was expected. What the signature doesn't name is available only in
``request.params``.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, get_args, get_origin, get_type_hints

import msgspec

from backend.kernel.errors import ScriptFailed
from functions.runtime.parameter_errors import choices, reason, type_names
from functions.runtime.time_zones import may_lack_zone, with_zones
from functions.runtime.values import File, GeoPoint, Object, Pointer, Polygon, Relation

Meta = msgspec.Meta

_TYPED: Final = (Pointer, GeoPoint, File, Polygon, Relation, Object)
_NO_TEXT: Final = inspect.Parameter.empty


@dataclass(frozen=True)
class Parameter:
    """One parameter: ``schema`` is its JSON schema, ``default`` None where it is required.

    ``may_lack_zone`` is set if a value may hold a time without a zone.
    """

    name: str
    type: Any
    is_required: bool
    default: Any
    description: str
    schema: Mapping[str, Any]
    may_lack_zone: bool


class Parameters:
    """The parameters of a function, created once when it is registered."""

    def __init__(self, parameters: Mapping[str, Parameter], takes_all: bool = False) -> None:
        self._parameters = parameters
        self._takes_all = takes_all

    def __iter__(self) -> Any:
        return iter(self._parameters.values())

    def read(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return keyword arguments from decoded values. Raises ``ScriptFailed``."""
        arguments: dict[str, Any] = dict(params) if self._takes_all else {}
        for name, parameter in self._parameters.items():
            if name in params:
                arguments[name] = _converted(parameter, params[name])
            elif parameter.is_required:
                raise ScriptFailed(f"Missing parameter: {name} ({expected(parameter)})")
        return arguments

    def schema(self) -> dict[str, Any]:
        """The JSON schema of the object with all parameters."""
        properties = {
            parameter.name: {
                **parameter.schema,
                **({"description": parameter.description} if parameter.description else {}),
                **(
                    {}
                    if parameter.is_required or parameter.default is None
                    else {"default": parameter.default}
                ),
            }
            for parameter in self
        }
        required = [parameter.name for parameter in self if parameter.is_required]
        return {
            "type": "object",
            "properties": properties,
            **({"required": required} if required else {}),
        }


def expected(parameter: Parameter) -> str:
    """Return a description of the values that a parameter accepts."""
    listed = choices(parameter.schema)
    if listed:
        return listed
    try:
        msgspec.convert(_Nothing(), parameter.type, dec_hook=_same)
    except msgspec.ValidationError as error:
        match = re.match(r"Expected `([^`]+)`(.*?)(?:, got|$)", str(error))
        if match:
            return type_names(match[1]) + match[2]
    return "a value"


class _Nothing:
    """Fits no type."""


def _converted(parameter: Parameter, value: Any) -> Any:
    try:
        converted = msgspec.convert(value, parameter.type, strict=True, dec_hook=_same)
    except msgspec.ValidationError as error:
        message = reason(str(error), parameter.schema)
        raise ScriptFailed(f"Invalid parameter {parameter.name}: {message}") from None
    return with_zones(converted) if parameter.may_lack_zone else converted


def _same(type_: type[Any], value: Any) -> Any:
    """Values of our own are converted already, or they are something else."""
    if isinstance(value, type_):
        return value
    raise msgspec.ValidationError(
        f"Expected `{type_.__name__}`, got `{_WIRE_NAMES.get(type(value), type(value).__name__)}`"
    )


_WIRE_NAMES: Final = {dict: "object", list: "array", type(None): "null"}


def of_signature(body: Callable[..., Any]) -> Parameters:
    """Return the parameters of a callable after the first one, the request.

    Raises ``TypeError`` for what can't be a parameter: positional-only ones, ``*args``, types
    that nothing can be converted to.
    """
    signature = list(inspect.signature(body).parameters.values())
    if not signature or signature[0].kind not in _POSITIONAL:
        raise TypeError("a function takes the request as its first parameter")
    try:
        hints = get_type_hints(body, include_extras=True)
    except NameError as error:
        raise TypeError(f"a type of a parameter isn't known where it is written: {error}") from None
    parameters: dict[str, Parameter] = {}
    takes_all = False
    for parameter in signature[1:]:
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            takes_all = True
            continue
        if parameter.kind not in (
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            inspect.Parameter.KEYWORD_ONLY,
        ):
            raise TypeError(f"the parameter {parameter.name} can't be given by name")
        parameters[parameter.name] = _parameter(parameter, hints.get(parameter.name, Any))
    return Parameters(parameters, takes_all)


_POSITIONAL: Final = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
)


def _parameter(parameter: inspect.Parameter, hint: Any) -> Parameter:
    description = ""
    type_ = hint
    if get_origin(hint) is Annotated:
        base, *notes = get_args(hint)
        description = " ".join(note for note in notes if isinstance(note, str))
        metas = [note for note in notes if isinstance(note, Meta)]
        described = [meta.description for meta in metas if meta.description]
        description = description or " ".join(described)
        type_ = base
        for meta in metas:
            type_ = Annotated[type_, meta]
    try:
        (schema,), components = msgspec.json.schema_components([type_], schema_hook=_schema)
    except TypeError as error:
        raise TypeError(f"the parameter {parameter.name} can't have this type: {error}") from None
    if components:
        schema = {**_inlined(schema, components)}
    is_required = parameter.default is _NO_TEXT
    default = None if is_required else _plain(parameter.default)
    return Parameter(
        parameter.name, type_, is_required, default, description, schema, may_lack_zone(type_)
    )


def _schema(type_: type[Any]) -> dict[str, Any]:
    if type_ in _TYPED:
        return {
            "type": "object",
            "properties": {"__type": {"const": type_.__name__}},
            "required": ["__type"],
        }
    raise TypeError(f"{type_!r} is no type of a parameter")


def _inlined(schema: Any, components: Mapping[str, Any], depth: int = 0) -> Any:
    """The schema with what it refers to in place; a type within itself becomes any object."""
    if isinstance(schema, dict):
        name = str(schema.get("$ref", "")).rpartition("/")[2]
        if name in components:
            if depth > _DEEPEST:
                return {"type": "object"}
            return _inlined(components[name], components, depth + 1)
        return {key: _inlined(value, components, depth) for key, value in schema.items()}
    if isinstance(schema, list):
        return [_inlined(item, components, depth) for item in schema]
    return schema


_DEEPEST: Final = 5


def _plain(value: Any) -> Any:
    """A default as the document shows it, where JSON can say it."""
    try:
        return msgspec.to_builtins(value)
    except (TypeError, msgspec.MsgspecError):
        return None
