"""Paging by where a page ended: everything once, in order, forwards and backwards."""

from __future__ import annotations

import pytest

from backend.kernel.errors import InvalidQuery
from backend.kernel.principal import MASTER
from objects import service
from objects.admin.browser.pagination import Edge, Sorting, decode_edge, read_page, read_sorting
from objects.core.query.parser import parse_order, parse_where
from objects.core.query.tree import FindOptions
from objects.core.schema.definition import ClassSchema, FieldType
from objects.core.values import date
from objects.definitions import registry
from tests.objects.admin.games import make, make_class

pytestmark = pytest.mark.django_db

DAY = "2024-01-0{}T00:00:00.000Z"
VALUES = {
    "title": ["a", "b", "b", "", None, "B", "é", None, "b"],
    "score": [1, 2.5, -3, 2, 2, None, 10**20, 2, None],
    "won": [True, False, None, True, True, False, None, False, True],
    "playedAt": [*(date(DAY.format(n)) for n in (1, 3, 3, 2)), None, date(DAY.format(3)), None],
}


def find(where, order, limit):
    options = FindOptions(where=where, limit=limit, order=order)
    return service.find(MASTER, "Game", options).objects()


def walk(sorting: Sorting, size: int, where=None):
    """The ids of all pages forwards, and then of all backwards from the last one."""
    tree = parse_where(where or {})
    forwards, backwards = [], []
    read = read_page(find, tree, sorting, size)
    assert read.before is None
    while True:
        forwards.append([row["objectId"] for row in read.rows])
        if read.after is None:
            break
        read = read_page(find, tree, sorting, size, after=decode_edge(read.after.encode()))
        assert read.before is not None
    while read.before is not None:
        read = read_page(find, tree, sorting, size, before=decode_edge(read.before.encode()))
        backwards.insert(0, [row["objectId"] for row in read.rows])
        assert read.after is not None
    return forwards, backwards


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("size", [1, 2, 3, 50])
@pytest.mark.parametrize("field", [*VALUES, "objectId", "createdAt", "updatedAt"])
def test_pages_hold_everything_once_in_the_order_of_the_store(field, size, descending):
    make_class()
    for value in VALUES.get(field, range(5)):
        fields = {} if value is None or field not in VALUES else {field: value}
        make(**fields)
    sorting = Sorting(field, descending)
    forwards, backwards = walk(sorting, size)
    options = f"{'-' if descending else ''}{field}"
    results = find(parse_where({}), parse_order(options), 100)
    assert [item for page in forwards for item in page] == [row["objectId"] for row in results]
    assert backwards == forwards[:-1]


def test_an_explicit_null_is_paged_like_a_missing_value():
    make_class()
    ids = {make(score=None), make(score=None), make(), make(score=1)}
    forwards, _ = walk(Sorting("score"), 1)
    assert {item for page in forwards for item in page} == ids


def test_the_condition_of_the_table_holds_on_every_page():
    make_class()
    expected = [make(score=number % 3, title="yes") for number in range(7)]
    for number in range(7):
        make(score=number % 3, title="no")
    forwards, backwards = walk(Sorting("score"), 2, {"title": "yes"})
    assert sorted(item for page in forwards for item in page) == sorted(expected)
    assert backwards == forwards[:-1]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "!",
        "bnVsbA",
        "WzFd",
        "W10",
        "Wzxd",
        "WyJhIiwgNV0",
        "W1sxXSwiYWJjIl0",
        "W251bGwsIiouKiJd",
    ],
)
def test_an_edge_that_no_link_of_ours_names_is_refused(text):
    with pytest.raises(InvalidQuery):
        decode_edge(text)


def test_an_edge_survives_its_link():
    for value in (None, "a'\"<é", 10**30, 0.1, True, date(DAY.format(1))):
        edge = Edge(value, "abcDEF1234")
        assert decode_edge(edge.encode()) == edge


def test_only_what_has_an_order_is_sorted_by():
    schema = ClassSchema("Game", {"tags": FieldType("Array"), "score": FieldType("Number")})
    assert str(read_sorting("", schema)) == "-createdAt"
    assert str(read_sorting("-score", schema)) == "-score"
    for text in ("tags", "-tags", "nothing", "score,title", "score.a", "$score", "--score"):
        with pytest.raises(InvalidQuery):
            read_sorting(text, schema)


@pytest.fixture(autouse=True)
def _fresh():
    registry.forget_all()
