"""The base of views whose routes name a class, and perhaps one of its objects."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from backend.http.views import ServiceView
from objects.core.names import check_class_name, parse_object_id

_PARSERS: Mapping[str, Callable[[str], str]] = {
    "class_name": check_class_name,
    "object_id": parse_object_id,
}


class ClassView(ServiceView):
    """A route with ``class_name``, and perhaps ``object_id``."""

    def parse_names(self, names: Mapping[str, str]) -> dict[str, str]:
        """Raises ``InvalidClassName`` and ``ObjectNotFound``."""
        return {
            name: _PARSERS[name](text) if name in _PARSERS else text for name, text in names.items()
        }
