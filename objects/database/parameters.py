"""The parameters of a statement in PostgreSQL's text form, and the placeholders for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from backend.kernel.errors import IncorrectType
from backend.kernel.texts.cache import short_cache
from objects.core.names import is_storable_text
from objects.database.row_types import numbered_parameters

Parameters = Sequence[Any] | dict[str, Any]
"""The parameters of a statement: a sequence for ``%s``, a dictionary for ``%(name)s``."""
LONGEST_KEPT = 4096
"""Characters of a statement that is kept, here and on the server. Longer ones are rare and come in
any number of shapes, some of them from clients."""


@short_cache(maxsize=2048, longest=LONGEST_KEPT)
def with_numbers(sql: str, parameters: int) -> bytes:
    """Return the statement with libpq's placeholders ($1, $2, …)."""
    check_text(sql)
    parts = sql.split("%s")
    if len(parts) - 1 != parameters:
        raise ValueError(f"{len(parts) - 1} placeholders for {parameters} parameters: {sql}")
    numbered = [part + f"${n}" for n, part in enumerate(parts[:-1], 1)]
    # As in psycopg's statements, which tests run these texts with, %% is the operator %.
    return "".join([*numbered, parts[-1]]).replace("%%", "%").encode()


@short_cache(maxsize=1024, longest=LONGEST_KEPT)
def with_names(sql: str, parameters: int) -> tuple[bytes, tuple[str, ...]]:
    """Return the statement with libpq's placeholders, and its parameters' names in order."""
    check_text(sql)
    statement, names = numbered_parameters(sql)
    if len(names) != parameters:
        raise ValueError(f"{len(names)} placeholders for {parameters} parameters: {sql}")
    return statement.encode(), names


def as_text(value: Any) -> str | None:
    """A parameter in PostgreSQL's text form, for an array of texts that the statement casts."""
    if value is None or type(value) is str:
        return value  # checked with the array
    encoded = encode(value)
    return None if encoded is None else encoded.decode()


def encode(value: Any) -> bytes | None:
    """A parameter in PostgreSQL's text form; its type follows from where it stands."""
    if isinstance(value, str):
        if "\x00" in value:
            raise unstorable()
        try:
            return value.encode()
        except UnicodeEncodeError:  # half of a surrogate pair
            raise unstorable() from None
    if value is None:
        return None
    if isinstance(value, bool):
        return b"t" if value else b"f"
    if isinstance(value, list | tuple):
        elements = [b"NULL" if item is None else _encode_element(item) for item in value]
        return b"{" + b",".join(elements) + b"}"
    return str(value).encode()


def check_text(text: str) -> None:
    """Raise ``IncorrectType`` for text that libpq would cut or can't encode."""
    if not is_storable_text(text):
        raise unstorable()


def unstorable() -> IncorrectType:
    """Return the error for text that PostgreSQL can't store."""
    return IncorrectType("Text must not hold NUL or half of a surrogate pair.")


def _encode_element(value: Any) -> bytes:
    encoded = encode(value)
    assert encoded is not None
    encoded = encoded.replace(b"\\", b"\\\\").replace(b'"', b'\\"')
    return b'"' + encoded + b'"'
