"""A decoded request to a route, as views take it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from backend.kernel.principal import Principal


@dataclass(slots=True)
class Call:
    """One request to a route, decoded: also an item of a batch is one.

    ``params`` are the parameters of the query string as text, or of a body sent with
    ``_method: "GET"`` as JSON values. ``address`` is the client's, ``key`` the name of its API key.
    ``in_transaction`` says that there is one around all of it.
    """

    principal: Principal
    method: str
    params: Mapping[str, Any]
    body: dict[str, Any]
    request_id: str
    address: str = ""
    key: str = ""
    in_transaction: bool = False
