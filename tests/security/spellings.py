"""Spellings of a name that some layer may read as the name itself, and the routes they go to."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from backend.rest_urls import urlpatterns

Spell = Callable[[str], str]


@dataclass(frozen=True)
class Spelling:
    """``spell`` makes the percent-encoded spelling of a name in a path.

    ``same`` says that it means the name. ``unreadable`` says that no route may accept it.
    """

    label: str
    spell: Spell
    same: bool = False
    unreadable: bool = False


def _after(raw: str) -> Spell:
    return lambda name: quote(name) + raw


def _before(raw: str) -> Spell:
    return lambda name: raw + quote(name)


def _inside(raw: str) -> Spell:
    return lambda name: quote(name[:1]) + raw + quote(name[1:])


def _full_width(name: str) -> str:
    return quote("".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in name))


SPELLINGS = (
    # The name itself
    Spelling("as it is", quote, same=True),
    Spelling("a letter encoded", lambda name: f"%{ord(name[0]):02x}{quote(name[1:])}", same=True),
    Spelling("all encoded", lambda name: "".join(f"%{ord(c):02X}" for c in name), same=True),
    Spelling("a slash behind", _after("/"), same=True),
    # Controls, and bytes that aren't UTF-8
    *(
        Spelling(f"{place} {raw}", make(raw), unreadable=True)
        for place, make in (("behind", _after), ("before", _before), ("inside", _inside))
        for raw in ("%00", "%0A", "%1f", "%7F", "%C2%80", "%FF", "%C0%80", "%ED%A0%80", "%2500")
    ),
    Spelling("NUL and more", _after("%00x"), unreadable=True),
    Spelling("a line end", _after("%0d%0a"), unreadable=True),
    # Decoded twice, cut, or resolved
    Spelling("a letter encoded twice", lambda name: f"%25{ord(name[0]):02x}{quote(name[1:])}"),
    Spelling("an encoded slash and more", _after("%2Fx")),
    Spelling("two slashes behind", _after("//")),
    Spelling("a folder up", _before("x%2F..%2F")),
    Spelling("a folder up, plain", _before("x/../")),
    Spelling("a dot before", _before("./")),
    Spelling("a dot behind", _after(".")),
    Spelling("a parameter of the path", _after(";x=1")),
    Spelling("an encoded question mark", _after("%3Fx=1")),
    Spelling("an encoded fragment", _after("%23x")),
    Spelling("a backslash", _after("%5C")),
    Spelling("a quote", _after("%27")),
    Spelling("a percent sign", _after("%25")),
    Spelling("a broken escape", _after("%zz")),
    # Spaces
    Spelling("a space behind", _after("%20")),
    Spelling("a space before", _before("%20")),
    Spelling("a plus behind", _after("+")),
    Spelling("a hard space", _after("%C2%A0")),
    Spelling("a wide space", _before("%E3%80%80")),
    # What case folding and normalisation make the same, and what is invisible
    Spelling("the other case", lambda name: quote(name.swapcase())),
    Spelling("full width", _full_width),
    Spelling("a zero width joiner", _inside("%E2%80%8D")),
    Spelling("a soft hyphen", _inside("%C2%AD")),
    Spelling("a byte order mark", _before("%EF%BB%BF")),
    Spelling("a mark of direction", _after("%E2%80%AE")),
    Spelling("a combining accent", _after("%CC%81")),
    Spelling("a replacement character", _after("%EF%BF%BD")),
    Spelling("empty", lambda name: ""),
)


@dataclass(frozen=True)
class Place:
    """One name in the path of one route, for one method."""

    route: str
    method: str
    name: str
    view: type[Any] | None
    master: bool

    def __str__(self) -> str:
        return f"{self.method} /{self.route} {self.name}"

    def path(self, values: dict[str, str], spelled: str) -> str:
        """The path with this spelling in the place of the name."""

        def part(match: re.Match[str]) -> str:
            return spelled if match[1] == self.name else quote(values[match[1]])

        return "/" + NAME.sub(part, self.route)


NAME = re.compile(r"<(?:str|path):(\w+)>")
METHODS = ("GET", "POST", "PUT", "DELETE")


def places() -> Iterator[Place]:
    """Every name in every route of the service."""
    for pattern in urlpatterns:
        route = str(pattern.pattern)
        view = getattr(pattern.callback, "view_class", None)
        master = "MASTER" in getattr(getattr(view, "requires", None), "name", "")
        for name in NAME.findall(route):
            for method in METHODS:
                yield Place(route, method, name, view, master)


def routes() -> list[str]:
    """Every route of the service, with or without names."""
    return [str(pattern.pattern) for pattern in urlpatterns]
