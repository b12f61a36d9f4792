"""A user's account as its owner sees it."""

from __future__ import annotations

from backend.kernel.json_types import Wire
from backend.kernel.principal import MASTER, Authority, Principal
from objects import service
from objects.core.names import USER, ObjectId
from objects.storage.records import wire_object
from objects.users.accounts import second_factor
from objects.users.accounts.second_factor import MFA


def account_of(user_id: str) -> Wire:
    """A user's object as its owner sees it."""
    user = wire_object(service.get(MASTER, USER, ObjectId(user_id)))
    return owners_view(Principal(Authority.CLIENT, user_id=user_id), user)


def owners_view(principal: Principal, user: Wire) -> Wire:
    """The object; for its owner with the second factor's status and the session's token."""
    user_id = user.get("objectId")
    if user_id != principal.user_id or principal.user_id is None:
        return user
    factor = second_factor.status(principal.user_id)
    if factor == second_factor.ENABLED:
        data = user.get("authData")
        user = {**user, "authData": {**(data if isinstance(data, dict) else {}), MFA: factor}}
    if principal.session_token is not None:
        user = {**user, "sessionToken": principal.session_token}
    return user
