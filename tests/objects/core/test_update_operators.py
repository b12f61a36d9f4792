"""Each update operator is complete: parsing, type of its field, outcome."""

from __future__ import annotations

import inspect
from typing import get_args

import pytest

from objects.core.update import operators
from objects.core.update.operators import OPERATORS, Operation, Operator

WITHOUT_OUTCOME = {"Delete", "SetOnInsert", "ChangeRelation"}


def test_all_classes_are_operations():
    defined = {
        value
        for value in vars(operators).values()
        if inspect.isclass(value) and issubclass(value, Operator) and value is not Operator
    }
    assert defined == set(get_args(Operation)) == {*OPERATORS.values(), operators.Set}


@pytest.mark.parametrize("operator", get_args(Operation), ids=lambda operator: operator.__name__)
def test_an_operator_has_its_methods(operator):
    assert operator.field_type is not Operator.field_type
    assert (operator.outcome is Operator.outcome) == (operator.__name__ in WITHOUT_OUTCOME)
    is_parsed = operator.parse.__func__ is not Operator.parse.__func__
    assert is_parsed == bool(operator.names)


def test_names_are_unique():
    names = [name for operator in get_args(Operation) for name in operator.names]
    assert sorted(names) == sorted(OPERATORS)
