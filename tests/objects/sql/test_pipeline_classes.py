"""Each stage, accumulator and operator of the pipeline is complete: SQL, oracle, strategy, docs."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from pathlib import Path
from types import ModuleType

import pytest

from objects.core.pipeline import accumulators, operators, stages
from objects.core.pipeline.accumulators import ACCUMULATORS, Accumulation
from objects.core.pipeline.expressions import Operator
from objects.core.pipeline.operators.registry import CONSTANTS, OPERATORS
from objects.core.pipeline.operators.registry import REGISTERED as REGISTERED_OPERATORS
from objects.core.pipeline.stage import Stage
from objects.core.pipeline.stages.registry import NODES, STAGES, documentation
from objects.core.pipeline.stages.registry import REGISTERED as REGISTERED_STAGES
from objects.core.pipeline.stages.selection import Match
from objects.sql.pipeline import accumulators as accumulators_sql
from objects.sql.pipeline import compilation, expressions
from objects.sql.pipeline.statement import check_complete
from tests.objects.sql import test_pipeline_sql as strategies
from tests.oracles import expressions as oracle

AGGREGATION = Path(__file__).resolve().parents[3] / "docs" / "aggregation.md"


def defined(package: ModuleType, base: type) -> set[type]:
    """All subclasses of a base that the modules of a package define, without bases of their own."""
    modules = [
        importlib.import_module(f"{package.__name__}.{module.name}")
        for module in pkgutil.iter_modules(package.__path__)
    ]
    return {
        value
        for module in modules
        for value in vars(module).values()
        if inspect.isclass(value)
        and issubclass(value, base)
        and value.__module__ == module.__name__
        and not value.__name__.startswith("_")
    }


def test_all_classes_are_registered():
    assert defined(operators, Operator) == set(REGISTERED_OPERATORS)
    assert defined(stages, Stage) == {*REGISTERED_STAGES, *NODES}
    accumulations = [
        value
        for value in vars(accumulators).values()
        if inspect.isclass(value) and issubclass(value, Accumulation)
    ]
    assert set(accumulations) == {*accumulators.REGISTERED, Accumulation}


@pytest.mark.parametrize(
    ("registered", "by_name"),
    [
        (REGISTERED_STAGES, STAGES),
        (accumulators.REGISTERED, ACCUMULATORS),
        (REGISTERED_OPERATORS, OPERATORS),
    ],
)
def test_names_are_unique_and_each_class_is_documented(registered, by_name):
    names = [name for each in registered for name in each.names]
    assert len(names) == len(set(names)) == len(by_name)
    assert all(each.names and each.summary for each in registered)


def test_each_class_has_its_own_sql():
    assert compilation.READINGS.keys() == set(NODES)
    constants = {name for each in CONSTANTS for name in each.names}
    assert expressions.READINGS.keys() == OPERATORS.keys() - constants
    assert accumulators_sql.READINGS.keys() == ACCUMULATORS.keys() - {"$count"}
    with pytest.raises(TypeError, match="Match has two classes of SQL"):
        compilation.sql_of(Match)(type(compilation.READINGS[Match]))
    with pytest.raises(TypeError, match=r"\$add has two classes of SQL"):
        expressions.sql_of(OPERATORS["$add"])(type(expressions.READINGS["$add"]))
    with pytest.raises(TypeError, match=r"\$sum has two classes of SQL"):
        accumulators_sql.sql_of(ACCUMULATORS["$sum"])(type(accumulators_sql.READINGS["$sum"]))


def test_a_class_without_sql_is_refused():
    class Odd(Stage):
        names = ("$odd",)

    with pytest.raises(TypeError, match=r"no SQL of Odd, \$literal, \$count$"):
        check_complete([*NODES, Odd], [OPERATORS["$literal"]], [ACCUMULATORS["$count"]])


def test_each_operator_has_an_oracle():
    assert oracle.NAMES == OPERATORS.keys() - {name for each in CONSTANTS for name in each.names}


def test_each_class_has_a_strategy():
    assert strategies.OPERANDS.keys() == OPERATORS.keys()
    assert strategies.ACCUMULATED.keys() == ACCUMULATORS.keys()
    assert {*strategies.BODIES, *strategies.LAST} == STAGES.keys() - {"$sample"}


def test_the_documented_tables_are_those_of_the_classes():
    """After a change, paste what ``registry.documentation()`` returns."""
    text = AGGREGATION.read_text()
    for table in documentation():
        assert f"\n\n{table}\n\n" in text
