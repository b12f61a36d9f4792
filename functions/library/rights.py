"""The rights of callers in the functions about chains, by the rule of ``docs/functions.md``.

Rights are checked after the parameters. A caller who isn't logged in and would have to be gets 142
(400), as from the requirements of other functions; a known caller without the right gets 119 (403).
"""

from __future__ import annotations

from typing import Final

from backend.kernel.errors import MasterKeyRequired
from functions import FunctionRequest
from functions.runtime.requirements import requirements

_LOGIN: Final = requirements(require_user=True)


def check_login(request: FunctionRequest) -> None:
    """Raise ``ValidationFailed`` unless the caller is a user or has a master key. The read-only
    one passes: what it lacks is a right."""
    if not request.principal.has_master_key:
        _LOGIN.check(request.principal, dict)


def missing_right(text: str) -> MasterKeyRequired:
    """The error for a known caller who lacks a right, which ``text`` names."""
    return MasterKeyRequired(f"unauthorized: {text}")
