"""Full-text search: what a ``$term`` asks for.

As MongoDB reads it: words are alternatives, ``"a phrase"`` must be there word by word, ``-word``
and ``-"a phrase"`` must not. With a phrase, the words decide nothing but the score. Letters' case
is ignored, and accents unless requested.

``$language`` chooses the stemming and the stop words of PostgreSQL's text search, for words, not
for phrases; ``none``, the only one that this module can match in memory, compares whole words.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

MAX_TERM_LENGTH: Final = 1000
DEFAULT_LANGUAGE: Final = "english"

_CONFIGURATIONS: Final = {
    name: configuration
    for names, configuration in (
        ("none simple", "simple"),
        ("danish da", "danish"),
        ("dutch nl", "dutch"),
        ("english en", "english"),
        ("finnish fi", "finnish"),
        ("french fr", "french"),
        ("german de", "german"),
        ("hungarian hu", "hungarian"),
        ("italian it", "italian"),
        ("norwegian nb no", "norwegian"),
        ("portuguese pt", "portuguese"),
        ("romanian ro", "romanian"),
        ("russian ru", "russian"),
        ("spanish es", "spanish"),
        ("swedish sv", "swedish"),
        ("turkish tr", "turkish"),
        ("arabic ar", "arabic"),
        ("greek el", "greek"),
    )
    for name in names.split()
}

_PART = re.compile(r'(?P<negated>(?<!\S)-)?(?:"(?P<phrase>[^"]*)"|(?P<word>[^\s"]+))')
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class Search:
    """A term, taken apart."""

    words: tuple[str, ...]
    phrases: tuple[str, ...]
    unwanted_words: tuple[str, ...] = ()
    unwanted_phrases: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether nothing is searched for; then nothing is found."""
        return not self.words and not self.phrases


def configuration(language: str) -> str | None:
    """PostgreSQL's name of a ``$language``; None for an unknown one."""
    return _CONFIGURATIONS.get(language.lower())


def read_term(term: str) -> Search:
    """Take a ``$term`` apart."""
    words: dict[bool, list[str]] = {True: [], False: []}
    phrases: dict[bool, list[str]] = {True: [], False: []}
    for part in _PART.finditer(term):
        kind, text = (words, part["word"]) if part["phrase"] is None else (phrases, part["phrase"])
        if _WORD.search(text):
            kind[part["negated"] is None].append(text)
    return Search(
        tuple(words[True]), tuple(phrases[True]), tuple(words[False]), tuple(phrases[False])
    )


def fold_accents(text: str) -> str:
    """Return the text in decomposed form, without combining marks (U+0300 to U+036F)."""
    decomposed = unicodedata.normalize("NFD", text)
    return "".join(letter for letter in decomposed if not "\u0300" <= letter <= "\u036f")


def found_in(texts: Iterable[str], search: Search, *, diacritic_sensitive: bool) -> bool:
    """Return whether the texts hold what is searched for, word by word without stemming."""

    def words_of(text: str) -> list[str]:
        if not diacritic_sensitive:
            text = fold_accents(text)
        return _WORD.findall(text.lower())

    words = [word for text in texts for word in words_of(text)]

    def holds(part: str) -> bool:
        phrase = words_of(part)
        return any(
            words[start : start + len(phrase)] == phrase
            for start in range(len(words) - len(phrase) + 1)
        )

    if search.is_empty or any(map(holds, search.unwanted_words + search.unwanted_phrases)):
        return False
    if search.phrases:
        return all(map(holds, search.phrases))
    return any(map(holds, search.words))
