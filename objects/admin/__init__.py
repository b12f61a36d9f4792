"""The admin's pages of classes, objects and schemas: the data browser.

Each page decodes a request, calls the door (``objects.service``, ``objects.classes``,
``objects.files.service``) as the staff user's principal, and shows what it answers. ``frame`` is
what all of them stand on.
"""

from __future__ import annotations

from objects.admin import (  # noqa: F401 (register their pages)
    acting_pages,
    class_list,
    class_pages,
    export,
    index_pages,
    object_pages,
    open_classes,
    operations,
    people,
    permission_pages,
    relations,
    table,
)
from objects.analytics import admin as _analytics  # noqa: F401
from objects.app_config import admin as _config  # noqa: F401
from objects.files import admin as _files  # noqa: F401
