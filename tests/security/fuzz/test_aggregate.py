"""Aggregation pipelines: parsed and compiled to SQL, or refused."""

from __future__ import annotations

from typing import Any

import pytest

from objects.core.pipeline.parser import parse_aggregation
from objects.sql.pipeline.statement import compile_aggregation
from tests.objects.sql.world import GENERIC
from tests.security.fuzz.mutation import Mutator
from tests.security.fuzz.targets import (
    EXAMPLES,
    accepts,
    check_nothing_long_is_remembered,
    check_work_is_proportional,
    fuzz,
)
from tests.security.fuzz.test_where import _Scope

CORPUS: list[dict[str, Any]] = [
    {"pipeline": [{"$match": {"score": {"$gt": 1}, "_id": "a"}}, {"$limit": 5}, {"$skip": 1}]},
    {"pipeline": [{"$group": {"_id": "$name", "n": {"$sum": 1}, "most": {"$max": "$score"}}}]},
    {"pipeline": {"$group": {"_id": {"a": "$name", "b": {"$year": "$when"}}}}},
    {"pipeline": [{"$sort": {"score": -1, "name": 1}}, {"$sample": {"size": 2}}]},
    {"pipeline": [{"$project": {"name": 1, "sum": {"$add": ["$score", 1]}, "info.a": 1}}]},
    {"pipeline": [{"$addFields": {"x": {"$cond": [{"$eq": ["$score", 1]}, "$name", None]}}}]},
    {"pipeline": [{"$unwind": "$tags"}, {"$count": "n"}]},
    {"pipeline": [{"$unwind": {"path": "$tags", "preserveNullAndEmptyArrays": True}}]},
    {"pipeline": [{"$sortByCount": "$name"}, {"$unset": ["a", "b.c"]}, {"$set": {"y": "$x"}}]},
    {
        "pipeline": [
            {
                "$lookup": {
                    "from": "Other",
                    "localField": "owner",
                    "foreignField": "_id",
                    "as": "o",
                }
            }
        ]
    },
    {"distinct": "name", "where": {"score": {"$lt": 3}}},
    {"distinct": "info.a"},
    {"$match": {"name": {"$in": ["a"]}}, "$group": {"_id": None, "all": {"$push": "$name"}}},
    {"pipeline": [{"$project": {"s": {"$concat": ["$name", {"$toUpper": "$title"}]}}}]},
]


def use(params: dict[str, Any]) -> None:
    """Parse and compile."""
    statement = compile_aggregation(parse_aggregation(params), GENERIC, _Scope())
    assert statement.text.count("%s") == len(statement.params)


def make(mutator: Mutator) -> dict[str, Any]:
    params = mutator.json(mutator.sample())
    return params if isinstance(params, dict) else {"pipeline": params}


def test_the_examples_are_valid():
    accepts(use, CORPUS)


@EXAMPLES
def test_any_pipeline_is_compiled_or_refused(examples):
    fuzz(use, make, CORPUS, examples)


@pytest.mark.parametrize(
    "grown",
    [
        lambda size: [{"$limit": 1}] * size,
        lambda size: [{"$project": {f"a{number}": 1 for number in range(size)}}],
        lambda size: [{"$addFields": {"x": {"$add": ["$score"] * size}}}],
        lambda size: [{"$group": {"_id": None, **{f"a{n}": {"$sum": 1} for n in range(size)}}}],
        lambda size: [{"$sort": {f"a{number}": 1 for number in range(size)}}],
    ],
    ids=["stages", "project", "operands", "accumulators", "sort"],
)
def test_work_is_proportional_to_size(grown):
    check_work_is_proportional(use, lambda size: {"pipeline": grown(size)}, (5, 20, 80, 320))


def test_nothing_long_is_remembered():
    for pipeline in (
        lambda text: [{"$match": {text: text}}],
        lambda text: [{"$group": {"_id": f"${text}"}}],
        lambda text: [{"$project": {text: 1}}],
        lambda text: [{text: {}}],
    ):
        check_nothing_long_is_remembered(
            use, lambda text, pipeline=pipeline: {"pipeline": pipeline(text)}
        )
