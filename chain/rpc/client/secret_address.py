"""An address that is never shown: providers put keys into paths, queries and names."""

from __future__ import annotations

import re
from base64 import b64encode
from typing import Final
from urllib.parse import unquote, urlsplit, urlunsplit

_SHORTEST_SECRET: Final = 6  # characters
_ADDRESS = re.compile(r"\b(?:https?|wss?)://\S+", re.IGNORECASE)
_HIDDEN = "***"


class Address:
    """The address of a node: ``url`` without a name and password, which are in ``headers``."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        name, _, host = parts.netloc.rpartition("@")
        self.headers: dict[str, str] = {}
        if name:
            self.headers["Authorization"] = f"Basic {b64encode(unquote(name).encode()).decode()}"
        self.url = urlunsplit(parts._replace(netloc=host, fragment=""))
        secrets = {url, self.url, *secrets_of(url)}
        self._secrets = sorted(secrets, key=len, reverse=True)

    def __repr__(self) -> str:
        return "<Address>"

    def without(self, text: str) -> str:
        """The text of a provider without this address or what may be secret in it."""
        for secret in self._secrets:
            text = text.replace(secret, _HIDDEN)
        return _ADDRESS.sub(_HIDDEN, text)


def secrets_of(url: str) -> list[str]:
    """What may be a key in an address: the parts of its path and query that are long enough, the
    name and the password."""
    parts = urlsplit(url)
    name, _, _ = parts.netloc.rpartition("@")
    parts_of_url = [*name.split(":"), *parts.path.split("/"), *re.split(r"[&=]", parts.query)]
    return [part for part in parts_of_url if len(part) >= _SHORTEST_SECRET]
