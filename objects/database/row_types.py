"""Row types: what a statement returns, decoded by psycopg's own loaders.

A row type is a ``NamedTuple`` or ``msgspec.Struct`` whose fields are the columns of a statement, in
its order, annotated ``str``, ``int``, ``float`` or ``bool``, with ``| None`` where a column may be
null. ``select_list``
writes the columns from the same declaration: a field is the column of its name unless its
annotation carries the SQL, as in ``Annotated[int, "COALESCE({row}.attempts, 0)"]``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from operator import itemgetter
from types import NoneType, UnionType
from typing import Annotated, Any, Final, NamedTuple, Union, get_args, get_origin, get_type_hints

from msgspec import Struct

# The loaders are those of PostgreSQL's int8, float8, bool and text. They parse the text of any
# narrower type as well, and a whole or decimal ``numeric``.
_OIDS: Final[dict[type, int]] = {int: 20, float: 701, bool: 16, str: 25}
_PARAMETER: Final = re.compile(r"%\((\w+)\)s")


class Decoder(NamedTuple):
    """How a result is decoded: the loader of each column, and what makes a row of the values."""

    oids: tuple[int, ...]
    make: Callable[[Sequence[Any]], Any]


# By row type and by value type; there are as many as the code declares.
_decoders: Final[dict[Any, Decoder]] = {}
_value_decoders: Final[dict[Any, Decoder]] = {}


def decoder_of(row_type: Any) -> Decoder:
    """Return the decoder of a row type. Raises ``TypeError`` for a field of another type."""
    decoder = _decoders.get(row_type)
    if decoder is None:
        hints = get_type_hints(row_type)
        make = _make_struct(row_type) if issubclass(row_type, Struct) else row_type._make
        decoder = Decoder(tuple(_oid(hint) for hint in hints.values()), make)
        _decoders[row_type] = decoder
    return decoder


def _make_struct(row_type: type[Struct]) -> Callable[[Sequence[Any]], Any]:
    return lambda values: row_type(*values)


def value_decoder_of(value_type: Any) -> Decoder:
    """Return the decoder of a statement with one column, each row of which is its value."""
    decoder = _value_decoders.get(value_type)
    if decoder is None:
        decoder = _value_decoders[value_type] = Decoder((_oid(value_type),), itemgetter(0))
    return decoder


def select_list(row_type: type, row: str, **names: str) -> str:
    """Return the columns of a row type as SQL, read from the table alias ``row``.

    ``names`` are what else its SQL has in braces."""
    hints = get_type_hints(row_type, include_extras=True)
    return ", ".join(
        _expression(name, hint).format(row=row, **names) for name, hint in hints.items()
    )


def numbered_parameters(sql: str) -> tuple[str, tuple[str, ...]]:
    """Replace ``%(name)s`` by libpq's placeholders; return the statement and the names in order.

    A name that occurs several times is one parameter, whose type PostgreSQL takes from the first
    place: cast it where places differ.
    """
    names: dict[str, int] = {}

    def number(match: re.Match[str]) -> str:
        return f"${names.setdefault(match[1], len(names) + 1)}"

    return _PARAMETER.sub(number, sql).replace("%%", "%"), tuple(names)


def _oid(hint: Any) -> int:
    is_union = get_origin(hint) in (Union, UnionType)
    types = [part for part in get_args(hint) if part is not NoneType] if is_union else [hint]
    if len(types) != 1 or types[0] not in _OIDS:
        raise TypeError(f"no loader for {hint}")
    return _OIDS[types[0]]


def _expression(name: str, hint: Any) -> str:
    if get_origin(hint) is Annotated:
        return str(hint.__metadata__[0])
    return f"{{row}}.{name}"
