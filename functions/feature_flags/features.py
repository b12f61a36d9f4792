"""Evaluation of feature flags and feature lists, in plain Python without Django.

A *flag* switches one feature in a deployment: off for all users, or on for beta testers and for a
part of all users (``rollout``, in percent). Whether a user is in that part follows from the names
of both alone, so it is the same in every process and at any time, and a higher percentage only
adds users.

A *feature list* says what a client of some version can use. Clients below 2.0.0 get the old one.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import semver

DEPLOYMENT_FLAGS: Final[Mapping[str, str]] = {
    "newMarketplace": "The new marketplace",
    "carbonCredits": "Trading of carbon credits",
    "nftFractionalization": "Tokens that are owned in parts",
}
"""The flags that every deployment has and what they are for; off until switched on."""

FIRST_NEW_VERSION: Final = semver.Version(2, 0, 0)

LEGACY_FEATURES: Final = ("objects", "queries", "users", "files", "functions", "wallets")
"""What clients of all versions can use."""

NEW_FEATURES: Final = (
    *LEGACY_FEATURES,
    *("passkeys", "liveQuery", "contractEvents", "transactionMonitoring", "featureFlags"),
)
"""What clients from 2.0.0 on can use."""

_PARTS: Final = 10_000
_LONGEST_VERSION: Final = 256
_BORDER: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class Flag:
    """A feature flag. ``rollout`` is from 0 to 100, of all users."""

    name: str
    on: bool = False
    rollout: int = 100


@dataclass(frozen=True, slots=True)
class Override:
    """An override of a flag by the environment; ``rollout`` None keeps the flag's value."""

    on: bool
    rollout: int | None = None


def variable(name: str) -> str:
    """Return the variable of a flag, ``ENABLE_NEW_MARKETPLACE`` for ``newMarketplace``."""
    return f"ENABLE_{_BORDER.sub('_', name).upper()}"


def overridden(flag: Flag, overrides: Mapping[str, Override]) -> Flag:
    """Return the flag with its override. ``overrides`` are keyed by environment variable."""
    override = overrides.get(variable(flag.name))
    if override is None:
        return flag
    return replace(
        flag, on=override.on, rollout=flag.rollout if override.rollout is None else override.rollout
    )


def is_within_rollout(flag: Flag, user_id: str) -> bool:
    """Whether the user is within the flag's rollout."""
    return _place(flag.name, user_id) < flag.rollout * _PARTS // 100


def has_access(flag: Flag, user_id: str, *, is_beta_tester: bool) -> bool:
    """Whether a user has the feature."""
    return flag.on and (is_beta_tester or is_within_rollout(flag, user_id))


def _place(flag_name: str, user_id: str) -> int:
    """Return the user's bucket, from 0 to 9,999, which differs for each flag."""
    digest = hashlib.sha256(f"{flag_name}\0{user_id}".encode()).digest()
    return int.from_bytes(digest[:8], "big") * _PARTS >> 64


def features_for(client_version: str) -> tuple[str, ...]:
    """Return the features of a client of this version.

    Versions are compared as semver.org says, so 2.0.0-alpha is below 2.0.0. Raises ``ValueError``
    if it isn't a semantic version.
    """
    if len(client_version) > _LONGEST_VERSION:
        raise ValueError("not a semantic version")
    version = semver.Version.parse(client_version)
    return LEGACY_FEATURES if version < FIRST_NEW_VERSION else NEW_FEATURES
