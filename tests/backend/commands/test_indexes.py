"""``manage.py indexes``: what there is, and what it is good for."""

from __future__ import annotations

import pytest
from django.core.management import CommandError

from objects.learned import shape_counts
from tests.backend.commands.conftest import run
from tests.objects.learned.large_class import ask, auto_indexes, make_class
from tests.rest import MASTER, Api

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _table(transactional_db):
    shape_counts.forget()
    return make_class(Api(MASTER), 8_000, indexes={"by_name": {"name": 1}})


def test_declared_and_suggested_indexes_are_listed_with_their_evidence():
    ask({"rank": {"$gt": 1}}, "-rank")
    lines = run("indexes").out
    assert "Game: about 8,000 objects" in lines
    assert "declared: by_name (name), 0." in lines
    assert "suggested: rank, about 0." in lines
    assert "rank (range) in order of -rank: 40 queries took 100.0 ms each" in lines


def test_suggested_indexes_are_built_and_shown_with_times_before_and_after():
    ask({"rank": {"$gt": 1}}, "rank")
    ask({"level": {"$gt": 1}}, "level")
    assert run("indexes", "Game", "--build").out.count("learned: objects_auto_") == 2
    assert len(auto_indexes()) == 2
    ask({"rank": {"$gt": 1}}, "rank", seconds=0.001)
    assert "40 queries took 100.0 ms each; 40 since then 1.0 ms" in run("indexes", "Game").out


def test_an_index_is_dropped_by_its_name():
    ask({"rank": {"$gt": 1}}, "rank")
    run("indexes", "Game", "--build")
    (name,) = auto_indexes()
    assert run("indexes", "Game", "--drop", name).out == f"dropped: {name}\n"
    assert auto_indexes() == {}
    assert "failed: dropped by hand" in run("indexes", "Game").out
    with pytest.raises(CommandError, match="no learned index of this name"):
        run("indexes", "Game", "--drop", "by_name")
    with pytest.raises(CommandError, match="name the class"):
        run("indexes", "--drop", name)


def test_what_was_learned_is_forgotten():
    ask({"rank": {"$gt": 1}}, "rank")
    assert run("indexes", "Game", "--forget").out == "Game: 1 shapes of queries forgotten\n"
    assert "suggested" not in run("indexes", "Game").out


def test_it_says_when_none_is_built_automatically(settings):
    settings.SERVICE = {**settings.SERVICE, "AUTO_INDEX": "suggest"}
    ask({"rank": {"$gt": 1}}, "rank")
    lines = run("indexes", "Game").out
    assert "suggested: rank" in lines
    assert "AUTO_INDEX=suggest: none is built" in lines
    settings.SERVICE = {**settings.SERVICE, "AUTO_INDEX": "off"}
    assert "suggested" not in run("indexes", "Game").out


@pytest.mark.parametrize("name", ["Nothing", "<b>", "_Nothing"])
def test_a_class_that_is_not_there_is_an_error(name):
    with pytest.raises(CommandError):
        run("indexes", name)
