"""Asking for live queries as the engine does, without a socket."""

from __future__ import annotations

from typing import Any

from backend.kernel.principal import MASTER, Principal
from objects import service
from objects.core.query.parser import check_path, parse_where
from objects.definitions import registry
from objects.storage.records import wire_object
from realtime.livequery.access import Access, bind


def access(principal: Principal, class_name: str = "Doc", watch: Any = (), **where: Any) -> Access:
    """What a subscriber may see; raises what refuses the subscription."""
    return bind(
        principal,
        class_name,
        registry.current(class_name),
        parse_where(where),
        [check_path(name) for name in watch],
    )


def stored(object_id: str, class_name: str = "Doc") -> dict[str, Any]:
    """An object as a committed change has it."""
    return wire_object(service.get(MASTER, class_name, object_id))
