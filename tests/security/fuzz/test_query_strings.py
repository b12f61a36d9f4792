"""Query strings of finds and gets: options, or refused."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest

from backend.http.bodies.parsers import decoded_parameters, query_parameters
from objects.core.query.options import FindLimits, parse_find_options, parse_get_options
from tests.security.fuzz.mutation import Mutator
from tests.security.fuzz.targets import (
    EXAMPLES,
    accepts,
    check_nothing_long_is_remembered,
    check_work_is_proportional,
    fuzz,
)

CORPUS = [
    "where=%7B%22name%22%3A%22a%22%7D&limit=10&skip=5&order=-name,score&count=1",
    "keys=name,owner.name&include=owner,owner.thing&excludeKeys=score",
    "includeAll=true&limit=0",
    "redirectClassNameForKey=likes&order=$score",
    "where=%7B%22name%22%3A%7B%22%24regex%22%3A%22%5Ea%22%7D%7D&explain=true",
    "limit=1&limit=2",
    "keys=name&hint=a&comment=b&readPreference=PRIMARY",
    "where=&order=&keys=&include=",
    "order=a%20,%20-b,+c",
]


def use(text: str) -> None:
    """Read the parameters, as those of a find, of a get and as JSON values."""
    params = query_parameters(text)
    decoded_parameters(params)
    # Written again, they are the same.
    assert query_parameters(urlencode(params)) == params
    parse_find_options(params, FindLimits())
    shaping = ("keys", "include", "excludeKeys", "includeAll")
    parse_get_options({key: params[key] for key in shaping if key in params}, FindLimits())


def make(mutator: Mutator) -> str:
    return mutator.text(mutator.sample())


def test_the_examples_are_valid():
    accepts(use, CORPUS)


@EXAMPLES
def test_any_query_string_is_read_or_refused(examples):
    fuzz(use, make, CORPUS, examples)


@pytest.mark.parametrize(
    "grown",
    [
        lambda size: "&".join(f"a{number}=1" for number in range(size)),
        lambda size: "keys=" + ",".join(f"a{number}" for number in range(size)),
        lambda size: "include=" + ",".join(f"a{number}" for number in range(size)),
        lambda size: "include=" + ".".join(["a"] * size),
        lambda size: "order=" + ",".join(f"a{number}" for number in range(size)),
        lambda size: "keys=" + "a." * size,
    ],
    ids=["parameters", "keys", "includes", "depth", "order", "path"],
)
def test_work_is_proportional_to_size(grown):
    check_work_is_proportional(use, grown, (20, 80, 320, 1_280))


def test_nothing_long_is_remembered():
    for name in ("where", "order", "keys", "include", "redirectClassNameForKey", "limit"):
        check_nothing_long_is_remembered(use, lambda text, name=name: f"{name}={text}")
        check_nothing_long_is_remembered(use, lambda text, name=name: f"{name}=a{text}")
