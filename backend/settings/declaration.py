"""Declaring a setting: its name, type, default, bounds, unit and one line of documentation.

``NAME = whole(10, "seconds that …", least=1)`` in an ``Area`` of ``backend.settings.areas`` is all
that a setting needs. Its reader, its attribute of ``service_settings``, the report of misspelt
names, ``docs/configuration.md`` and ``.env.example`` are derived from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from ipaddress import ip_network
from typing import Any, ClassVar, Generic, Self, TypedDict, TypeVar, Unpack, cast, overload

from backend.settings import environment
from backend.settings.environment import BadSetting

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
Word = TypeVar("Word", bound=str)
Reader = Callable[[str, T], T]
"""Return the value of a variable, given its name and default. Raises ``BadSetting``."""
LARGEST = 2**31 - 1


class Options(TypedDict, total=False):
    """What any kind of setting may have in addition to its default and its documentation.

    ``derived`` computes the default from other settings and the machine; ``shown`` is how the
    documentation writes the default. ``former`` lists names that are read for one more version.
    With ``is_numbered``, ``NAME_137`` is the setting of network 137. ``needs_restart`` says that
    a reload of ``script/server`` doesn't apply a change.
    """

    unit: str
    secret: bool
    shown: str
    derived: Callable[[], Any]
    former: tuple[str, ...]
    is_numbered: bool
    needs_restart: bool


@dataclass(eq=False)
class Setting(Generic[T_co]):
    """One setting. As the attribute of an instance of an area it is its value.

    The last fields are those of ``Options``, and the smallest and largest number."""

    default: T_co
    documentation: str
    reader: Reader[T_co]
    _: KW_ONLY
    unit: str = ""
    secret: bool = False
    shown: str = ""
    derived: Callable[[], T_co] | None = None
    former: tuple[str, ...] = ()
    is_numbered: bool = False
    needs_restart: bool = False
    bounds: tuple[int, int] | None = None
    name: str = field(default="", init=False)

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name
        environment.declare(name, self.former, is_numbered=self.is_numbered)

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...

    @overload
    def __get__(self, instance: Area, owner: type) -> T_co: ...

    def __get__(self, instance: Area | None, owner: type) -> Self | T_co:
        if instance is None:
            return self
        value: T_co = instance.value_of(self)
        # Found without this method from now on.
        instance.__dict__[self.name] = value
        return value

    def read(self) -> T_co:
        """Return the value from the environment. Raises ``BadSetting``."""
        return self.reader(self.name, self.derived() if self.derived else self.default)


class Area:
    """Settings about one topic, and the section of the documentation that they are in."""

    title: ClassVar[str]

    @classmethod
    def settings(cls) -> dict[str, Setting[Any]]:
        """Return the declarations of this class, without those of its bases."""
        return {key: value for key, value in vars(cls).items() if isinstance(value, Setting)}

    @classmethod
    def read(cls) -> dict[str, Any]:
        """Return all values from the environment. Raises ``BadSetting``."""
        values = {name: setting.read() for name, setting in cls.settings().items()}
        cls.check(values)
        return values

    @classmethod
    def check(cls, values: dict[str, Any]) -> None:
        """Raise ``BadSetting`` for values that don't go together."""

    def value_of(self, setting: Setting[T]) -> T:
        """Return the value of one of the settings."""
        return setting.read()


# -- Kinds of settings ----------------------------------------------------------------------------


def text(documentation: str, default: str = "", **options: Unpack[Options]) -> Setting[str]:
    """A text without surrounding blanks."""
    return Setting(default, documentation, environment.text, **options)


def flag(default: bool, documentation: str, **options: Unpack[Options]) -> Setting[bool]:
    """A switch: on or off."""
    return Setting(default, documentation, environment.flag, **options)


def whole(
    default: int,
    documentation: str,
    *,
    least: int = 0,
    most: int = LARGEST,
    **options: Unpack[Options],
) -> Setting[int]:
    """A whole number between ``least`` and ``most``."""
    reader = partial(environment.whole, least=least, most=most)
    return Setting(default, documentation, reader, bounds=(least, most), **options)


def choice(
    default: Word, words: Sequence[Word], documentation: str, **options: Unpack[Options]
) -> Setting[Word]:
    """One of a few words, in any case."""

    def reader(name: str, default: Word) -> Word:
        return cast("Word", environment.choice(name, default, words))

    return Setting(default, documentation, reader, **options)


def words(
    documentation: str, default: Iterable[str] = (), **options: Unpack[Options]
) -> Setting[tuple[str, ...]]:
    """A list, its items separated by commas."""
    return Setting(tuple(default), documentation, _words, **options)


def address(
    documentation: str,
    schemes: Sequence[str] = ("http", "https"),
    default: str = "",
    **options: Unpack[Options],
) -> Setting[str]:
    """A URL with one of the schemes; those of HTTP without a slash at the end."""

    def reader(name: str, default: str) -> str:
        url = environment.address(name, default, schemes)
        return url.rstrip("/") if "http" in schemes else url

    return Setting(default, documentation, reader, **options)


def items(
    documentation: str,
    parse: Callable[[str], str],
    expected: str = "",
    default: Iterable[str] = (),
    **options: Unpack[Options],
) -> Setting[tuple[str, ...]]:
    """A list like ``words``, whose items ``parse`` converts. It raises ``ValueError`` for an item
    that isn't ``expected``."""

    def reader(name: str, default: Iterable[str]) -> tuple[str, ...]:
        values: dict[str, None] = {}
        for item in environment.words(name, default):
            try:
                values[parse(item)] = None
            except ValueError:
                raise BadSetting(f"{name} must list {expected}, not {item!r}.") from None
        return tuple(values)

    return Setting(tuple(default), documentation, reader, **options)


def networks(
    documentation: str, default: Iterable[str] = (), **options: Unpack[Options]
) -> Setting[tuple[str, ...]]:
    """IP addresses and networks, separated by commas."""
    return items(documentation, _network, "IP addresses or networks", default, **options)


def _words(name: str, default: Iterable[str]) -> tuple[str, ...]:
    return tuple(environment.words(name, default))


def _network(item: str) -> str:
    ip_network(item, strict=False)
    return item
