"""Each query operator is complete: parsing, predicate, SQL, strategy and documentation."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from pathlib import Path

import pytest

from objects.core.indexes.shapes import Use
from objects.core.query import operators, tree
from objects.core.query.node import Query
from objects.core.query.operators.geo import Within
from objects.core.query.operators.registry import (
    CLAUSES,
    COMPANIONS,
    NODES,
    OPERATORS,
    REGISTERED,
    documentation,
)
from objects.sql.compiler import check_complete
from objects.sql.operators.compilation import READINGS, sql_of
from tests.objects.sql import strategies

REST = Path(__file__).resolve().parents[3] / "docs" / "rest.md"
WITHOUT_USES = {"Everything", "Nothing", "RelatedTo", "ReadableBy", "WritableBy"}


def defined() -> set[type[Query]]:
    """All subclasses of ``Query`` that the package defines."""
    modules = [
        importlib.import_module(f"{operators.__name__}.{module.name}")
        for module in pkgutil.iter_modules(operators.__path__)
    ]
    return {
        value
        for module in modules
        for value in vars(module).values()
        if inspect.isclass(value)
        and issubclass(value, Query)
        and value.__module__ == module.__name__
    }


def test_all_classes_are_registered():
    assert defined() == {*NODES, *REGISTERED}
    assert len(NODES) == len(set(NODES))


@pytest.mark.parametrize("node", NODES, ids=lambda node: node.__name__)
def test_a_node_has_its_readings(node):
    assert node.predicate is not Query.predicate
    assert node in READINGS
    assert (node.uses is Query.uses) == (node.__name__ in WITHOUT_USES)


@pytest.mark.parametrize("operator", REGISTERED, ids=lambda operator: operator.__name__)
def test_an_operator_is_parsed_and_documented(operator):
    assert not operator.names or operator.parse.__func__ is not Query.parse.__func__
    is_clause = operator.parse_clause.__func__ is not Query.parse_clause.__func__
    assert bool(operator.clauses) == is_clause
    is_written = bool(operator.names or operator.clauses)
    assert bool(operator.usage) == bool(operator.summary) == is_written


def test_names_are_unique():
    names = [name for operator in REGISTERED for name in operator.names]
    assert len(names) == len(set(names)) == len(OPERATORS)
    clauses = [name for operator in REGISTERED for name in operator.clauses]
    assert len(clauses) == len(set(clauses)) == len(CLAUSES)
    assert not COMPANIONS.keys() & OPERATORS.keys()


def test_each_operator_has_a_strategy():
    assert strategies.OPERANDS.keys() == OPERATORS.keys() - {"$text"}


def test_each_class_has_its_own_sql():
    assert READINGS.keys() == set(NODES)
    with pytest.raises(TypeError, match="Equals has two classes of SQL"):
        sql_of(tree.Equals)(type(READINGS[tree.Equals]))


def test_a_class_without_sql_is_refused():
    with pytest.raises(TypeError, match=r"no SQL of Within$"):
        check_complete([*NODES, Within])


def test_the_documented_table_is_that_of_the_operators():
    """After a change, paste what ``registry.documentation()`` returns."""
    assert f"\n\n{documentation()}\n\n" in REST.read_text()


def test_each_use_is_that_of_an_operator():
    path = (tree.Equals.__name__,)
    place = (0.0, 0.0)
    nodes = [
        tree.Equals(path, 1),
        tree.Compare(path, "gt", 1),
        tree.Matches(path, "^a"),
        tree.Near(path, place, 1.0),
        tree.Text(path, "a"),
        tree.AnyOf((tree.Compare(path, "gt", 1),)),
        tree.Exists(path, True),
    ]
    assert tuple(node.uses()[0][1] for node in nodes) == Use.__args__
