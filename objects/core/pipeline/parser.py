"""The parser of aggregation pipelines: the parameters of ``/aggregate`` as stages.

``parse_aggregation`` is the only gate. A document in a pipeline is an object with ``objectId``, its
timestamps as Dates, and its fields, without access list and relations. ``_id`` is another name for
``objectId``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import msgspec

from backend.kernel.errors import InvalidJSON, InvalidQuery
from backend.kernel.json_types import Json
from backend.kernel.texts.shown import shown
from objects.core.pipeline.costs import check_growth
from objects.core.pipeline.limits import check_size
from objects.core.pipeline.paths import Path, parse_path
from objects.core.pipeline.stage import Body, Stage, Stages
from objects.core.pipeline.stages.registry import STAGES
from objects.core.pipeline.stages.selection import in_wire_names
from objects.core.query.options import is_explained
from objects.core.query.parser import parse_where
from objects.core.query.tree import Everything, Query

MAX_STAGES: Final = 50


@dataclass(frozen=True, slots=True)
class Aggregation:
    """A request to ``/aggregate``: stages over the objects of ``where``, or distinct values."""

    stages: Stages = ()
    where: Query = field(default_factory=Everything)
    distinct: Path | None = None
    raw_values: bool = False
    raw_field_names: bool = False
    explain: bool = False


_READ: Final = frozenset({"pipeline", "distinct", "where", "rawValues", "rawFieldNames", "explain"})
_PREFERENCES: Final = frozenset(
    {"readPreference", "includeReadPreference", "subqueryReadPreference"}
)
_WHERE_OF_DISTINCT: Final = "$where"
_OPTIONS: Final = _READ | _PREFERENCES | {"hint", "comment"}


def parse_aggregation(params: Mapping[str, Json]) -> Aggregation:
    """Parse the parameters of ``/aggregate``: a pipeline, its stages by name, or ``distinct``.

    Raises ``InvalidQuery`` that names the stage and the place, and what ``parse_where`` raises.
    """
    params = _with_where(params)
    pipeline = params.get("pipeline")
    if pipeline is None:
        pipeline = {key: value for key, value in params.items() if key not in _OPTIONS}
    elif not all(key in _OPTIONS for key in params):
        other = next(key for key in params if key not in _OPTIONS)
        raise InvalidQuery(f"Invalid parameter for query: {shown(other)}")
    if isinstance(params.get("where"), str):
        raise InvalidJSON("where parameter is not valid JSON")
    check_size(pipeline)
    stages = parse_stages(pipeline, "pipeline")
    if stages and params.get("distinct") is not None:
        raise InvalidQuery("distinct: either distinct values are asked for or a pipeline")
    return Aggregation(
        stages,
        parse_where(in_wire_names(params.get("where") or None), allow_internal=True),
        _distinct(params.get("distinct")),
        _flag(params, "rawValues"),
        _flag(params, "rawFieldNames"),
        is_explained(params),
    )


def _with_where(params: Mapping[str, Json]) -> Mapping[str, Json]:
    """Return the parameters with ``$where``, which distinct values may have, as ``where``."""
    if not params.get("distinct") or _WHERE_OF_DISTINCT not in params:
        return params
    if params.get("where") is not None:
        raise InvalidQuery(f"{_WHERE_OF_DISTINCT}: there is where as well")
    where = params[_WHERE_OF_DISTINCT]
    if isinstance(where, str):
        try:
            where = msgspec.json.decode(where)
        except (ValueError, RecursionError):
            raise InvalidJSON(f"{_WHERE_OF_DISTINCT}: expected JSON") from None
    remaining = {name: value for name, value in params.items() if name != _WHERE_OF_DISTINCT}
    return {**remaining, "where": where}


def _distinct(name: Json) -> Path | None:
    if name is None:
        return None
    if not isinstance(name, str):
        raise InvalidQuery("distinct: expected the name of a field")
    return parse_path(name, "distinct")


def _flag(params: Mapping[str, Json], name: str) -> bool:
    value = params.get(name, False)
    if not isinstance(value, bool):
        raise InvalidQuery(f"{name}: expected true or false")
    return value


def parse_stages(pipeline: Json, place: str, depth: int = 0) -> Stages:
    """Return the stages of a pipeline: an array of objects with one stage each, or one object."""
    if isinstance(pipeline, dict):
        pipeline = [{name: body} for name, body in pipeline.items()]
    if not isinstance(pipeline, list):
        raise InvalidJSON(f"{place}: expected an array of stages")
    if len(pipeline) > MAX_STAGES:
        raise InvalidQuery(f"{place}: a pipeline has at most {MAX_STAGES} stages")
    stages: list[tuple[str, Stage]] = []
    for index, stage in enumerate(pipeline):
        if not isinstance(stage, dict):
            raise InvalidJSON(f"{place}.{index}: expected an object with one stage")
        if len(stage) != 1:
            keys = ", ".join(shown(key) for key in stage)
            raise InvalidQuery(f"Pipeline stages should only have one key but found {keys}.")
        [(name, body)] = stage.items()
        here = f"{place}.{index}.{shown(name)}"
        stages += [(here, node) for node in _parse_stage(name, body, here, depth)]
    check_growth(stages)
    return tuple(node for _, node in stages)


def _parse_stage(name: str, body: Json, place: str, depth: int) -> Stages:
    if not name.startswith("$"):
        raise InvalidQuery(f"Invalid aggregate stage '{shown(name)}'.")
    stage = STAGES.get(name)
    if stage is None:
        raise InvalidQuery(f"Unrecognized pipeline stage name: '{shown(name)}'")
    return stage.parse(Body(body, place, depth, parse_stages))
