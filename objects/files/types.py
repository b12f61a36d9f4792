"""Which types of files are taken, and as which type a file is served.

A file is judged by its name's extension, by the type that its uploader declares where the extension
is unknown, and by its first bytes. Each of these is a set of words (``html``, ``svg``, ``xml`` …)
that the settings ``FILE_EXTENSIONS_DENIED`` and ``FILE_EXTENSIONS_ALLOWED`` speak about. What is
allowed by name comes before what is denied; ``*`` in the allowed ones means everything.
"""

from __future__ import annotations

import mimetypes
import re
from typing import Final

from backend.kernel.errors import FileSaveFailed
from backend.settings.conf import service_settings
from objects.files.markup import markup
from objects.files.names import MAX_NAME_LENGTH, extension

UNKNOWN: Final = "application/octet-stream"

_TOKEN = r"[A-Za-z0-9!#$&^_.+-]+"
_CONTENT_TYPE = re.compile(
    rf'({_TOKEN}/{_TOKEN})((?:[ \t]*;[ \t]*{_TOKEN}=(?:{_TOKEN}|"[^"\\\x00-\x1f\x7f]*"))*)[ \t]*;?'
)
_CHARSET = re.compile(r';[ \t]*charset="?([A-Za-z0-9_-]{1,40})"?', re.IGNORECASE)
# What clients say that don't know the type.
_SAYS_NOTHING = frozenset({"", "application/x-www-form-urlencoded", UNKNOWN})
# Documents that carry HTML, under names that don't say so.
_CARRIERS = {
    "message/rfc822": "mhtml",
    "multipart/related": "mhtml",
    "multipart/x-mixed-replace": "html",
    "text/x-component": "htc",
    "text/x-server-parsed-html": "shtml",
}
_types = mimetypes.MimeTypes(filenames=())  # Python's own table, the same on every machine
for _type, _extension in (
    ("image/webp", ".webp"),
    ("image/avif", ".avif"),
    ("image/heic", ".heic"),
    ("application/xml", ".xml"),
    ("text/markdown", ".md"),
):
    _types.add_type(_type, _extension)


def settled_type(name: str, declared: str | None, head: bytes) -> str:
    """The content type that a new file is stored with and served as.

    ``declared`` is the uploader's Content-Type, ``head`` the content's beginning. A known extension
    decides, so that a name never promises another type than what is served, and the declared type
    isn't considered then. Raises ``FileSaveFailed`` for what isn't taken.
    """
    word = extension(name)
    guessed = _types.guess_type(f"x.{word}")[0] if word else None
    media_type, charset = _parsed(declared or "", is_needed=guessed is None)
    _check(word or _extension_of(media_type), is_name=True)
    detected = markup(head)
    if detected is not None:
        _check(detected)
    if guessed is not None:
        charset = charset if guessed == media_type else ""
        media_type = guessed
    for token in _words_of(media_type):
        _check(token)
    if guessed is None and media_type in _SAYS_NOTHING:
        media_type = UNKNOWN
    return f"{media_type}; charset={charset}" if charset else media_type


def with_extension(name: str, declared: str | None) -> str:
    """Return the name of a new file, with the extension of its declared type if it has none.

    The type is one that ``settled_type`` has accepted. A name that would be too long stays. Raises
    ``FileSaveFailed`` for an extension that isn't taken.
    """
    if extension(name):
        return name
    media_type, _ = _parsed(declared or "", is_needed=False)
    word = (_types.guess_extension(media_type) or "").removeprefix(".")
    if word:
        _check(word)
    full = f"{name}{'' if name.endswith('.') else '.'}{word}" if word else name
    return full if len(full) <= MAX_NAME_LENGTH else name


def _parsed(declared: str, *, is_needed: bool) -> tuple[str, str]:
    declared = declared.strip()
    if not declared:
        return "", ""
    match = _CONTENT_TYPE.fullmatch(declared) if len(declared) <= 255 else None
    if match is None:
        if not is_needed:
            return "", ""
        raise FileSaveFailed("Invalid file upload. Content-Type: expected type/subtype.")
    charset = _CHARSET.search(match[2])
    return match[1].lower(), charset[1].lower() if charset else ""


def _words_of(media_type: str) -> set[str]:
    """``image/svg+xml`` → svg, xml. Whole words: Office documents have "xml" inside of one."""
    words = set(re.split(r"[.+_-]", media_type.partition("/")[2]))
    if media_type in _CARRIERS:
        words.add(_CARRIERS[media_type])
    return words


def _extension_of(media_type: str) -> str:
    if media_type in _SAYS_NOTHING:
        return ""
    return (_types.guess_extension(media_type) or "").removeprefix(".")


class ExtensionRefused(FileSaveFailed):
    """A file whose extension or type the settings ``FILE_EXTENSIONS_…`` don't allow."""


def _check(word: str, *, is_name: bool = False) -> None:
    """Raise ``FileSaveFailed`` if files with this word aren't taken.

    ``is_name`` is for the extension, which has to be among the allowed ones where some are named.
    """
    allowed = service_settings.FILE_EXTENSIONS_ALLOWED
    if "*" in allowed or word in allowed:
        return
    if word in service_settings.FILE_EXTENSIONS_DENIED or (allowed and is_name):
        raise ExtensionRefused(
            f"File upload of extension {word} is disabled."
            if word
            else "File upload without extension is disabled."
        )
