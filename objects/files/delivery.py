"""Headers of a stored file's response, and the requests for it that are refused.

An upload is untrusted content under a URL of the service, so no browser may execute it there:

- Content types that browsers execute or render as a document (scripts, markup, style sheets,
  WebAssembly, ``multipart``) are replaced by ``application/octet-stream``. With ``nosniff`` a
  ``<script>``, a worker, a module or a style sheet at such an address is blocked.
- Images, sounds, films, plain text and PDF are displayed; everything else is downloaded
  (``attachment``).
- Every response has a sandbox without scripts and without the origin, in case a browser ignores the
  type and the disposition.
- Requests for a script, a worker or a service worker are refused by ``check_destination``.

PDF is displayed because apps show documents in frames. Viewers run a document's scripts outside of
any page's origin. Chromium 150 opens its viewer under the same sandbox, so PDF needs no exception.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from backend.kernel.errors import OperationForbidden
from objects.files.names import given_name
from objects.files.types import UNKNOWN

_DISPLAYED: Final = re.compile(
    r"image/(?:png|apng|jpeg|gif|webp|avif|bmp|x-ms-bmp|x-icon|vnd\.microsoft\.icon|heic|heif|tiff)"
    r"|(?:audio|video)/[\w.-]+|text/plain|application/pdf"
)
# Downloaded under their own name. A "+xml" in any of them but SVG would make it a document; SVG
# keeps its type for <img>, which runs no scripts.
_HARMLESS: Final = re.compile(
    r"image/(?:[\w.-]+|svg\+xml)|font/[\w-]+"
    r"|text/(?:csv|tab-separated-values|markdown|vtt|calendar|vcard|rtf)"
    r"|application/(?:json|ld\+json|geo\+json|zip|gzip|x-tar|x-gzip|x-bzip2?|x-xz|x-7z-compressed"
    r"|x-rar-compressed|ogg|rtf|msword|epub\+zip|vnd\.[\w.-]+(?:\+(?:json|zip))?)"
)
# Each reads ASCII as ASCII. With UTF-7, UTF-16 or ISO-2022-JP the same bytes are another text.
_CHARSET: Final = re.compile(
    r"utf-?8|us-ascii|iso-8859-\d{1,2}|windows-125\d|koi8-[ru]|gbk|gb18030|big5|euc-(?:jp|kr)"
)
_WITH_CHARSET: Final = re.compile(r"text/|application/json")

_POLICY: Final = "default-src 'none'; sandbox"
# Allows what the browser's built-in page for an image, sound, film or document loads.
_DISPLAYED_POLICY: Final = (
    "default-src 'none'; img-src 'self'; media-src 'self'; object-src 'self';"
    " style-src 'unsafe-inline'; sandbox"
)

_SCRIPTS: Final = frozenset(
    {
        *("script", "worker", "sharedworker", "serviceworker", "audioworklet", "paintworklet"),
        *("xslt", "style", "manifest"),
    }
)


def content_headers(stored_name: str, content_type: str) -> dict[str, str]:
    """Return the headers that control what a browser does with a file.

    ``content_type`` is the stored type, which an uploader may have declared. Send the headers with
    every response for the file (whole, partial, 304 and HEAD), for every storage.
    """
    media_type = _media_type(content_type)
    is_displayed = _DISPLAYED.fullmatch(media_type) is not None
    return {
        "Content-Type": served_type(content_type),
        "Content-Disposition": _disposition(is_displayed, given_name(stored_name)),
        "Content-Security-Policy": _DISPLAYED_POLICY if is_displayed else _POLICY,
        "X-Content-Type-Options": "nosniff",
        # Apps show files on pages of other origins.
        "Cross-Origin-Resource-Policy": "cross-origin",
        # The address of a private file holds its signature.
        "Referrer-Policy": "no-referrer",
    }


def _disposition(is_displayed: bool, name: str) -> str:
    """Return the header with the file's name, as RFC 6266 has it.

    Names beyond ASCII come in both forms; old clients read the first alone.
    """
    kind = "inline" if is_displayed else "attachment"
    if name.isascii():
        return f'{kind}; filename="{name}"'
    fallback = re.sub(r"[^ -~]", "_", unicodedata.normalize("NFC", name))
    return f"{kind}; filename=\"{fallback}\"; filename*=UTF-8''{quote(name, safe='')}"


def served_type(content_type: str) -> str:
    """Return the Content-Type to send for a file of this stored type."""
    media_type = _media_type(content_type)
    if not (_DISPLAYED.fullmatch(media_type) or _HARMLESS.fullmatch(media_type)):
        return UNKNOWN
    charset = content_type.partition("charset=")[2].strip('" ').lower()
    if _WITH_CHARSET.match(media_type) and _CHARSET.fullmatch(charset):
        return f"{media_type}; charset={charset}"
    # Browsers read a text without a charset as one of single bytes. Parse Server sends this too.
    return f"{media_type}; charset=utf-8" if media_type.startswith("text/") else media_type


def check_destination(meta: Mapping[str, Any]) -> None:
    """Refuse a browser's request for a file as a service worker, a script or a style sheet.

    Raises ``OperationForbidden`` (403). Clients that don't name a destination pass.
    """
    destination = str(meta.get("HTTP_SEC_FETCH_DEST") or "").strip().lower()
    if meta.get("HTTP_SERVICE_WORKER") is not None or destination in _SCRIPTS:
        raise OperationForbidden("A file can't be loaded as a script or a style sheet.", status=403)


def _media_type(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()
