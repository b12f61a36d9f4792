"""When two spellings of a name mean the same account, and which characters are invisible.

What is invisible follows PRECIS (RFC 8264, FreeformClass): control and format characters,
default-ignorable code points and separators of lines. Joiners are accepted where they change what
is shown: in the contexts of RFC 5892 (appendix A.1 and A.2) and in emoji (UTS #51).
"""

from __future__ import annotations

import re
import unicodedata

import regex
from idna.core import valid_contextj

from backend.kernel.errors import UsernameMissing

# Control characters and halves of surrogate pairs: also refused in stored names and look-ups.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")

# What a key leaves out: also of names that no user may take any more.
_IGNORABLE = regex.compile(r"\p{Default_Ignorable_Code_Point}+")
# What a new name must not have. The last three are symbols or marks to PRECIS, but their glyphs are
# blank.
_INVISIBLE = regex.compile(
    r"[\p{Default_Ignorable_Code_Point}\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}"
    r"\p{Noncharacter_Code_Point}\u2800\U0001D159\U00016FE4]"
)
_JOINERS = "\u200c\u200d"
_PICTURE = (
    r"(?:\U0001F3F4[\U000E0030-\U000E0039\U000E0061-\U000E007A]{3,6}\U000E007F"  # regional flags
    r"|\p{Extended_Pictographic}[\uFE0E\uFE0F\p{Emoji_Modifier}]?)"
)
_EMOJI = regex.compile(rf"{_PICTURE}(?:\u200D{_PICTURE})*|[0-9#*]\uFE0F\u20E3")


def name_key(name: str) -> str:
    """Return the key that all spellings of a name share.

    Spellings differ in case, width, composition, invisible characters or the number of spaces
    (NFKC_Casefold of Unicode, and the spaces of RFC 8266).
    """
    if name.isascii():
        return " ".join(name.casefold().split())
    visible = _IGNORABLE.sub("", former_key(name))
    return " ".join(unicodedata.normalize("NFKC", visible).split())


def former_key(name: str) -> str:
    """Return the key without the rules about spaces and invisible characters."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def has_control_characters(text: str) -> bool:
    """Whether layers may read this name or address differently, since not every layer keeps it."""
    return _CONTROL.search(text) is not None


def invisible_character(text: str) -> str | None:
    """Return the first invisible character of a name, as ``U+200B``, or None."""
    if text.isascii() and text.isprintable():
        return None
    emoji = [match.span() for match in _EMOJI.finditer(text)]
    for match in _INVISIBLE.finditer(text):
        place = match.start()
        if any(start <= place < end for start, end in emoji):
            continue
        if not (match[0] in _JOINERS and _joins(text, place)):
            return f"U+{ord(match[0]):04X}"
    return None


def _joins(text: str, place: int) -> bool:
    try:
        return valid_contextj(text, place)
    except ValueError:  # after a character that Python's version of Unicode doesn't know
        return False


def check_account_name(text: str) -> str:
    """Return a name or address to look an account up by. Raises ``UsernameMissing`` (200)."""
    if has_control_characters(text):
        raise UsernameMissing("username/email must not contain control characters.")
    return text
