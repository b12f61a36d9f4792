"""Where the path of a request leads that doesn't arrive by HTTP alone: in a batch, from a page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from backend.http.call import Call
from backend.http.edge.paths import check_path, decode_path
from backend.http.edge.routing import resolve
from backend.http.renderers import Answer
from backend.http.views import ServiceView
from backend.kernel.request_context import take_refusal
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


def answer_apart(view: ServiceView, call: Call, names: Mapping[str, Any]) -> Answer:
    """Run a call apart from what its request did before.

    Raises what it raises, and the error of a webhook after its operation.
    """
    take_refusal()  # of what failed otherwise
    answer = view.answer(call, **names)
    refusal = take_refusal()
    if refusal is not None:
        raise refusal
    return answer
