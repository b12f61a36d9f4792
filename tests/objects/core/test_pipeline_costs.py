"""The size that values of a pipeline may have: bounds hold, and growth is refused."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.kernel.errors import InvalidQuery
from objects.core.pipeline.bounds import WHOLE, Bound, documents, largest, total
from objects.core.pipeline.costs import (
    MAX_COPIES,
    MEBIBYTE,
    MEMORY,
    largest_document,
    limits_of,
    measured,
    stage_memory,
)
from objects.core.pipeline.expression_parser import parse_expression
from objects.core.pipeline.operators.dates import MAX_FORMAT
from objects.core.pipeline.parser import parse_aggregation
from objects.core.pipeline.stage import Stage
from tests.oracles.expressions import MISSING, evaluate

SHORT = ["", "a", "bcd" * 5, "é" * 20]
scalars = st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(SHORT)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("xyz"), inner),
    max_leaves=10,
)
objects = st.fixed_dictionaries(dict.fromkeys("abc", values))
leaves = st.sampled_from(["$a", "$b", "$c.x", "$$ROOT", "$none"]) | values.map(
    lambda value: {"$literal": value}
)


def calls(inner):
    many = st.lists(inner, min_size=1, max_size=4)
    return (
        many
        | st.fixed_dictionaries({"k": inner, "l": inner})
        | many.map(lambda operands: {"$concat": operands})
        | many.map(lambda operands: {"$concatArrays": operands})
        | st.tuples(inner, inner).map(lambda pair: {"$ifNull": list(pair)})
        | st.tuples(inner, inner, inner).map(lambda three: {"$cond": list(three)})
        | st.tuples(inner, inner, inner).map(
            lambda three: {
                "$switch": {"branches": [{"case": three[0], "then": three[1]}], "default": three[2]}
            }
        )
        | inner.map(lambda operand: {"$toUpper": [operand]})
        | inner.map(lambda operand: {"$substr": [operand, 0, 5]})
        | inner.map(lambda operand: {"$first": [operand]})
        | inner.map(lambda operand: {"$size": [operand]})
        | st.tuples(inner, inner).map(lambda pair: {"$add": list(pair)})
    )


expressions = st.recursive(leaves, calls, max_leaves=12)
bounds = st.builds(
    Bound,
    st.dictionaries(st.sampled_from(["a", "b", "c", WHOLE]), st.integers(0, 9)),
    st.integers(0, 99),
)


def stages_of(*pipeline):
    return parse_aggregation({"pipeline": list(pipeline)}).stages


def text_size(value):
    return len(json.dumps(value, ensure_ascii=False).encode())


@given(expressions, objects)
def test_no_value_is_larger_than_its_bound(expression, document):
    node = parse_expression(expression, "x")
    value = evaluate(node, document)
    if value is MISSING:
        return
    bound = measured(node).value
    most = bound.constant
    for name, number in bound.copies.items():
        most += number * (
            text_size(document) if name == WHOLE else text_size(document.get(name)) + len(name)
        )
    assert text_size(value) <= most + 32


@given(expressions)
def test_computing_a_value_takes_at_least_its_size(expression):
    both = measured(parse_expression(expression, "x"))
    assert both.memory.factor >= both.value.factor
    assert both.memory.constant >= both.value.constant


@given(bounds, bounds)
def test_bounds_together_are_no_smaller_than_the_larger_and_no_larger_than_both(first, second):
    together = total([first, second])
    assert together == first + second
    assert together.factor <= first.factor + second.factor
    assert together.factor >= largest([first, second]).factor >= max(first.factor, second.factor)
    assert (first * 3).factor == 3 * first.factor


def test_copies_of_different_fields_are_one_copy_of_the_document():
    assert total(Bound({name: 1}) for name in "abc").factor == 1
    assert (Bound({"a": 2, "b": 3}) + documents(1)).factor == 4


TENFOLD = {"$addFields": {"s": {"$concat": ["$s"] * 10}}}
TWENTYFOLD = {"$addFields": {"l": ["$l"] * 20}}


@pytest.mark.parametrize(
    ("pipeline", "place"),
    [
        ([TENFOLD] * 5, "pipeline.4.$addFields.s"),
        ([TWENTYFOLD] * 6, "pipeline.3.$addFields.l"),
        (
            [
                {"$group": {"_id": None, "all": {"$push": "$$ROOT"}}},
                {"$addFields": {"b": ["$all"] * 1000}},
                {"$set": {"c": {"d": ["$b"] * 1000}}},
            ],
            "pipeline.2.$set.c",
        ),
        (
            [{"$project": {"x": {"$concatArrays": ["$x"] * 50}}}] * 2
            + [{"$group": {"_id": "$x", "y": {"$push": ["$x"] * 50}}}],
            "pipeline.2.$group.y",
        ),
        ([{"$addFields": {"a": {"x": "$$ROOT", "y": "$$ROOT"}}}] * 20, "pipeline.8.$addFields.a"),
        (
            [{"$lookup": {"from": "A", "as": "x", "pipeline": [TENFOLD] * 5}}],
            "pipeline.0.$lookup.pipeline.4.$addFields.s",
        ),
    ],
)
def test_a_pipeline_that_copies_a_value_over_and_over_is_refused_with_its_place(pipeline, place):
    with pytest.raises(InvalidQuery) as refused:
        stages_of(*pipeline)
    assert str(refused.value).startswith(
        f"{place}: the value holds more than {MAX_COPIES:,} copies"
    )


HONEST = [
    [{"$match": {"a": {"$gt": 1}}}, {"$sort": {"a": 1}}, {"$limit": 10}],
    [{"$group": {"_id": "$a", "n": {"$sum": 1}, "all": {"$push": "$$ROOT"}}}, {"$sort": {"n": -1}}],
    [{"$project": {f"f{n}": 1 for n in range(500)}}],
    [{"$project": {f"f{n}": {"$concat": [f"$a{n}", " ", f"$b{n}"]} for n in range(100)}}],
    [{"$lookup": {"from": "A", "localField": "a", "foreignField": "_id", "as": "b"}},
     {"$unwind": "$b"}, {"$group": {"_id": "$b.c", "t": {"$sum": {"$multiply": ["$n", "$b.p"]}}}}],
    [{"$addFields": {f"x{n}": {"$add": ["$a", n]}}} for n in range(10)],
]  # fmt: skip


@pytest.mark.parametrize("pipeline", HONEST, ids=range(len(HONEST)))
def test_ordinary_pipelines_have_room_for_large_documents(pipeline):
    assert largest_document(stages_of(*pipeline)) >= 2 * MEBIBYTE


def test_the_more_a_pipeline_copies_the_smaller_are_its_documents():
    sizes = [
        largest_document(stages_of({"$project": {"x": ["$s"] * number}}))
        for number in (1, 10, 100, 1000)
    ]
    assert sizes == sorted(sizes, reverse=True)
    assert all(size * 1000 <= 2 * MEMORY for size in sizes[-1:])
    long = [largest_document(stages_of(*[{"$unset": "x"}] * number)) for number in (1, 10, 50)]
    assert long == sorted(long, reverse=True)


def test_groups_and_lookups_inside_of_each_other_share_what_they_collect():
    group = {"$group": {"_id": None, "all": {"$push": "$$ROOT"}}}
    alone = limits_of(stages_of(group)).collected
    lookup = {"$lookup": {"from": "A", "as": "x", "pipeline": [group]}}
    assert limits_of(stages_of(group, lookup)).collected == alone // 2


def test_a_pipeline_without_room_for_documents_is_refused():
    fields = {f"f{n}": ["$$ROOT"] * 40 for n in range(60)}
    with pytest.raises(InvalidQuery, match="copies its documents and constants too often"):
        limits_of(stages_of({"$project": fields}))
    constant = {"$literal": list(range(1_500_000))}
    with pytest.raises(InvalidQuery, match="copies its documents and constants too often"):
        limits_of(stages_of({"$project": {"a": constant, "b": [constant]}}))


def test_a_stage_without_a_bound_is_an_error():
    class Odd(Stage):
        names = ("$odd",)

    with pytest.raises(TypeError, match="no bound of Odd"):
        stage_memory(Odd())


def test_the_format_of_a_date_and_the_fields_of_a_sort_are_bounded():
    date = {"$dateToString": {"date": "$a", "format": "%Y" * (MAX_FORMAT // 2)}}
    assert stages_of({"$project": {"x": date}})
    date["$dateToString"]["format"] += "-"
    with pytest.raises(InvalidQuery, match="format: expected at most 100 characters"):
        stages_of({"$project": {"x": date}})
    assert stages_of({"$sort": {f"f{n}": 1 for n in range(32)}})
    with pytest.raises(InvalidQuery, match=r"\$sort: at most 32 fields"):
        stages_of({"$sort": {f"f{n}": 1 for n in range(33)}})
