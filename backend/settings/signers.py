"""Who signs on which network, and what may be paid, from the environment.

Each variable may have a network's id at its end (``SIGNER_PRIVATE_KEY_137``); the one without a
number holds for the networks that have none of their own. Of private key, keystore and URL one
network has one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any, Final, TypeVar

from backend.settings import environment
from backend.settings.conf import DEFAULTS
from backend.settings.environment import BadSetting

KINDS: Final = ("SIGNER_PRIVATE_KEY", "SIGNER_KEYSTORE", "SIGNER_URL")

_KEY = re.compile(r"(0x)?[0-9a-fA-F]{64}")
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")
_NUMBERED = re.compile(r"_([1-9][0-9]{0,15})(_FILE)?")
_MOST_GWEI: Final = 10**9
_WEI_OF_GWEI: Final = 10**9

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Hidden:
    """A secret that no text of a settings object shows."""

    value: str = field(repr=False)


def service_values() -> dict[str, Any]:
    """The knobs of ``backend.settings.conf`` that are about signing and sending."""
    values: dict[str, Any] = {
        "SIGNER_PRIVATE_KEY": _by_network("SIGNER_PRIVATE_KEY", _private_key),
        "SIGNER_KEYSTORE": _by_network("SIGNER_KEYSTORE", lambda name, text: text),
        "SIGNER_KEYSTORE_PASSWORD": _by_network(
            "SIGNER_KEYSTORE_PASSWORD", lambda name, text: Hidden(text)
        ),
        "SIGNER_URL": _by_network("SIGNER_URL", _url),
        "SIGNER_ADDRESS": _by_network("SIGNER_ADDRESS", _address),
    }
    for name in ("MAX_FEE_GWEI", "MAX_PRIORITY_FEE_GWEI"):
        values[name] = DEFAULTS[name] | _by_network(name, _gwei)
    for name, least, most in (("STUCK_AFTER", 15, 86_400), ("SIGNER_TIMEOUT", 1, 30)):
        values[name] = environment.whole(name, DEFAULTS[name], least=least, most=most)
    _check_kinds(values)
    return values


def _by_network(name: str, read: Callable[[str, str], _T]) -> dict[int | None, _T]:
    """The values by network; that without a number under None."""
    numbers = {
        int(match[1])
        for variable in os.environ
        if variable.startswith(name) and (match := _NUMBERED.fullmatch(variable[len(name) :]))
    }
    found = {}
    for network in [None, *sorted(numbers)]:
        variable = name if network is None else f"{name}_{network}"
        text = environment.text(variable)
        if text:
            found[network] = read(variable, text)
    return found


def _check_kinds(values: dict[str, Any]) -> None:
    seen: dict[int | None, str] = {}
    for kind in KINDS:
        for network in values[kind]:
            if network in seen:
                end = "" if network is None else f"_{network}"
                both = f"{seen[network]}{end} and {kind}{end}"
                raise BadSetting(f"{both} are both set: one signer signs.")
            seen[network] = kind


# Texts never have the value: it may be a secret.


def _private_key(name: str, text: str) -> Hidden:
    if not _KEY.fullmatch(text):
        raise BadSetting(f"{name} must be 64 hexadecimal digits.")
    return Hidden(text.removeprefix("0x"))


def _address(name: str, text: str) -> str:
    if not _ADDRESS.fullmatch(text):
        raise BadSetting(f"{name} must be an address (0x and 40 hexadecimal digits).")
    return text


def _url(name: str, text: str) -> Hidden:
    return Hidden(environment.address(name, "", ("http", "https")).rstrip("/"))


def _gwei(name: str, text: str) -> int:
    """An amount in gwei, as wei."""
    try:
        amount = Decimal(text) * _WEI_OF_GWEI
        is_amount = 1 <= amount <= _MOST_GWEI * _WEI_OF_GWEI
    except InvalidOperation:
        is_amount = False
    if not is_amount:
        raise BadSetting(f"{name} must be a number of gwei above 0.")
    return int(amount)
