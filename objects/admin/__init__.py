"""The data browser of the admin: classes, objects, people, files, operations.

Each page decodes a request, calls a service (``objects.service``, ``objects.service.classes``,
``objects.files.service``) as the staff user's principal, and renders the result. All of
them share ``staff_access``.
"""

from __future__ import annotations

from objects.admin import (  # noqa: F401 (register their pages)
    newcomers,
    operations,
    people,
    search,
    second_factor,
)
from objects.admin.browser import (  # noqa: F401 (register their pages)
    impersonation,
    object_pages,
    relations,
)
from objects.admin.classes import (  # noqa: F401 (register their pages)
    diagram,
    fields,
    indexes,
    list,
    open_classes,
    permissions,
    sidebar,
)
from objects.admin.console import pages as _console  # noqa: F401
from objects.admin.grid import changes, export, page, rows  # noqa: F401 (register their pages)
from objects.admin.stored import events as _analytics  # noqa: F401
from objects.admin.stored import files as _files  # noqa: F401
from objects.admin.stored import parameters as _config  # noqa: F401
