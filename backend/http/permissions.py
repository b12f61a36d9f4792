"""Who may call a route at all; what they may see there is the object policy's matter."""

from __future__ import annotations

from enum import Enum

from backend.kernel.errors import InvalidClientKey, MasterKeyRequired
from backend.kernel.principal import Authority, Principal


class Requires(Enum):
    """What a route asks of its caller."""

    APPLICATION = "the application id"
    CLIENT_KEY = "a client key or the master key"
    MASTER_KEY = "the master key, a read-only one for reading"


def check_route(requires: Requires, principal: Principal) -> None:
    """Raise ``InvalidClientKey`` or ``MasterKeyRequired`` if the route isn't for this caller."""
    if requires is Requires.APPLICATION:
        return
    if requires is Requires.MASTER_KEY:
        if not principal.has_master_key:
            raise MasterKeyRequired
        return
    if principal.authority is Authority.APPLICATION:
        raise InvalidClientKey("unauthorized: a valid client key is required")
