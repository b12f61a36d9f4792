"""Validation of webhook declarations: names of functions and triggers, and URLs.

Triggers have Parse's names. Errors have code 143 and begin with Parse's messages, for compatibility
with SDKs.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import SplitResult

from backend.kernel.errors import InvalidHook, ServiceError
from backend.kernel.outgoing import Unreachable, parts_of
from backend.kernel.outgoing.addresses import NotAllowed, resolved
from backend.kernel.texts.shown import shown
from backend.settings.conf import service_settings
from objects.core.names import Subject, check_class_name
from objects.triggers import CONFIG, FILE, Event, NeverCalled, check_event

EVENTS: Final[Mapping[str, Event]] = {
    "beforeSave": "before_save",
    "afterSave": "saved",
    "beforeDelete": "before_delete",
    "afterDelete": "deleted",
    "beforeFind": "before_find",
    "afterFind": "after_find",
    "beforeLogin": "before_login",
    "afterLogin": "after_login",
    "afterLogout": "after_logout",
    "beforePasswordResetRequest": "before_password_reset",
}
# Files and config have no transaction, so their webhooks are notified after the operation.
_WITHOUT_TRANSACTION: Final[Mapping[Event, Event]] = {
    "saved": "after_save",
    "deleted": "after_delete",
}
AFTERWARDS: Final = frozenset({"afterSave", "afterDelete", "afterLogin", "afterLogout"})
"""The triggers that can't change or reject the operation; a worker may deliver them."""
LONGEST_URL: Final = 2048
LONGEST_NAME: Final = 128
_NOT_IN_NAMES: Final = frozenset("'\"`/\\%?#;")
_LOOKUP_TIMEOUT: Final = 2.0  # seconds


def event_of(class_name: str, trigger_name: str) -> Event:
    """Return the event at which a trigger of this name calls its webhook."""
    event = EVENTS[trigger_name]
    return _WITHOUT_TRANSACTION.get(event, event) if class_name in (FILE, CONFIG) else event


def is_hook_name(name: str) -> bool:
    """Whether a webhook may implement a function of this name.

    More names than for functions in Python, since Parse allows nearly all. Left out are those that
    can't be part of a path, quotes, with which Parse finds no function either, and characters
    beyond ASCII: two names that look the same would be different functions.
    """
    return (
        0 < len(name) <= LONGEST_NAME
        and name.isascii()
        and name.isprintable()
        and name == name.strip()
        and name not in (".", "..")
        and _NOT_IN_NAMES.isdisjoint(name)
    )


def checked_function(name: object) -> str:
    """Return the name of a function. Raises ``InvalidHook``."""
    if not isinstance(name, str):
        raise InvalidHook
    if not is_hook_name(name):
        raise _invalid(
            f"functionName must have 1 to {LONGEST_NAME} printable"
            " ASCII characters, without spaces at its ends, quotes, slashes and any of %?#;"
        )
    return name


def checked_trigger(class_name: object, trigger_name: object) -> tuple[Subject, str]:
    """Return a class and the name of a trigger it supports. Raises ``InvalidHook``."""
    if not isinstance(class_name, str) or not isinstance(trigger_name, str):
        raise InvalidHook
    if trigger_name not in EVENTS:
        raise _invalid(
            f"there is no trigger {shown(trigger_name)}; the triggers are {', '.join(EVENTS)}"
        )
    try:
        subject = checked_subject(class_name)
    except ServiceError as error:
        raise _invalid(f"className: {error.message}") from None
    try:
        check_event(event_of(subject, trigger_name), subject)
    except NeverCalled as error:
        raise _invalid(str(error)) from None
    except ValueError:
        available = ", ".join(_triggers_of(subject)) or "none"
        raise _invalid(
            f"{subject} has no trigger {trigger_name}; its triggers: {available}"
        ) from None
    return subject, trigger_name


def _triggers_of(class_name: Subject) -> list[str]:
    return [name for name in EVENTS if _has_event(class_name, event_of(class_name, name))]


def _has_event(class_name: Subject, event: Event) -> bool:
    try:
        check_event(event, class_name)
    except ValueError:
        return False
    return True


def check_is_called(class_name: Subject, trigger_name: str) -> None:
    """Raise ``InvalidHook`` for a trigger that is never called.

    Names that can't be declared at all pass, since no webhook has them.
    """
    try:
        if trigger_name in EVENTS:
            check_event(event_of(class_name, trigger_name), class_name)
    except NeverCalled as error:
        raise _invalid(str(error)) from None
    except ValueError:
        return


def _invalid(reason: str) -> InvalidHook:
    return InvalidHook(f"invalid hook declaration: {reason}")


def checked_subject(name: str) -> Subject:
    """Return a class name, ``@File`` or ``@Config``. Raises ``InvalidClassName``."""
    return Subject(name) if name in (FILE, CONFIG) else check_class_name(name)


def checked_background(value: object, trigger_name: str | None) -> bool | None:
    """Return whether only a worker delivers the trigger; None if the request leaves it open.

    Raises ``InvalidHook`` for another value, and for a trigger that can't be delivered later.
    """
    if value is None:
        return None
    if not isinstance(value, bool):
        raise _invalid("background must be true or false")
    if value and trigger_name not in AFTERWARDS:
        raise _invalid(f"background is for {', '.join(sorted(AFTERWARDS))}")
    return value


def checked_url(url: object) -> str:
    """Return a URL that may be called. Raises ``InvalidHook``, whose message omits the URL.

    A host name of an ``http`` URL is resolved, in at most two seconds, since only private networks
    are called without TLS. Calls check the addresses of all names again.
    """
    if not isinstance(url, str) or not url:
        raise InvalidHook
    if len(url) > LONGEST_URL:
        raise _invalid(f"url must have at most {LONGEST_URL} characters")
    if not re.match("https?://", url, re.IGNORECASE):
        raise _invalid("url must begin with https://")
    parts = parts_of(url)
    if parts is None or not url.isascii() or re.search(r"[\s\\]", url):
        raise _invalid(
            "url must name a host, and have no credentials, fragment, spaces, backslashes and"
            " characters beyond ASCII"
        )
    if parts.scheme == "http" and not service_settings.WEBHOOK_ALLOW_PRIVATE:
        raise _invalid(
            "url has to begin with https; http is for private networks that the setting"
            " WEBHOOK_ALLOW_PRIVATE lists, such as 127.0.0.1"
        )
    _check_address(parts)
    return url


def _check_address(parts: SplitResult) -> None:
    """Raise ``InvalidHook`` for a URL that leads to a network that isn't called with its scheme."""
    host = (parts.hostname or "").partition("%")[0]
    if parts.scheme == "https" and not _is_address(host):
        return
    try:
        resolved(host, parts.port or 80, _LOOKUP_TIMEOUT, scheme=parts.scheme)
    except NotAllowed as error:
        raise _invalid(f"url can't be called: {error}") from None
    except Unreachable:
        # The name may be known when the webhook is called.
        return


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
