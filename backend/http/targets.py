"""Where the path of a request leads that doesn't arrive by HTTP alone: in a batch, from a page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from backend.http.edge.paths import check_path, decode_path
from backend.http.edge.routing import resolve
from backend.http.views import ServiceView
from backend.settings.conf import service_settings


class Target(NamedTuple):
    """Where a path leads: its view, without the mount and the query."""

    path: str
    view_class: type[ServiceView]
    names: Mapping[str, str]


def target_of(path: str) -> Target | None:
    """Resolve a path with the mount (``/api/classes/Note?limit=1``); None if it leads nowhere.

    Raises ``ServiceError`` for a path that no request can have.
    """
    mount = service_settings.MOUNT_PATH
    bare = decode_path(path.partition("?")[0])
    check_path(bare, mount)
    route = resolve(bare[len(mount) :]) if bare.startswith(f"{mount}/") else None
    view_class = getattr(route.view, "view_class", None) if route else None
    if route is None or view_class is None or not issubclass(view_class, ServiceView):
        return None
    return Target(bare[len(mount) :], view_class, route.names)
