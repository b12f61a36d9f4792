"""Endpoints, signers and fees of networks.

``RPC_URLS_<network id>`` lists the service's own endpoints of a network, ``URL`` or ``URL WEIGHT``
each; they are used together with those that staff have added. The settings of signers and fees
may end with a network's id too (``SIGNER_PRIVATE_KEY_137``); the one without a number holds for
the networks that have none of their own. A network has one of private key, keystore and URL.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

from backend.settings import environment
from backend.settings.declaration import Area, Setting, flag, whole
from backend.settings.environment import BadSetting

_KINDS: Final = ("SIGNER_PRIVATE_KEY", "SIGNER_KEYSTORE", "SIGNER_URL")
_SCHEMES: Final = ("http", "https")
_KEY = re.compile(r"(0x)?[0-9a-fA-F]{64}")
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")
_NUMBERED = re.compile(r"_([1-9][0-9]{0,15})(_FILE)?")
_MOST_GWEI: Final = 10**9
_GWEI: Final = 10**9  # wei

T = TypeVar("T")
ByNetwork = Mapping[int | None, T]
"""Values by network id; that of all other networks under None."""


@dataclass(frozen=True, slots=True)
class Hidden:
    """A secret that no text of a settings object shows."""

    value: str = field(repr=False)


def _numbers(name: str) -> list[int]:
    """Return the numbers N for which the environment has ``NAME_N``."""
    ends = (variable[len(name) :] for variable in os.environ if variable.startswith(name))
    return sorted({int(match[1]) for end in ends if (match := _NUMBERED.fullmatch(end))})


def _by_network(
    default: dict[int | None, T],
    documentation: str,
    parse: Callable[[str, str], T],
    shown: str = "",
    secret: bool = False,
) -> Setting[ByNetwork[T]]:
    """Declare a setting that each network may have one of."""

    def reader(name: str, default: ByNetwork[T]) -> ByNetwork[T]:
        variables = {None: name} | {number: f"{name}_{number}" for number in _numbers(name)}
        texts = {network: environment.text(name) for network, name in variables.items()}
        return {**default} | {
            network: parse(variables[network], text) for network, text in texts.items() if text
        }

    return Setting(default, documentation, reader, shown=shown, secret=secret, is_numbered=True)


def _rpc_urls(name: str, default: object) -> dict[int, tuple[tuple[str, int], ...]]:
    return {network: _endpoints(f"{name}_{network}") for network in _numbers(name)}


def _endpoints(name: str) -> tuple[tuple[str, int], ...]:
    endpoints = []
    for item in environment.words(name):
        url, _, weight = item.partition(" ")
        try:
            usable = urlsplit(url).scheme in _SCHEMES and bool(urlsplit(url).hostname)
        except ValueError:
            usable = False
        if not usable or not (weight.strip() or "10").isdecimal():
            # Without the value: it may have a key in it.
            raise BadSetting(f"{name} must list URLs of http or https, each with a weight or not.")
        endpoints.append((url, int(weight or 10)))
    return tuple(endpoints)


# Errors never repeat a value: it may be a secret.


def _private_key(name: str, text: str) -> Hidden:
    if not _KEY.fullmatch(text):
        raise BadSetting(f"{name} must be 64 hexadecimal digits.")
    return Hidden(text.removeprefix("0x"))


def _address(name: str, text: str) -> str:
    if not _ADDRESS.fullmatch(text):
        raise BadSetting(f"{name} must be an address (0x and 40 hexadecimal digits).")
    return text


def _url(name: str, text: str) -> Hidden:
    return Hidden(environment.address(name, "", _SCHEMES).rstrip("/"))


def _wei(name: str, text: str) -> int:
    """Return an amount in gwei as wei."""
    try:
        amount = Decimal(text) * _GWEI
        is_amount = 1 <= amount <= _MOST_GWEI * _GWEI
    except InvalidOperation:
        is_amount = False
    if not is_amount:
        raise BadSetting(f"{name} must be a number of gwei above 0.")
    return int(amount)


class Chain(Area):
    """Requests to nodes, monitored transactions, signing and sending."""

    title = "Chain"

    RPC_URLS: Setting[Mapping[int, Sequence[tuple[str, int]]]] = Setting(
        {},
        "with a network's id at the end of the name (`RPC_URLS_<network id>`): the service's own"
        " endpoints of that network, separated by commas, each with a weight or not (10):"
        " `https://a.example/KEY 10,https://b.example 5`. Never shown to anybody",
        _rpc_urls,
        secret=True,
        is_numbered=True,
    )
    RPC_TIMEOUT = whole(10, "time for one request to a node", least=1, most=120, unit="s")
    RPC_MAX_LAG = whole(
        10,
        "lag of a provider behind the others of its network; one that is further behind is left out"
        " for a while",
        least=1,
        most=10_000,
        unit="blocks",
    )
    VERIFY_PERCENT = whole(
        5,
        "share of the blocks with events whose receipts are compared with the logs although nothing"
        " is suspicious, on networks whose `verify` is `sample`: see"
        " [what one provider says](chain-providers.md#what-one-provider-says)",
        most=100,
        unit="%",
    )
    OUTBOX_KEEP = whole(
        30, "time that subscribers of events can go back", least=1, most=3650, unit="days"
    )
    REORG_REOPEN = flag(
        True,
        "a transaction whose block was removed is pending again; off leaves its state as it is",
    )
    STALLED_REVIVE = flag(
        False, "a stalled transaction that is mined after all becomes confirmed or failed"
    )
    SIGNER_PRIVATE_KEY: Setting[ByNetwork[Any]] = _by_network(
        {},
        "signs on every network without its own signer: 64 hexadecimal digits."
        " `SIGNER_PRIVATE_KEY_<network id>` signs on one network; so with each of the next four."
        " See [chain-sending.md](chain-sending.md)",
        _private_key,
        secret=True,
    )
    SIGNER_KEYSTORE = _by_network(
        {},
        "in place of a private key: the path of an encrypted keystore (JSON)",
        lambda name, text: text,
    )
    SIGNER_KEYSTORE_PASSWORD: Setting[ByNetwork[Any]] = _by_network(
        {}, "the password of the keystore", lambda name, text: Hidden(text), secret=True
    )
    SIGNER_URL: Setting[ByNetwork[Any]] = _by_network(
        {}, "in place of a private key: the address of a web3signer", _url, secret=True
    )
    SIGNER_ADDRESS = _by_network(
        {}, "the account that the web3signer signs for; needed only where it has several", _address
    )
    SIGNER_TIMEOUT = whole(5, "time for one request to a web3signer", least=1, most=30, unit="s")
    MAX_FEE_GWEI = _by_network(
        {None: 300 * _GWEI},
        "the most that is paid for a unit of gas; `MAX_FEE_GWEI_<network id>` for one network",
        _wei,
        shown="300 gwei",
    )
    MAX_PRIORITY_FEE_GWEI = _by_network(
        {None: 50 * _GWEI},
        "the most of it that goes to the block's proposer; for one network likewise",
        _wei,
        shown="50 gwei",
    )
    STUCK_AFTER = whole(
        120,
        "time after which a transaction that isn't mined is sent again with higher fees",
        least=15,
        most=86_400,
        unit="s",
    )

    @classmethod
    def check(cls, values: dict[str, Any]) -> None:
        """Refuse two signers of one network."""
        kinds: dict[int | None, str] = {}
        for kind in _KINDS:
            for network in values[kind]:
                if network in kinds:
                    end = "" if network is None else f"_{network}"
                    both = f"{kinds[network]}{end} and {kind}{end}"
                    raise BadSetting(f"{both} are both set: one signer signs.")
                kinds[network] = kind
