"""What code of a deployment may raise, return and log, and the places where it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from enum import IntEnum
from functools import reduce
from typing import Any, Final

import functions
from backend.kernel.errors import ServiceError
from functions import Request, function, job
from functions.runtime.registry import registry
from objects.users.adapters import Adapter, ProviderIdentity

HALF: Final = "bad \ud83d text"


class Broken:
    """An object none of whose methods works."""

    def __str__(self) -> str:
        raise RuntimeError("as a deployment's class may")

    __repr__ = __str__

    def __bool__(self) -> bool:
        raise RuntimeError("as an array of a library does")


class BrokenError(Exception):
    def __str__(self) -> str:
        raise SystemExit(3)

    __repr__ = __str__


class Own(BaseException):
    """A class of the deployment's own."""


class Codes(IntEnum):
    TAKEN = 4711


class BareError(ServiceError):
    """Forgets the constructor of its base."""

    def __init__(self) -> None:
        Exception.__init__(self, "bare")


def _cyclic() -> Exception:
    first, second = RuntimeError("first"), RuntimeError("second")
    first.__cause__, second.__cause__ = second, first
    first.__context__, second.__context__ = second, first
    return first


def _recursion() -> Exception:
    def deeper(level: int) -> int:
        return deeper(level + 1)

    try:
        deeper(0)
    except RecursionError as error:
        return error
    raise AssertionError


def _refusal(**attributes: Any) -> ServiceError:
    error = functions.ScriptFailed("refused")
    vars(error).update(attributes)
    return error


class ClosedError(ServiceError):
    """Whose message can be neither read nor replaced."""

    def __init__(self) -> None:
        Exception.__init__(self, "closed")

    @property
    def message(self) -> str:  # type: ignore[override]
        raise SystemExit(3)


class NamelessError(Exception):
    """Of no class that can be asked for."""

    @property
    def __class__(self) -> Any:
        raise KeyError("class")

    @__class__.setter
    def __class__(self, value: Any) -> None: ...


class UnreadableError(Exception):
    """None of whose attributes can be read."""

    def __getattribute__(self, name: str) -> Any:
        raise Own("attribute")


ERRORS: Final[dict[str, Callable[[], BaseException]]] = {
    "half of a pair in a refusal": lambda: functions.ScriptFailed(HALF),
    "half of a pair": lambda: RuntimeError(HALF),
    "a text that raises": BrokenError,
    "a long text": lambda: RuntimeError("x" * 1_000_000),
    "a long text in a refusal": lambda: functions.ScriptFailed("\ud83d" * 1_000_000),
    "causes in a circle": _cyclic,
    "RecursionError": _recursion,
    "MemoryError": MemoryError,
    "SystemExit": lambda: SystemExit(3),
    "KeyboardInterrupt": KeyboardInterrupt,
    "GeneratorExit": GeneratorExit,
    "StopIteration": StopIteration,
    "BaseException": lambda: Own(HALF),
    "a code of 10,000 digits": lambda: _refusal(code=10**9999),
    "a code of an enumeration": lambda: _refusal(code=Codes.TAKEN),
    "a status of success": lambda: _refusal(status=200),
    "a message that is no text": lambda: _refusal(message=Broken()),
    "headers that are none": lambda: _refusal(headers={"X-A\n": HALF}),
    "no constructor": BareError,
    "a property that raises": ClosedError,
}


def _circle() -> list[Any]:
    circle: list[Any] = []
    circle.append({"again": circle})
    return circle


VALUES: Final[dict[str, Callable[[], Any]]] = {
    "half of a pair": lambda: {HALF: [HALF]},
    "10,000 digits": lambda: 10**9999,
    "NaN": lambda: Decimal("NaN"),
    "NaN of floats": lambda: float("nan"),
    "a circle": _circle,
    "a generator": lambda: (number for number in range(3)),
    "an object": object,
    "a broken object": Broken,
    "a set of broken objects": lambda: {Broken()},
    "an error": _cyclic,
    "5,000 levels": lambda: reduce(lambda inner, _: [inner], range(5000), [1]),
}


@dataclass
class Code:
    """The deployment's code. ``action`` runs at the place that is armed."""

    place: str = ""
    action: Callable[[Any], object] = field(default=lambda request: None)

    def at(self, place: str, request: Any = None) -> Any:
        return self.action(request) if self.place == place else None

    @contextmanager
    def armed(self, place: str, action: Callable[[Any], object]) -> Iterator[None]:
        self.place, self.action = place, action
        try:
            yield
        finally:
            self.place = ""


CODE: Final = Code()


@dataclass
class Checked:
    """A type of parameters with a validator."""

    value: int = 0

    def __post_init__(self) -> None:
        CODE.at("validator")


class Doorkeeper(Adapter):
    """A sign-in adapter of the deployment."""

    def verify(self, data: Any) -> ProviderIdentity:
        CODE.at("sign-in adapter")
        return ProviderIdentity("7")


TRIGGERS: Final = (
    *("before_save", "after_save", "before_delete", "after_delete", "before_find", "after_find"),
    *("before_login", "after_login", "after_logout", "before_password_reset"),
    *("before_connect", "before_subscribe", "after_event"),
)


@contextmanager
def registered() -> Iterator[Code]:
    """Register the code at all places."""
    with registry.temporarily():
        for event in TRIGGERS:
            declare = getattr(functions, event)
            takes_class = event not in (
                *("before_login", "after_login", "after_logout"),
                *("before_password_reset", "before_connect"),
            )
            declared = declare("Thing") if takes_class else declare()
            declared(lambda request, event=event: CODE.at(event, request))

        @function()
        def plain(request: Request) -> Any:
            return CODE.at("function", request)

        @function()
        def checked(request: Request, checked: Checked) -> None:
            return None

        @function()
        def committing(request: Request) -> str:
            with request.transaction():
                request.on_commit(lambda: CODE.at("on_commit", request))
            return "done"

        @job()
        def doomed(request: Any) -> Any:
            return CODE.at("job", request)

        @job()
        def checked_job(request: Any, checked: Checked) -> None:
            return None

        yield CODE
