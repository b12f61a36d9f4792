"""Who is asking.

A ``Principal`` is made once, at the edge, from keys and session token, and is handed down
unchanged. Nothing below the edge looks at headers again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property

EVERYBODY = "*"
"""The ACL id that stands for every caller, logged in or not."""

_NO_ROLES: frozenset[str] = frozenset()


class Authority(Enum):
    """What the key of a request is worth."""

    MASTER = "master"
    READ_ONLY_MASTER = "read-only master"
    MAINTENANCE = "maintenance"
    """As master for objects, and for what the service alone writes; not for the app itself."""
    CLIENT = "client"
    APPLICATION = "application"
    """The application id alone: only routes that say so answer it."""


# Outside of the methods, which every request calls often: looking members up takes longer than
# comparing them.
_READS_EVERYTHING = (Authority.MASTER, Authority.READ_ONLY_MASTER, Authority.MAINTENANCE)
_WRITES_EVERYTHING = (Authority.MASTER, Authority.MAINTENANCE)
_MANAGES_THE_APP = (Authority.MASTER, Authority.READ_ONLY_MASTER)
_MAINTENANCE = Authority.MAINTENANCE


@dataclass(frozen=True)
class Principal:
    """The caller of one request: the authority of its key, and the user of its session.

    ``roles`` are role names with inheritance already resolved. A master principal has no user.
    ``session_token`` is there to be shown to its bearer, and never to be logged. It proves nothing
    without a ``session_id``: it came along where sessions aren't checked, or with a master key.
    """

    authority: Authority
    user_id: str | None = None
    roles: frozenset[str] = field(default=_NO_ROLES)
    installation_id: str | None = None
    session_id: str | None = None
    session_token: str | None = field(default=None, repr=False, compare=False)

    @property
    def is_master(self) -> bool:
        """Whether ACLs and class-level permissions are bypassed for reading."""
        return self.authority in _READS_EVERYTHING

    @property
    def may_write_as_master(self) -> bool:
        """Whether ACLs and class-level permissions are bypassed for writing."""
        return self.authority in _WRITES_EVERYTHING

    @property
    def has_master_key(self) -> bool:
        """Whether the app itself may be managed: schemas, config, jobs, webhooks."""
        return self.authority in _MANAGES_THE_APP

    @property
    def is_maintenance(self) -> bool:
        """Whether times and internal fields of objects may be read and set."""
        return self.authority is _MAINTENANCE

    @cached_property
    def acl_ids(self) -> frozenset[str]:
        """The ids that an ACL or a class-level permission may name to mean this caller."""
        if self.user_id is None:
            return frozenset((EVERYBODY,))
        return frozenset((EVERYBODY, self.user_id, *(f"role:{name}" for name in self.roles)))


MASTER = Principal(Authority.MASTER)
READ_ONLY_MASTER = Principal(Authority.READ_ONLY_MASTER)
MAINTENANCE = Principal(Authority.MAINTENANCE)
CLIENT = Principal(Authority.CLIENT)
APPLICATION = Principal(Authority.APPLICATION)
