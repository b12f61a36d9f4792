"""Validation of webhook declarations: names of functions and triggers, and URLs.

Triggers have Parse's names. Errors have code 143 and Parse's messages, for compatibility with SDKs.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from typing import Final

from backend.kernel.errors import InvalidHook, ServiceError
from backend.kernel.outgoing import parts_of
from backend.settings.conf import service_settings
from functions.webhooks.addresses import is_allowed, is_own
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
        raise InvalidHook(
            f"invalid hook declaration: functionName must have 1 to {LONGEST_NAME} printable"
            " ASCII characters, without spaces at its ends, quotes, slashes and any of %?#;"
        )
    return name


def checked_trigger(class_name: object, trigger_name: object) -> tuple[Subject, str]:
    """Return a class and the name of a trigger it supports. Raises ``InvalidHook``."""
    if not isinstance(class_name, str) or not isinstance(trigger_name, str):
        raise InvalidHook
    if trigger_name not in EVENTS:
        raise InvalidHook
    try:
        subject = checked_subject(class_name)
        check_event(event_of(subject, trigger_name), subject)
    except NeverCalled as error:
        raise _never_called(error) from None
    except (ServiceError, ValueError):
        raise InvalidHook("invalid hook declaration: the class has no such trigger") from None
    return subject, trigger_name


def check_is_called(class_name: Subject, trigger_name: str) -> None:
    """Raise ``InvalidHook`` for a trigger that is never called.

    Names that can't be declared at all pass, since no webhook has them.
    """
    try:
        if trigger_name in EVENTS:
            check_event(event_of(class_name, trigger_name), class_name)
    except NeverCalled as error:
        raise _never_called(error) from None
    except ValueError:
        return


def _never_called(error: NeverCalled) -> InvalidHook:
    return InvalidHook(f"invalid hook declaration: {error}")


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
        raise InvalidHook("invalid hook declaration: background must be true or false")
    if value and trigger_name not in AFTERWARDS:
        raise InvalidHook(
            f"invalid hook declaration: background is for {', '.join(sorted(AFTERWARDS))}"
        )
    return value


def checked_url(url: object) -> str:
    """Return a URL that may be called. Raises ``InvalidHook``, whose message omits the URL."""
    if not isinstance(url, str) or not url:
        raise InvalidHook
    parts = parts_of(url) if len(url) <= LONGEST_URL and url.isascii() else None
    if parts is None or re.search(r"[\s\\]", url) or parts.scheme not in ("https", "http"):
        raise InvalidHook("invalid hook declaration: url must be an https URL without credentials")
    if parts.scheme == "http" and not service_settings.WEBHOOK_ALLOW_PRIVATE:
        raise InvalidHook("invalid hook declaration: url has to begin with https")
    try:
        address = ipaddress.ip_address((parts.hostname or "").partition("%")[0])
    except ValueError:
        return url  # a host name, resolved and checked for each call
    if not is_allowed(address) or (parts.scheme == "http" and not is_own(address)):
        raise InvalidHook("invalid hook declaration: url is in a network that isn't called")
    return url
