"""Pipelines that copy values stop before PostgreSQL takes gigabytes for them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg.errors import ProgramLimitExceeded

from backend.kernel.errors import InvalidQuery
from objects.core.pipeline.costs import MEBIBYTE
from objects.core.pipeline.parser import parse_aggregation
from objects.sql.pipeline.statement import compile_aggregation
from tests.objects.sql.world import GENERIC, PROMOTED, World, pointer, thing

MOST = 1024
"""MiB that a server process may take for a pipeline, twice the limit of its documents."""
TIMEOUT = "3s"
"""For pipelines that may be stopped, as in the service by the time limit of its statements."""


class Process:
    """One server process with its objects, and the memory that it has taken."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self.connection = connection
        self.world = World(connection)
        self._status = Path(f"/proc/{connection.info.backend_pid}/status")
        if not self._status.exists():
            pytest.skip("the database server is on another machine")
        self._before = self._peak()

    def _peak(self) -> int:
        match = re.search(r"VmHWM:\s+(\d+) kB", self._status.read_text())
        assert match is not None
        return int(match[1]) // 1024

    @property
    def mebibytes(self) -> int:
        """What statements have taken at most."""
        return self._peak() - self._before

    def fill(self, number: int, size: int) -> None:
        """Store objects of a random text of this size, which can't be compressed."""
        self.connection.execute("SET statement_timeout = 0")
        self.connection.execute("TRUNCATE thing")
        self.connection.execute(
            "INSERT INTO thing SELECT 't' || i, now(), now(), NULL, NULL, jsonb_build_object("
            " 'name', (SELECT left(string_agg(md5(i::text || j::text), ''), %s)"
            " FROM generate_series(0, %s / 32) j),"
            " 'score', i %% 7, 'tags', jsonb_build_array(i, i + 1, 'x'))"
            " FROM generate_series(1, %s) i",
            (size, size, number),
        )

    def attempt(self, timeout: str, *pipeline: object) -> int | None:
        """Return the number of results; None if the pipeline is stopped or refused."""
        self.connection.execute(f"SET statement_timeout = '{timeout}'")
        try:
            aggregation = parse_aggregation({"pipeline": list(pipeline)})
            statement = compile_aggregation(aggregation, GENERIC, self.world)
            rows = self.connection.execute(
                f"SELECT value::text FROM ({statement.text}) AS s",  # type: ignore[arg-type]
                statement.params,
            ).fetchall()
        except (ProgramLimitExceeded, InvalidQuery, psycopg.errors.QueryCanceled):
            return None
        return len(rows)

    def run(self, *pipeline: object) -> int | None:
        """As ``attempt``, without a limit of time."""
        return self.attempt("0", *pipeline)


@pytest.fixture
def process() -> Iterator[Process]:
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
        yield Process(connection)


ALL = {"$group": {"_id": None, "all": {"$push": "$$ROOT"}}}
EVERY = {"$lookup": {"from": "Thing", "as": "every", "pipeline": []}}
SIZE = {"$project": {"n": {"$size": "$all"}}}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "size", "pipeline"),
    [
        (1, 1_000_000, [{"$project": {"n": {"$strLenCP": {"$concat": ["$name"] * 50}}}}] * 2),
        (1, 100_000, [{"$addFields": {"name": {"$concat": ["$name"] * 9}}}] * 4),
        (1, 1_000_000, [{"$set": {f"f{n}": {"$concat": ["$name", "a"]} for n in range(500)}}]),
        (1, 1_000_000, [{"$project": {f"f{n}": ["$$ROOT"] for n in range(500)}}]),
        (1, 1_000_000, [{"$addFields": {"tags": {"$concatArrays": [["$name"] * 50] * 50}}}]),
        (100_000, 500, [ALL, SIZE]),
        (3_000, 10, [{"$project": {"all": {"$literal": [{}] * 1000}}},
                     {"$group": {"_id": None, "all": {"$push": "$all"}}}, SIZE]),
        (400_000, 1, [{"$group": {"_id": None, "all": {"$addToSet": "$_id"}}}, SIZE]),
        (20_000, 500, [ALL, *[{"$addFields": {"x": 1}}] * 47, SIZE]),
        (20_000, 500, [ALL, {"$sort": {f"all.f{n}": 1 for n in range(32)}}, SIZE]),
        (20_000, 500, [ALL, {"$match": {"$or": [{f"all.{n}.x": 1} for n in range(90)]}}]),
        (1_000, 5_000, [ALL, {"$addFields": {"b": ["$all"] * 1000}}]),
        (1_000, 1_000, [ALL, {"$addFields": {"all.x": "$all"}}, SIZE]),
        (1_000, 1_000, [EVERY, {"$group": {"_id": None, "all": {"$push": "$every"}}}, SIZE]),
        (1_000, 1_000, [EVERY, {"$unwind": "$every"}, {"$group": {"_id": None, "all": {
            "$addToSet": "$$ROOT"}}}, SIZE]),
        (1_000, 1_000, [ALL, {"$unwind": "$all"}, {"$lookup": {
            "from": "Thing", "as": "every", "pipeline": [EVERY]}}]),
    ],
)  # fmt: skip
def test_a_pipeline_that_multiplies_is_stopped_within_its_memory(process, number, size, pipeline):
    process.fill(number, size)
    process.attempt(TIMEOUT, *pipeline)
    assert process.mebibytes < MOST


@pytest.mark.slow
def test_the_first_and_the_greatest_value_are_found_without_holding_all(process):
    process.fill(60_000, 1_000)
    values = {"first": {"$first": "$$ROOT"}, "last": {"$last": "$name"}, "max": {"$max": "$tags"}}
    assert process.run({"$group": {"_id": None, **values}}) == 1
    assert process.mebibytes < 64


@pytest.mark.slow
def test_large_results_within_the_limits_are_returned(process):
    process.fill(5_000, 500)
    assert process.run(ALL, SIZE) == 1
    assert process.run(ALL, {"$unwind": "$all"}, {"$count": "n"}) == 1
    assert process.run({"$group": {"_id": "$score", "all": {"$push": "$$ROOT"}}}) == 7
    assert process.run({"$group": {"_id": "$score", "all": {"$addToSet": "$tags"}}}) == 7
    process.fill(1_000, 500)
    assert process.run({"$limit": 100}, EVERY) == 100


@pytest.mark.parametrize("table", [GENERIC, PROMOTED], ids=["in data", "promoted"])
def test_a_compressed_object_counts_with_its_full_size(process, table):
    process.world.fill(
        [thing("a", name="x" * 12 * MEBIBYTE, title="x", owner=pointer("Other", "o"))]
    )
    pipeline = [{"$project": {"n": {"$strLenCP": {"$concat": ["$name"] * 20}}}}]
    statement = compile_aggregation(parse_aggregation({"pipeline": pipeline}), table, process.world)
    with pytest.raises(ProgramLimitExceeded):
        process.connection.execute(statement.text, statement.params)  # type: ignore[arg-type]


# --- by property ---------------------------------------------------------------------------------

NAMES = ["name", "tags", "all", "every", "new"]
names = st.sampled_from(NAMES)
fields = names.map(lambda name: f"${name}") | st.just("$$ROOT")


def copies(inner: st.SearchStrategy) -> st.SearchStrategy:
    number = st.sampled_from([1, 2, 10, 50])
    return st.one_of(
        st.builds(lambda each, n: {"$concat": [each] * n}, inner, number),
        st.builds(lambda each, n: {"$concatArrays": [each] * n}, inner, number),
        st.builds(lambda each, n: [each] * (n * 4), inner, number),
        st.builds(lambda each, n: {f"k{i}": each for i in range(n)}, inner, number),
        st.builds(lambda each: {"$ifNull": [each, "$name"]}, inner),
        st.builds(lambda each: {"$cond": ["$name", each, "$tags"]}, inner),
    )


growing = st.recursive(fields, copies, max_leaves=4)
stages = st.one_of(
    st.builds(lambda name, each: {"$addFields": {name: each}}, names, growing),
    st.builds(lambda name, each: {"$addFields": {f"{name}.x": each}}, names, growing),
    st.builds(lambda each, other: {"$project": {"name": each, "all": other}}, growing, growing),
    st.builds(
        lambda key, how, each: {"$group": {"_id": key, "all": {how: each}}},
        st.sampled_from([None, "$score"]),
        st.sampled_from(["$push", "$addToSet", "$first", "$max"]),
        growing,
    ),
    st.just(EVERY),
    names.map(lambda name: {"$unwind": {"path": f"${name}", "preserveNullAndEmptyArrays": True}}),
    st.builds(lambda name: {"$sort": {name: 1}}, names),
)


@pytest.mark.slow
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.sampled_from([(1, 1_000_000), (30, 20_000), (1_000, 500)]),
    st.lists(stages, min_size=1, max_size=5),
)
def test_no_pipeline_takes_more_than_its_memory(process, objects, pipeline):
    process.fill(*objects)
    process.attempt("2s", *pipeline, {"$count": "n"})
    process.attempt("2s", *pipeline, {"$project": {"n": {"$size": "$all"}}})
    assert process.mebibytes < MOST
