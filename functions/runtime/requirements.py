"""The requirements of a function on its caller, checked after the parameters, before the body.

The messages are Parse's, with its code 142, for compatibility with clients (docs/functions.md).
Plain Python, without Django.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from backend.kernel.errors import ValidationFailed
from backend.kernel.principal import Principal

_NOTHING: Final[Mapping[str, Collection[Any] | None]] = {}


@dataclass(frozen=True)
class RateLimit:
    """``count`` calls in any ``window`` seconds for each caller, told apart by ``per``: a scope of
    the setting ``RATE_LIMITS``, such as ``ip``, ``user`` or ``global``."""

    count: int
    window: float
    per: str = "ip"
    include_master: bool = False
    message: str | None = None


@dataclass(frozen=True)
class Requirements:
    """The requirements on a caller. The master key passes, unless ``even_master`` is set.

    ``user_keys`` are fields that the user's object must have, with the values allowed for each, or
    None for any.
    """

    user: bool = False
    master: bool = False
    any_role: frozenset[str] = frozenset()
    all_roles: frozenset[str] = frozenset()
    user_keys: Mapping[str, Collection[Any] | None] = field(default_factory=lambda: _NOTHING)
    rate_limit: RateLimit | None = None
    even_master: bool = False

    @property
    def asks_for_user(self) -> bool:
        return bool(self.user or self.any_role or self.all_roles or self.user_keys)

    def check(self, principal: Principal, user: Callable[[], Mapping[str, Any]]) -> None:
        """Raise ``ValidationFailed`` unless the caller qualifies. ``user`` reads its object."""
        if self.master and not (principal.has_master_key and principal.may_write_as_master):
            raise _failed("Master key is required to complete this request.")
        if principal.may_write_as_master and not self.even_master:
            return
        if self.asks_for_user and principal.user_id is None:
            raise _failed("Please login to continue.")
        if self.any_role and self.any_role.isdisjoint(principal.roles):
            raise _failed("User does not match the required roles.")
        if not self.all_roles <= principal.roles:
            raise _failed("User does not match all the required roles.")
        if self.user_keys:
            self._check_keys(user())

    def _check_keys(self, user: Mapping[str, Any]) -> None:
        for name, allowed in self.user_keys.items():
            value = user.get(name)
            if value is None:
                raise _failed(f"Please set data for {name} on your account.")
            if allowed is not None and value not in allowed:
                raise _failed(f"Invalid data for {name} on your account.")


def _failed(text: str) -> ValidationFailed:
    return ValidationFailed(f"Validation failed. {text}")


def requirements(
    *,
    require_user: bool = False,
    require_master: bool = False,
    require_any_role: Collection[str] = (),
    require_all_roles: Collection[str] = (),
    require_user_keys: Collection[str] | Mapping[str, Any] = (),
    rate_limit: RateLimit | None = None,
    even_master: bool = False,
) -> Requirements:
    """Return requirements from the arguments of a decorator."""
    for name, value in (("any", require_any_role), ("all", require_all_roles)):
        if isinstance(value, str):
            raise TypeError(f"require_{name}_role wants a list of names")
    if isinstance(require_user_keys, str):
        raise TypeError("require_user_keys wants a list of names, or a mapping")
    keys: dict[str, Collection[Any] | None] = {}
    if isinstance(require_user_keys, Mapping):
        for name, allowed in require_user_keys.items():
            is_many = isinstance(allowed, list | tuple | set | frozenset)
            keys[name] = allowed if allowed is None or is_many else (allowed,)
    else:
        keys = dict.fromkeys(require_user_keys)
    return Requirements(
        user=require_user,
        master=require_master,
        any_role=frozenset(require_any_role),
        all_roles=frozenset(require_all_roles),
        user_keys=keys,
        rate_limit=rate_limit,
        even_master=even_master,
    )
