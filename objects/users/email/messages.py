"""The emails with tokens, rendered from templates and given to Django's mail backend.

Templates are ``users/mail/KIND_subject.txt``, ``KIND.txt`` and ``KIND.html``; a deployment may put
its own into ``TEMPLATES_DIR``. Nothing in them comes from the client that requested the email: a
user name would let strangers send their words to any address in our name.
"""

from __future__ import annotations

import re
from urllib.parse import quote, urlencode

from django.core.mail import EmailMultiAlternatives
from django.template.loader import render_to_string

from backend.kernel.texts.encoding import clean_text
from backend.settings.conf import service_settings
from objects.users.email import tokens

_KINDS = {
    tokens.VERIFY: ("verify_email", "verify_email"),
    tokens.RESET: ("reset_password", "request_password_reset"),
}
# One mailbox, in no spelling that a mail server or a header could take for two.
_MAILBOX = re.compile(r'[^\s@,;:<>()\[\]\\"\x00-\x1f\x7f]+@[^\s@,;:<>()\[\]\\"\x00-\x1f\x7f]+\Z')
_HEADERS = {"Auto-Submitted": "auto-generated", "X-Auto-Response-Suppress": "All"}


def is_one_mailbox(address: str) -> bool:
    """Whether an email to this address can only reach one mailbox."""
    return _MAILBOX.match(address) is not None


def send(purpose: str, address: str, token: str) -> None:
    """Send an email. Raises what the mail backend raises."""
    kind, page = _KINDS[purpose]
    context = {
        "app_name": service_settings.APP_NAME,
        "address": address,
        "link": link(page, token),
        "validity": _duration(tokens.validity(purpose)),
    }

    def written(ending: str) -> str:
        return clean_text(render_to_string(f"users/mail/{kind}{ending}", context))

    message = EmailMultiAlternatives(
        " ".join(written("_subject.txt").split()), written(".txt"), to=[address], headers=_HEADERS
    )
    message.attach_alternative(written(".html"), "text/html")
    message.send()


def link(page: str, token: str) -> str:
    """The address of a page, with a token. The host is the setting's, never the request's."""
    settings = service_settings
    app = quote(settings.APP_ID, safe="")
    query = urlencode({"token": token})
    return f"{settings.PUBLIC_URL}{settings.MOUNT_PATH}/apps/{app}/{page}?{query}"


def _duration(seconds: int) -> str:
    for unit, length in (("day", 86_400), ("hour", 3600), ("minute", 60)):
        count = seconds // length
        if count > 1 or seconds == length:
            return f"{count} {unit}{'' if count == 1 else 's'}"
    return "1 minute"
