"""Full-text search by PostgreSQL."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from objects.core.query.parser import parse_order, parse_where
from objects.core.schema.definition import IndexDeclaration
from objects.sql.compiler import score_expression
from objects.sql.tables import ClassTable
from tests.objects.sql.world import GENERIC, THINGS, World, ids, thing

OBJECTS = [
    thing("cafe", name="The Café opens", title="coffee and more coffee", tags=["music", 5]),
    thing("tea", name="Tea house", title="they are running a tea house, no coffee"),
    thing("book", name="Book shop", title=None, info={"note": "old maps"}),
    thing("none"),
]


def search(term: str, field: str | None = None, **options: Any) -> dict[str, Any]:
    text = {"$search": {"$term": term} | {f"${key}": value for key, value in options.items()}}
    return {"$text": text} if field is None else {field: {"$text": text}}


@pytest.mark.parametrize("stored", THINGS)
@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (search("coffee"), {"cafe", "tea"}),
        (search("coffee", "title"), {"cafe", "tea"}),
        (search("coffee", "name"), set()),
        (search("shop coffee"), {"cafe", "tea", "book"}),
        (search('"more coffee"'), {"cafe"}),
        (search("coffee -tea"), {"cafe"}),
        (search('coffee -"tea house"'), {"cafe"}),
        (search('"they are"'), {"tea"}),
        (search('coffee -"they are"'), {"cafe"}),
        (search('"runs a tea"'), set()),
        (search("-tea"), set()),
        (search("the"), set()),
        (search("the -tea"), set()),
        (search("run"), {"tea"}),
        (search("run", language="none"), set()),
        (search("running", language="none"), {"tea"}),
        (search("the", language="none"), {"cafe"}),
        (search("cafe"), {"cafe"}),
        (search("cafe", diacriticSensitive=True), set()),
        (search("Café", diacriticSensitive=True), {"cafe"}),
        (search("book"), {"book"}),
        (search("music", "tags"), {"cafe"}),
        (search("maps", "info.note"), {"book"}),
        (search("coffee", "score"), set()),
        (search("coffee", "unknown"), set()),
        ({"$nor": [search("coffee")]}, {"book", "none"}),
        (search("maisons", language="fr"), set()),
    ],
)
def test_a_search_finds(world: World, stored, where, expected):
    world.fill(OBJECTS)
    assert set(world.in_sql(parse_where(where), THINGS[stored])) == expected


def test_a_search_is_sorted_by_its_score(world: World):
    world.fill(OBJECTS)
    query = parse_where(search("coffee"))
    assert world.in_sql(query, GENERIC, parse_order("-$score")) == ["cafe", "tea"]
    # The SDKs' sortByTextScore sends no sign, and means the best first as well.
    assert world.in_sql(query, GENERIC, parse_order("$score")) == ["cafe", "tea"]
    score = score_expression(query, GENERIC)
    assert score is not None
    row = world.connection.execute(
        f"SELECT {score.text} FROM thing AS t WHERE t.object_id = 'cafe'",  # type: ignore[arg-type]
        score.params,
    ).fetchone()
    assert row is not None
    assert row[0] > 0


def test_a_query_without_a_search_has_no_score():
    assert score_expression(parse_where({"name": "x"}), GENERIC) is None


def test_a_declared_text_index_says_which_fields_are_searched(world: World):
    world.fill(OBJECTS)
    index = IndexDeclaration("i", (("name", "text"),))
    schema = type(GENERIC.schema)("Thing", GENERIC.schema.fields, indexes={"i": index})
    table = ClassTable("Thing", 1, 1, '"thing"', schema)
    assert world.in_sql(parse_where(search("coffee")), table) == []
    assert world.in_sql(parse_where(search("tea")), table) == ["tea"]


WORDS = ["tea", "Tea", "café", "cafe", "house", "old", "map", "maps", "x"]
terms = st.lists(
    st.sampled_from([*WORDS, "-tea", "-map", '"tea house"', '"old map"', '-"old map"']),
    min_size=1,
    max_size=4,
).map(" ".join)
titles = st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join)


@pytest.mark.slow
@settings(deadline=None, max_examples=100)
@given(
    st.lists(st.tuples(titles, titles), max_size=4),
    st.lists(st.tuples(terms, st.booleans()), min_size=1, max_size=4),
)
def test_without_stemming_memory_and_database_agree(world: World, texts, searches):
    world.fill([thing(f"t{n}", name=name, title=title) for n, (name, title) in enumerate(texts)])
    for term, accents in searches:
        for field in (None, "name"):
            sensitive = {"diacriticSensitive": True} if accents else {}
            query = parse_where(search(term, field, language="none", **sensitive))
            assert sorted(world.in_sql(query)) == sorted(ids(world.in_memory(query))), term
