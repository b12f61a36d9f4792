"""Documents that the projection stages of a pipeline make: the oracle for their SQL."""

from __future__ import annotations

from collections.abc import Mapping

from backend.kernel.json_types import Json
from objects.core.names import OBJECT_ID
from objects.core.pipeline.expressions import Expression
from objects.core.pipeline.stages.projections import Include, Named, Tree
from tests.oracles.expressions import evaluate


def included(stage: Include, document: Mapping[str, Json]) -> dict[str, Json]:
    """What the stage makes of a document."""
    result = _include(stage.tree, dict(document), document)
    names = [name for name, _ in stage.tree.parts]
    if stage.keeps_id and OBJECT_ID in document and OBJECT_ID not in names:
        result[OBJECT_ID] = document[OBJECT_ID]
    return result


def _include(tree: Tree, value: dict[str, Json], root: Mapping[str, Json]) -> dict[str, Json]:
    result: dict[str, Json] = {}
    for name, part in tree.parts:
        if isinstance(part, Named):
            if name in value:
                result[name] = value[name]
            continue
        if not isinstance(part, Tree):
            _put(result, name, part, root)
            continue
        inner = value.get(name)
        if isinstance(inner, list):
            result[name] = [_include(part, item, root) for item in inner if isinstance(item, dict)]
        elif isinstance(inner, dict):
            result[name] = _include(part, inner, root)
        elif part.computes:
            result[name] = _include(part, {}, root)
    return result


def _put(
    result: dict[str, Json], name: str, expression: Expression, root: Mapping[str, Json]
) -> None:
    computed = evaluate(expression, root)
    result.pop(name, None)
    if computed is None or isinstance(computed, bool | int | float | str | list | dict):
        result[name] = computed


def excluded(tree: Tree, value: Mapping[str, Json]) -> dict[str, Json]:
    """What ``Exclude`` with this tree makes of a document."""
    result = dict(value)
    for name, part in tree.parts:
        if not isinstance(part, Tree):
            result.pop(name, None)
            continue
        inner = result.get(name)
        if isinstance(inner, dict):
            result[name] = excluded(part, inner)
        elif isinstance(inner, list):
            result[name] = [
                excluded(part, item) if isinstance(item, dict) else item for item in inner
            ]
    return result


def with_fields(tree: Tree, value: Mapping[str, Json], root: Mapping[str, Json]) -> dict[str, Json]:
    """What ``SetFields`` with this tree makes of a document."""
    result = dict(value)
    for name, part in tree.parts:
        if isinstance(part, Named):
            continue
        if not isinstance(part, Tree):
            _put(result, name, part, root)
            continue
        inner = result.get(name)
        if isinstance(inner, list):
            result[name] = [
                with_fields(part, item if isinstance(item, dict) else {}, root) for item in inner
            ]
        else:
            result[name] = with_fields(part, inner if isinstance(inner, dict) else {}, root)
    return result
