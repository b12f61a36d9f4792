"""What webhooks are declared with: names of functions and triggers, and addresses.

Triggers have Parse's names. Errors are 143 with Parse's texts, which its SDKs and their users know.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from typing import Final

from backend.kernel.errors import InvalidHook, ServiceError
from backend.kernel.outgoing import parts_of
from backend.settings.conf import service_settings
from functions.runtime.registry import is_name
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
# Of what has no transaction, one hears when it is done.
_OUTSIDE: Final[Mapping[Event, Event]] = {"saved": "after_save", "deleted": "after_delete"}
LONGEST_URL: Final = 2048


def event_of(class_name: str, trigger_name: str) -> Event:
    """The event at which a webhook is told of what a trigger's name means."""
    event = EVENTS[trigger_name]
    return _OUTSIDE.get(event, event) if class_name in (FILE, CONFIG) else event


def checked_function(given: object) -> str:
    """The name of a function. Raises ``InvalidHook``."""
    if not isinstance(given, str) or not is_name(given):
        raise InvalidHook
    return given


def checked_trigger(class_name: object, trigger_name: object) -> tuple[Subject, str]:
    """A class and the name of a trigger that it may have. Raises ``InvalidHook``."""
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
    """Raise ``InvalidHook`` for a trigger that nothing would call. Names that can't be declared at
    all pass: there are no webhooks of them."""
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
    """A class, or what has triggers like one. Raises ``InvalidClassName``."""
    return Subject(name) if name in (FILE, CONFIG) else check_class_name(name)


def checked_url(given: object) -> str:
    """An address to call. Raises ``InvalidHook``, which never repeats it."""
    if not isinstance(given, str) or not given:
        raise InvalidHook
    parts = parts_of(given) if len(given) <= LONGEST_URL and given.isascii() else None
    if parts is None or re.search(r"[\s\\]", given) or parts.scheme not in ("https", "http"):
        raise InvalidHook(
            "invalid hook declaration: url is no address of https, or has credentials in it"
        )
    if parts.scheme == "http" and not service_settings.WEBHOOK_ALLOW_PRIVATE:
        raise InvalidHook("invalid hook declaration: url has to begin with https")
    try:
        address = ipaddress.ip_address((parts.hostname or "").partition("%")[0])
    except ValueError:
        return given  # a name; where it leads is looked at whenever it is called
    if not is_allowed(address) or (parts.scheme == "http" and not is_own(address)):
        raise InvalidHook("invalid hook declaration: url is in a network that isn't called")
    return given
