"""``$text`` over REST: scores of what is found."""

from __future__ import annotations

import pytest


@pytest.fixture
def notes(master):
    for title, score in (("tea", 7), ("tea and tea, always tea", None), ("coffee", 3)):
        master.make("Note", title=title, **({} if score is None else {"score": score}))


def text(term, **options):
    search = {"$term": term, **{f"${name}": value for name, value in options.items()}}
    return {"title": {"$text": {"$search": search}}}


def test_a_score_is_sent_with_the_key_for_it(client, notes):
    for order in ("$score", "-$score"):
        found = client.results("Note", where=text("tea"), keys="$score", order=order)
        for note in found:
            assert set(note) == {"objectId", "createdAt", "updatedAt", "score"}
        best, other = (note["score"] for note in found)
        assert 0 < other < best < 1


def test_a_score_replaces_a_field_of_its_name(client, notes):
    found = client.results("Note", where=text("tea"), keys="title,score,$score", order="$score")
    assert [note["title"] for note in found] == ["tea and tea, always tea", "tea"]
    assert all(0 < note["score"] < 1 for note in found)


def test_without_the_key_or_without_a_search_there_is_no_score(client, notes):
    found = client.results("Note", where=text("tea"), keys="title", order="$score")
    assert [note.get("score") for note in found] == [None, None]
    found = client.results("Note", keys="title,$score")
    assert all("score" not in note for note in found)
    found = client.results("Note", where=text("tea"), order="-$score")
    assert [note.get("score") for note in found] == [None, 7]


def test_a_score_is_computed_for_a_page(client, notes):
    page = {"where": text("tea"), "keys": "$score", "order": "$score", "limit": 1}
    (first,) = client.results("Note", **page)
    (second,) = client.results("Note", **page, skip=1)
    assert second["score"] < first["score"]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"language": True}, "bad $text: $language, should be string"),
        ({"caseSensitive": "yes"}, "bad $text: $caseSensitive, should be boolean"),
        ({"diacriticSensitive": "yes"}, "bad $text: $diacriticSensitive, should be boolean"),
    ],
)
def test_options_are_checked(client, notes, options, error):
    reply = client.get("/classes/Note", where=text("tea", **options))
    assert reply.json == {"code": 107, "error": error}
