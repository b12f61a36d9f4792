"""Parameters with nested names, as Parse Server reads them: ``where[name][$regex]=^a``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from backend.kernel.errors import InvalidQuery
from backend.kernel.texts.shown import shown

MAX_DEPTH: Final = 6


def nested(params: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the parameters with nested names as objects and lists; values stay text.

    Steps that are numbers make a list, in the order of the numbers. Raises ``InvalidQuery`` for
    more than ``MAX_DEPTH`` steps, and for a name that stands for a value and for an object.
    """
    if not any("[" in name for name in params):
        return params
    tree: dict[str, Any] = {}
    for name, value in params.items():
        head, bracket, tail = name.partition("[")
        steps = tail[:-1].split("][") if bracket and tail.endswith("]") and head else None
        if steps is None:
            _put(tree, [name], value, name)
        else:
            _put(tree, [head, *steps], value, name)
    return {name: _with_lists(value) for name, value in tree.items()}


class _Branch(dict[str, Any]):
    """An object made of steps, in contrast to one that is a value."""


def _put(tree: dict[str, Any], steps: list[str], value: Any, name: str) -> None:
    if len(steps) > MAX_DEPTH:
        raise InvalidQuery(f"Invalid parameter for query: {shown(name)}")
    node = tree
    for step in steps[:-1]:
        node = node.setdefault(step, _Branch())
        if not isinstance(node, _Branch):
            raise InvalidQuery(f"Invalid parameter for query: {shown(name)}")
    if steps[-1] in node:
        raise InvalidQuery(f"Invalid parameter for query: {shown(name)}")
    node[steps[-1]] = value


def _with_lists(value: Any) -> Any:
    if not isinstance(value, _Branch):
        return value
    if all(step.isascii() and step.isdecimal() and len(step) < 4 for step in value):
        return [_with_lists(value[step]) for step in sorted(value, key=int)]
    return {step: _with_lists(item) for step, item in value.items()}
