"""Device tokens that a service reports as unregistered: they are taken from installations."""

from __future__ import annotations

from collections.abc import Sequence

from backend.kernel.errors import ObjectNotFound, ServiceError
from backend.kernel.json_types import Json
from backend.kernel.principal import MASTER
from backend.logs.setup import get_logger
from backend.settings.conf import service_settings
from objects.core.names import INSTALLATION, ObjectId
from objects.core.query.parser import parse_where
from objects.push.models import PushTarget
from objects.service.direct_writes import update_matching

log = get_logger("push")


def remove(targets: Sequence[PushTarget]) -> None:
    """Remove the tokens of targets from their installations, without triggers.

    An installation that has another token by now keeps it.
    """
    if not targets or not service_settings.PUSH_REMOVE_TOKENS:
        return
    removed = 0
    for target in targets:
        has_it = parse_where({"deviceToken": target.device_token})
        body: dict[str, Json] = {"deviceToken": {"__op": "Delete"}}
        try:
            update_matching(MASTER, INSTALLATION, ObjectId(target.installation), body, has_it)
            removed += 1
        except ObjectNotFound:
            continue
        except ServiceError as error:
            # A later push finds the token unregistered again.
            log.warning("a device token wasn't removed", reason=error.message)
    log.info("device tokens removed", push=targets[0].push_id, tokens=removed)
