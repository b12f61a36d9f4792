"""What the service can do about findings of ``doctor`` at one click, and where to look at them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from backend.kernel.errors import ServiceUnavailable
from backend.settings.conf import service_settings
from backend.settings.schedule import BACK_UP, JOBS, REPAIR_INDEXES
from backend.tasks import broker
from backend.tasks.broker import BrokerAway
from objects.admin.staff_access import class_permission
from objects.database import maintenance

OPERATE: Final = "backend.change_checkup"


@dataclass(frozen=True, slots=True)
class Remedy:
    """``run`` returns at once; work that takes longer is left to a worker. ``done`` says what has
    been done or started."""

    title: str
    permission: str
    run: Callable[[], object]
    done: str
    is_offered: Callable[[], bool] = lambda: True


def _send(name: str, **options: str) -> None:
    try:
        broker.send(name, **options)
    except BrokerAway as error:
        raise ServiceUnavailable(
            "Redis doesn't respond, so no worker has got the task. Try again later."
        ) from error


REMEDIES: Final[Mapping[str, Remedy]] = {
    "backups": Remedy(
        "Make a backup now",
        OPERATE,
        lambda: _send(BACK_UP, queue=JOBS),
        "A worker makes a backup. The page Backups shows when it is done.",
        lambda: bool(service_settings.BACKUP_SCHEDULE),
    ),
    "expired rows": Remedy(
        "Remove them now",
        OPERATE,
        lambda: _send("objects.remove_expired"),
        "A worker removes the expired rows.",
    ),
    "indexes": Remedy(
        "Build and drop indexes",
        class_permission("change"),
        lambda: _send(REPAIR_INDEXES, queue=JOBS),
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
