"""``$unwind`` and ``$lookup``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from backend.kernel.errors import InvalidQuery
from backend.kernel.json_types import Json
from backend.kernel.texts.shown import shown
from objects.core.names import ClassName, check_class_name
from objects.core.pipeline.expression_parser import parse_field
from objects.core.pipeline.paths import Path, parse_name, parse_path
from objects.core.pipeline.stage import Body, Stage, Stages, text
from objects.core.query.paths import is_index

_MAX_NESTED_PIPELINES: Final = 3


@dataclass(frozen=True, slots=True)
class Unwind(Stage):
    """One document for each element of an array; a value that is no array is its own element.

    Without elements (missing, null, empty) there is none, or with ``keep_empty`` the document
    without the array. ``index_name`` gets the element's position.
    """

    names = ("$unwind",)
    summary = (
        "one document for each element of an array:"
        ' `"$path"` or `{path, includeArrayIndex, preserveNullAndEmptyArrays}`'
    )

    path: Path
    index_name: str | None = None
    keep_empty: bool = False

    @classmethod
    def parse(cls, body: Body) -> Stages:
        place = body.place
        options: dict[str, Json] = (
            {"path": body.json} if isinstance(body.json, str) else body.fields()
        )
        if not options.keys() <= {"path", "includeArrayIndex", "preserveNullAndEmptyArrays"}:
            raise InvalidQuery(
                f"{place}: expected path, includeArrayIndex, preserveNullAndEmptyArrays"
            )
        path = parse_field(options.get("path"), f"{place}.path").path
        if not path or any(map(is_index, path)) or "__type" in path:
            raise InvalidQuery(f"{place}.path: expected the path of a field, without positions")
        keep_empty = options.get("preserveNullAndEmptyArrays", False)
        if not isinstance(keep_empty, bool):
            raise InvalidQuery(f"{place}.preserveNullAndEmptyArrays: expected true or false")
        index, here = options.get("includeArrayIndex"), f"{place}.includeArrayIndex"
        name = None if index is None else parse_name(text(index, place), here)
        return (cls(path, name, keep_empty),)


@dataclass(frozen=True, slots=True)
class Lookup(Stage):
    """To each document the array ``name`` of documents of another class, through more stages.

    With ``local`` those whose ``foreign`` field equals the local one, or an element of it; a
    pointer equals the id that it points to. Missing is null.
    """

    names = ("$lookup",)
    summary = (
        "adds an array of documents of another class: `{from, localField, foreignField, as}`, with"
        " or without `pipeline`, or `{from, pipeline, as}`. A pointer equals the id that it points"
        ' to: `localField: "owner", foreignField: "_id"` joins the owner,'
        ' `localField: "_id", foreignField: "owner"` what is owned'
    )

    class_name: ClassName
    name: str
    local: Path | None
    foreign: Path | None
    stages: Stages = ()

    @classmethod
    def parse(cls, body: Body) -> Stages:
        options, place = body.fields(), body.place
        for option in options:
            if option not in ("from", "localField", "foreignField", "as", "pipeline"):
                raise InvalidQuery(f"{place}.{shown(option)}: not supported")
        if ("localField" in options) != ("foreignField" in options) or not (
            "localField" in options or "pipeline" in options
        ):
            raise InvalidQuery(f"{place}: expected localField and foreignField, or pipeline")
        local = foreign = None
        if "localField" in options:
            local = parse_path(text(options["localField"], f"{place}.localField"), place)
            foreign = parse_path(text(options["foreignField"], f"{place}.foreignField"), place)
        stages: Stages = ()
        if "pipeline" in options:
            if body.depth >= _MAX_NESTED_PIPELINES:
                raise InvalidQuery(f"{place}: pipelines are nested too deeply")
            stages = body.parse(options["pipeline"], f"{place}.pipeline", body.depth + 1)
        class_name = check_class_name(text(options.get("from"), f"{place}.from"))
        name = parse_name(text(options.get("as"), f"{place}.as"), f"{place}.as")
        return (cls(class_name, name, local, foreign, stages),)
