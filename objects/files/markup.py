"""Markup, recognised by its first bytes, not by a file's name.

It follows what browsers look for in content without a type (WHATWG MIME sniffing), and adds XML by
its look: an element with a namespace is enough for a browser to run scripts in it.
"""

from __future__ import annotations

import re
from typing import Final, Literal

HEAD_LENGTH: Final = 4096
"""How many bytes from the beginning ``markup`` wants to see."""

Markup = Literal["html", "xhtml", "svg", "xml"]

_BYTE_ORDER_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_BLANKS = b"\t\n\x0b\x0c\r "
_HTML = re.compile(
    rb"<(?:!--|(?:!doctype\s+html|html|head|body|script|iframe|h[1-6]|div|span|font|table|a|style"
    rb"|title|b|br|p|meta|link|base|form|input|button|img|object|embed|applet|frame|frameset|video"
    rb"|audio|math|template|center|ul|ol|pre|plaintext|marquee|details|portal|noscript|isindex)"
    rb"[\s>/])"
)
_SVG = re.compile(rb"<(?:!doctype\s+)?svg[\s>/:]")
_XML = re.compile(rb"<(?:\?xml|!doctype\s|!entity|!\[cdata\[)|<[a-z_][\w.:-]*(?:\s[^>]*)?\sxmlns\b")


def markup(head: bytes) -> Markup | None:
    """The family of markup that content with this beginning belongs to, or None."""
    for mark in _BYTE_ORDER_MARKS:
        head = head.removeprefix(mark)
    # Without its zeros, UTF-16 and UTF-32 are the ASCII that markup is written in.
    text = head.replace(b"\0", b"").lstrip(_BLANKS).lower()
    if not text.startswith(b"<"):
        return None
    is_xml = _XML.match(text) is not None
    if _SVG.match(text) or (is_xml and (b"<svg" in text or b"www.w3.org/2000/svg" in text)):
        return "svg"
    if is_xml and b"www.w3.org/1999/xhtml" in text:
        return "xhtml"
    if _HTML.match(text) or (is_xml and (b"<html" in text or b"<!doctype html" in text)):
        return "html"
    return "xml" if is_xml else None
