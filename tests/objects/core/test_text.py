"""Full-text search, as far as it is done in memory."""

from __future__ import annotations

import pytest

from objects.core.query.text import Search, configuration, fold_accents, found_in, read_term


def matches(term: str, *texts: str, accents: bool = False) -> bool:
    return found_in(texts, read_term(term), diacritic_sensitive=accents)


@pytest.mark.parametrize(
    ("term", "search"),
    [
        ("coffee tea", Search(("coffee", "tea"), ())),
        ('"iced tea" coffee', Search(("coffee",), ("iced tea",))),
        ("coffee -tea", Search(("coffee",), (), ("tea",))),
        ('coffee -"iced tea"', Search(("coffee",), (), (), ("iced tea",))),
        ("well-known", Search(("well-known",), ())),
        ("- ! &", Search((), ())),
        ('"unclosed phrase', Search(("unclosed", "phrase"), ())),
    ],
)
def test_a_term_is_taken_apart(term, search):
    assert read_term(term) == search


@pytest.mark.parametrize(
    ("term", "text", "expected"),
    [
        ("coffee", "I like Coffee", True),
        ("cof", "I like Coffee", False),
        ("tea coffee", "coffee", True),
        ('"like coffee"', "I like Coffee", True),
        ('"coffee like"', "I like Coffee", False),
        ('tea "like coffee"', "I like Coffee", True),
        ("coffee -like", "I like Coffee", False),
        ("-tea", "coffee", False),
        ("cafe", "Café", True),
        ("café", "CAFE", True),
        ("", "x", False),
    ],
)
def test_words_phrases_and_negations(term, text, expected):
    assert matches(term, text) is expected


def test_accents_count_when_requested():
    assert not matches("cafe", "café", accents=True)
    assert matches("CAFÉ", "café", accents=True)


def test_all_texts_of_an_object_are_searched():
    assert matches("tea", "coffee", "tea")


def test_accents_are_combining_marks():
    assert fold_accents("Ünïcödé ñ ß") == "Unicode n ß"


def test_languages_have_names_and_codes():
    assert configuration("en") == configuration("English") == "english"
    assert configuration("none") == "simple"
    assert configuration("klingon") is None
