"""Fields of ``_User`` that grant rights or features, so only the master key may write them.

Users may write all other fields of their own account. The setting ``MASTER_ONLY_USER_FIELDS`` adds
fields of the deployment.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from backend.kernel.errors import OperationForbidden
from backend.settings.conf import service_settings

EMAIL_VERIFIED: Final = "emailVerified"
BETA_TESTER: Final = "betaTester"
"""Users for whom every feature flag that is on is on (docs/features.md)."""

_BUILT_IN: Final = frozenset({EMAIL_VERIFIED, BETA_TESTER})


def is_master_only(name: str) -> bool:
    """Whether only the master key writes this field of ``_User``."""
    return name in _BUILT_IN or name in service_settings.MASTER_ONLY_USER_FIELDS


def check(names: Iterable[str]) -> None:
    """Raise ``OperationForbidden`` if a client's write names such a field or a key inside one."""
    for name in names:
        field = name.partition(".")[0]
        if not is_master_only(field):
            continue
        if field == EMAIL_VERIFIED:  # Parse's message
            raise OperationForbidden(
                "Clients aren't allowed to manually update email verification."
            )
        raise OperationForbidden(f"{field}: only the master key may set this field of _User.")
