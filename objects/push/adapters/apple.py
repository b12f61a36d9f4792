"""Notifications as Apple's devices take them: the payload, and what goes into headers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from backend.kernel.json_types import Json, Wire
from objects.push.adapters.base import BadMessage, Message

_APS_KEYS: Final = {
    "sound": "sound",
    "badge": "badge",
    "targetContentIdentifier": "target-content-id",
    "interruptionLevel": "interruption-level",
    "category": "category",
    "threadId": "thread-id",
}
_FLAG_KEYS: Final = ("content-available", "mutable-content")
_HEADER_KEYS: Final = frozenset(
    {
        *("id", "collapseId", "collapse_id", "channelId", "requestId", "pushType", "push_type"),
        *("topic", "expiry", "expiration_time", "priority"),
    }
)
_PUSH_TYPES: Final = {
    "alert": "",
    "background": "",
    "location": ".location-query",
    "voip": ".voip",
    "complication": ".complication",
    "fileprovider": ".pushkit.fileprovider",
    "mdm": "",
    "liveactivity": ".push-type.liveactivity",
    "pushtotalk": ".voip-ptt",
}
"""Types of notifications, with what follows the app's id in their topic."""
_PRIORITIES: Final = ("1", "5", "10")
_COLLAPSE_ID: Final = re.compile(r"[\x21-\x7e]{1,64}")


@dataclass(frozen=True, slots=True)
class AppleHeaders:
    """What APNs takes beside the payload: headers, and what follows the app's id in the topic."""

    by_name: Mapping[str, str]
    topic_suffix: str


def payload(message: Message) -> Wire:
    """Return the JSON that the device gets."""
    data = message.data
    sent = data.get("aps")
    aps: Wire = dict(sent) if isinstance(sent, dict) else {}
    result: Wire = {"aps": aps}
    for key, value in data.items():
        if key in _APS_KEYS:
            aps[_APS_KEYS[key]] = value
        elif key in _FLAG_KEYS:
            if value in (1, "1", True):
                aps[key] = 1
        elif key not in ("aps", "alert", "title") and key not in _HEADER_KEYS:
            result[key] = value
    alert = _alert(data.get("alert"), data.get("title"))
    if alert is not None:
        aps["alert"] = alert
    return result


def _alert(alert: Json, title: Json) -> Json:
    if title is None:
        return alert
    if isinstance(alert, dict):
        return {**alert, "title": title}
    return {"title": title} if alert is None else {"title": title, "body": alert}


def headers(message: Message) -> AppleHeaders:
    """Return what goes into the headers. Raises ``BadMessage``."""
    data, body = message.data, message.body
    push_type = _first(data.get("pushType"), data.get("push_type"), body.get("push_type"))
    if push_type is None:
        push_type = "background" if _is_silent(data) else "alert"
    if push_type not in _PUSH_TYPES:
        raise BadMessage("push_type isn't one of APNs")
    priority = _first(data.get("priority"), body.get("priority"))
    if priority is None and push_type == "background":
        priority = "5"  # APNs refuses others
    if priority is not None and priority not in _PRIORITIES:
        raise BadMessage("priority isn't 1, 5 or 10")
    collapse_id = _first(data.get("collapseId"), data.get("collapse_id"), body.get("collapse_id"))
    if collapse_id is None:
        # A device shows a notification once that is sent again after a worker was killed.
        collapse_id = f"push-{message.push_id}"
    if not _COLLAPSE_ID.fullmatch(collapse_id):
        raise BadMessage("collapse_id isn't 1 to 64 printable characters")
    by_name = {"apns-push-type": push_type, "apns-collapse-id": collapse_id}
    if priority is not None:
        by_name["apns-priority"] = priority
    if message.expires_at is not None:
        by_name["apns-expiration"] = str(message.expires_at)  # in seconds since 1970, too
    return AppleHeaders(by_name, _PUSH_TYPES[push_type])


def _is_silent(data: Wire) -> bool:
    return data.get("content-available") in (1, "1", True) and not (
        data.keys() & {"alert", "title", "badge", "sound", "aps"}
    )


def _first(*values: Json) -> str | None:
    """Return the first value that is there, as text."""
    value = next((value for value in values if value is not None), None)
    return None if value is None else str(value)
