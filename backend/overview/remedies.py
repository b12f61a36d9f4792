"""What the service can do about findings of ``doctor`` at one click, and where to look at them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from backend.overview import requested_tasks
from backend.settings.conf import service_settings
from backend.settings.schedule import JOBS, REPAIR_INDEXES
from objects.admin.staff_access import class_permission
from objects.database import maintenance

OPERATE: Final = "backend.change_checkup"
MAKE_BACKUPS: Final = "backend.add_backuprun"


@dataclass(frozen=True, slots=True)
class Remedy:
    """``run`` returns at once; work that takes longer is left to a worker. ``done`` says what has
    been done or started."""

    title: str
    permission: str
    run: Callable[[], object]
    done: str
    is_offered: Callable[[], bool] = lambda: True


REMEDIES: Final[Mapping[str, Remedy]] = {
    "backups": Remedy(
        "Make a backup now",
        MAKE_BACKUPS,
        requested_tasks.request_backup,
        "A worker makes a backup. The page Backups shows when it is done.",
        lambda: bool(service_settings.BACKUP_TO),
    ),
    "expired rows": Remedy(
        "Remove them now",
        OPERATE,
        lambda: requested_tasks.request("objects.remove_expired"),
        "A worker removes the expired rows.",
    ),
    "indexes": Remedy(
        "Build and drop indexes",
        class_permission("change"),
        lambda: requested_tasks.request(REPAIR_INDEXES, queue=JOBS),
        "A worker builds the missing indexes and drops those that no class declares.",
    ),
    "maintenance mode": Remedy(
        "End maintenance mode",
        "backend.change_maintenance",
        maintenance.off,
        "Maintenance mode is off.",
    ),
}
"""By the names of checks."""

PAGES: Final[Mapping[str, tuple[str, str]]] = {
    "backups": ("backend_backuprun_changelist", "Backups"),
    "files": ("objects_storedfile_changelist", "Files"),
    "indexed networks": ("networks", "Networks"),
    "learned indexes": ("objects_objectclass_changelist", "Classes"),
    "maintenance mode": ("maintenance", "Maintenance"),
    "networks": ("networks", "Networks"),
    "open classes": ("objects_objectclass_changelist", "Classes"),
    "processes": ("processes", "Processes"),
    "push": ("pushes", "Pushes"),
    "readable personal fields": ("objects_objectclass_changelist", "Classes"),
    "restarts": ("processes", "Processes"),
}
"""Pages of the admin by the names of checks: the name of the URL, and the page's title."""
