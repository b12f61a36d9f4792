"""Where files are: their addresses, and links to private ones that expire."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from time import time
from urllib.parse import quote, urlsplit

import regex
from django.core.signing import BadSignature, Signer

from backend.settings.conf import service_settings

EXPIRES = "expires"
SIGNATURE = "signature"

_MARK = "[0-9a-f]{32}_"
# What a client calls a file: letters and digits of every script, and punctuation that no shell,
# path or header reads as a separator. As with Parse there is no slash, no dot at the beginning.
_GIVEN = (
    r"[[_\p{L}\p{N}]--\p{Default_Ignorable_Code_Point}]"
    r"[[@. ~_()\[\]+,'&\-\p{L}\p{M}\p{N}]--\p{Default_Ignorable_Code_Point}]{0,127}"
)
_GIVEN_NAME = regex.compile(_GIVEN, regex.V1)
_LAST_PART = regex.compile(_MARK + _GIVEN, regex.V1)
# No part looks like a file, whose place in storage it could have, or is too long for a folder.
_PART = rf"(?!{_MARK})[a-zA-Z0-9_-]{{1,255}}"
_FILE = re.compile(
    rf'\{{"url": "([^"\\]*)", "name": "((?:{_PART}/)*+{_MARK}[^"\\]*)", "__type": "File"\}}'
)
# The route of files' metadata begins with the first part that isn't allowed.
_DIRECTORY = re.compile(rf"(?!metadata(?:/|$))(?=[a-zA-Z0-9]){_PART}(?:/{_PART})*")
_LONGEST_DIRECTORY = 256  # as with Parse Server
_NEEDS_NO_QUOTES = re.compile(r"[A-Za-z0-9_.~-]*")
_MOMENT = re.compile(r"[0-9]{1,12}")


@dataclass(frozen=True, slots=True)
class SignedUrl:
    """An address that opens a private file until it expires."""

    url: str
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Link:
    """What a request says to show that it may read: the two parameters of a signed address."""

    expires: str
    signature: str


def is_directory(text: str) -> bool:
    """Whether stored files may be in this directory: ``a/b``."""
    return len(text) <= _LONGEST_DIRECTORY and _DIRECTORY.fullmatch(text) is not None


def is_given_name(name: str) -> bool:
    """Whether a client may call a file so: ``photo (1).png``."""
    return _GIVEN_NAME.fullmatch(name) is not None


def is_stored_name(name: str) -> bool:
    """Whether a stored file may have this name: ``a/b/0f3c…_photo.png``, or without a directory."""
    directory, slash, last = name.rpartition("/")
    return _LAST_PART.fullmatch(last) is not None and (not slash or is_directory(directory))


def file_url(name: str) -> str:
    """The address of a file, which is all that everybody's files need."""
    settings = service_settings
    place = _place(file_origin(), settings.MOUNT_PATH, settings.APP_ID)
    if _NEEDS_NO_QUOTES.fullmatch(name):
        return place + name
    # Slashes in other names, which clients may put into objects, could lead elsewhere.
    return place + quote(name, safe="/" if is_stored_name(name) else "")


def file_origin() -> str:
    """Where files are served: ``FILE_HOST`` by the scheme of ``PUBLIC_URL``, or ``PUBLIC_URL``."""
    public_url, host = service_settings.PUBLIC_URL, service_settings.FILE_HOST
    return f"{public_url.partition('://')[0]}://{host}" if host else public_url


@lru_cache(maxsize=4)
def _place(origin: str, mount_path: str, app_id: str) -> str:
    return f"{origin}{mount_path}/files/{quote(app_id, safe='')}/"


def signed_url(name: str) -> SignedUrl:
    """An address that opens the file for ``FILE_URL_VALIDITY`` seconds."""
    moment = int(time()) + service_settings.FILE_URL_VALIDITY
    signature = _signer().signature(_signed(name, str(moment)))
    url = f"{file_url(name)}?{EXPIRES}={moment}&{SIGNATURE}={quote(signature, safe='')}"
    return SignedUrl(url, datetime.fromtimestamp(moment, UTC))


def is_genuine(name: str, link: Link) -> bool:
    """Whether we have signed this link for this file; it may have expired."""
    if not _MOMENT.fullmatch(link.expires):
        return False
    try:
        _signer().unsign(f"{_signed(name, link.expires)}:{link.signature}")
    except BadSignature:
        return False
    return True


def has_expired(link: Link) -> bool:
    """Whether a genuine link's time is over."""
    return int(link.expires) <= time()


def address_in_value(name: str, url: str | None) -> str:
    """The ``url`` that a File value in an object is stored with.

    It follows from the name, whatever the client says: whoever fetches it later (a function, a
    webhook, an app) is never led to an address of a client's choice. Hosts in
    ``FILE_URL_DOMAINS`` are the exception.
    """
    if url is not None and service_settings.FILE_URL_DOMAINS and _is_trusted(url):
        return url
    return file_url(name)


def with_current_addresses(data: str) -> str:
    """An object's JSON as the database writes it, each of our files with the url of today.

    jsonb sorts the keys of an object by length, so a File always reads the same; inside of a text
    its quotes would be escaped.
    """
    return _FILE.sub(_current, data)


def _current(match: re.Match[str]) -> str:
    url, name = match.groups()
    current = address_in_value(name, url)
    if current == url:
        return match[0]
    return f'{{"url": "{current}", "name": "{name}", "__type": "File"}}'


def _is_trusted(url: str) -> bool:
    # Browsers and libraries don't agree on how to read these.
    if "\\" in url or any(character <= " " for character in url):
        return False
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        return False
    if parts.scheme not in ("http", "https") or "@" in parts.netloc or not host:
        return False
    domains = service_settings.FILE_URL_DOMAINS
    # A host is below *.example.org if it ends with ".example.org".
    return host in domains or any(
        domain == "*" or (domain.startswith("*.") and host.endswith(domain[1:]))
        for domain in domains
    )


def _signed(name: str, moment: str) -> str:
    return f"{service_settings.APP_ID}/{name}:{moment}"


def _signer() -> Signer:
    return Signer(salt="objects.files")
