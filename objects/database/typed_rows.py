"""Rows of statements as objects whose attributes have Python's types.

``statements.fetch`` returns every value as PostgreSQL's text. A row's class is a NamedTuple or a
dataclass; its fields are the columns in order, and their annotations say the types.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import NoneType
from typing import Any, TypeVar, cast, get_args, get_type_hints

from objects.database.statements import fetch

_RowT = TypeVar("_RowT")
_Converter = Callable[[str], Any]

_CONVERTERS: dict[type, _Converter | None] = {
    str: None,
    int: int,
    float: float,
    bool: lambda text: text == "t",
    bytes: lambda text: bytes.fromhex(text[2:]),
}


def fetch_as(
    row_type: type[_RowT],
    sql: str,
    params: Sequence[Any] | Mapping[str, Any] = (),
    *,
    prepare: bool,
) -> list[_RowT]:
    """Run a statement as ``fetch`` does, and return its rows as objects of ``row_type``.

    The fields may be of ``str``, ``int``, ``float``, ``bool`` and ``bytes`` (of bytea), each also
    ``| None``; null is None in any case.
    """
    rows = fetch(sql, params, prepare=prepare)
    if not rows:
        return []
    converters = _converters(cast(Any, row_type))
    return [
        row_type(
            *(
                text if convert is None or text is None else convert(text)
                for convert, text in zip(converters, row, strict=True)
            )
        )
        for row in rows
    ]


@cache
def _converters(row_type: Any) -> tuple[_Converter | None, ...]:
    hints = get_type_hints(row_type)
    return tuple(_CONVERTERS[_without_none(hints[name])] for name in row_type.__annotations__)


def _without_none(hint: Any) -> type:
    (kind,) = [kind for kind in get_args(hint) or (hint,) if kind is not NoneType]
    return kind
