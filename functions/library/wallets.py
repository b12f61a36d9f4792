"""``listWallets``: the wallets of a user."""

from __future__ import annotations

from typing import Annotated

from backend.kernel.json_types import Json
from chain.wallets import custody
from functions import FunctionRequest
from functions.runtime.parameters import Meta
from functions.runtime.registry import function
from objects.users.sessions import tokens


@function("listWallets")
def list_wallets(
    request: FunctionRequest,
    authToken: Annotated[str, Meta(min_length=1), "a session token, as registerComplete gives it"],
) -> dict[str, Json]:
    """The wallets of the user whose session this is: ``{"wallets": [{id, network, address}]}``,
    and the same as ``items``. A token that is unknown or expired is error 209."""
    user_id = tokens.authenticate(authToken).user_id
    wallets: list[Json] = [*custody.shown(custody.wallets_of(user_id))]
    return {"wallets": wallets, "items": wallets}
