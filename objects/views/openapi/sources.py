"""The sources of the objects' part."""

from __future__ import annotations

from backend.kernel.principal import Principal
from backend.openapi import Names, Offer, Part, contribute
from objects.access.visible_classes import VisibleClass, visible_classes
from objects.core.names import SYSTEM_CLASSES
from objects.views.openapi import files, people, routes, values
from objects.views.openapi.classes import ClassSchemas, Paths, words_of
from objects.views.openapi.classes import routes as class_routes


def contribute_objects() -> None:
    """Describe the routes of ``objects.views``."""
    contribute(
        _classes,
        schemas={
            **values.VALUES,
            **values.OPERATORS,
            **routes.SCHEMAS,
            **people.SCHEMAS,
            **files.SCHEMAS,
        },
    )


def _classes(principal: Principal) -> Offer:
    visible = visible_classes(principal)
    fingerprint = tuple((one.name, one.version, one.actions, one.hidden) for one in visible)
    return Offer(fingerprint, lambda names: _part(visible, names))


def _part(visible: list[VisibleClass], names: Names) -> Part:
    # The service's own classes first: other parts know their schemas by name.
    described = [*visible, *people.classes_of_people(visible)]
    described.sort(key=lambda one: (one.name not in SYSTEM_CLASSES, one.name))
    classes = ClassSchemas(described, names)
    own: Paths = {}
    for one in visible:
        if one.name not in people.ROUTES:
            own |= class_routes(
                f"/classes/{one.name}", classes.forms[one.name], words_of(one.name), one.actions
            )
    paths = {
        **own,
        **routes.any_objects(),
        **people.describe(classes, visible),
        **files.files(),
        **routes.others(),
        **routes.events(),
        **files.pages(),
    }
    return Part(paths, classes.schemas)
