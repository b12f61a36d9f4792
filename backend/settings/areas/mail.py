"""How emails are sent, and how verification and password resets work."""

from __future__ import annotations

from email.headerregistry import Address
from email.utils import parseaddr
from pathlib import Path
from typing import Any, Final

import environ
from django.core.exceptions import ImproperlyConfigured

from backend.settings import environment
from backend.settings.areas.http import public_host
from backend.settings.declaration import Area, Setting, flag, text, whole
from backend.settings.environment import BadSetting

_YEAR: Final = 366 * 86_400  # seconds


def _app_name(name: str, default: str) -> str:
    return " ".join(environment.text(name, default).split())


def _sender(name: str, default: str) -> str:
    value = environment.text(name, default)
    if "@" not in parseaddr(value)[1] or "\n" in value:
        raise BadSetting(f"{name} must be an address such as Name <noreply@example.org>.")
    return value


def _mail_server(name: str, default: dict[str, Any]) -> dict[str, Any]:
    """Return Django's settings of the mail server at an address; none without one."""
    url = environment.text(name)
    if not url:
        return default
    schemes = ", ".join(sorted(environ.Env.EMAIL_SCHEMES))
    try:
        return dict(environ.Env.email_url_config(url))
    except (ImproperlyConfigured, ValueError, KeyError):
        # Not repeated: it holds a password.
        raise BadSetting(f"{name} must be a URL with one of the schemes {schemes}.") from None


def _port() -> int:
    uses_ssl, uses_tls = MailServer.EMAIL_USE_SSL.read(), MailServer.EMAIL_USE_TLS.read()
    return 465 if uses_ssl else 587 if uses_tls else 25


def _backend() -> str:
    kind = "smtp" if MailServer.EMAIL_HOST.read() else "console"
    return f"django.core.mail.backends.{kind}.EmailBackend"


class Mail(Area):
    """What emails are sent and what they are for."""

    title = "Mail"

    APP_NAME = Setting(
        "localhost",
        "the name of the service in emails and on pages",
        _app_name,
        derived=public_host,
        shown="host of `PUBLIC_URL`",
    )
    VERIFY_EMAIL = flag(False, "new and changed addresses have to be verified")
    SEND_VERIFICATION_EMAIL = flag(True, "off: emails only on request")
    PREVENT_LOGIN_WITH_UNVERIFIED_EMAIL = flag(
        False, "no login before verification, and no session at sign-up"
    )
    PREVENT_SIGNUP_WITH_UNVERIFIED_EMAIL = flag(False, "no session at sign-up")
    EMAIL_TOKEN_VALIDITY = whole(
        604_800, "time that links of verification work", least=60, most=_YEAR, unit="s"
    )
    RESET_TOKEN_VALIDITY = whole(
        3600, "time that links of resets work", least=60, most=_YEAR, unit="s"
    )
    RESET_SUCCESS_ON_UNKNOWN_EMAIL = flag(
        True, "off: the response to a reset request shows that no account has the address"
    )
    UNLOCK_ON_PASSWORD_RESET = flag(True, "a reset unlocks the account")


class MailServer(Area):
    """Django's own settings of mail."""

    title = "Mail"

    EMAIL_TIMEOUT = whole(10, "time to wait for the mail server", least=1, most=600, unit="s")
    DEFAULT_FROM_EMAIL = Setting(
        "", "the sender", _sender, shown="noreply at the host of `PUBLIC_URL`"
    )
    EMAIL_URL: Setting[dict[str, Any]] = Setting(
        {},
        "`smtp+tls://user:password@host:587`; with it, the next ones have no effect",
        _mail_server,
        secret=True,
    )
    EMAIL_HOST = text("the mail server; this and the next are Django's settings of the same names")
    EMAIL_USE_TLS = flag(False, "STARTTLS")
    EMAIL_USE_SSL = flag(False, "TLS from the start")
    EMAIL_BACKEND = text("Django's class", derived=_backend, shown="SMTP with `EMAIL_HOST`")
    EMAIL_PORT = whole(
        25, "its port", least=1, most=65_535, derived=_port, shown="25; 587 or 465 with encryption"
    )
    EMAIL_HOST_USER = text("its user")
    EMAIL_HOST_PASSWORD = text("the user's password", secret=True)
    TEMPLATES_DIR = text("a folder with templates that replace the service's own")


def django_values(app_name: str, public_url: str) -> dict[str, Any]:
    """Return Django's own settings of mail. Without any in the environment, mail is printed."""
    host = public_host(public_url)
    default = str(Address(app_name, "noreply", f"[{host}]" if ":" in host else host))
    values: dict[str, Any] = {
        "EMAIL_TIMEOUT": MailServer.EMAIL_TIMEOUT.read(),
        "DEFAULT_FROM_EMAIL": _sender("DEFAULT_FROM_EMAIL", default),
    }
    if server := MailServer.EMAIL_URL.read():
        return values | server
    names = ("BACKEND", "HOST", "PORT", "HOST_USER", "HOST_PASSWORD", "USE_TLS", "USE_SSL")
    settings = MailServer.settings()
    values |= {name: settings[name].read() for name in (f"EMAIL_{part}" for part in names)}
    if values["EMAIL_USE_TLS"] and values["EMAIL_USE_SSL"]:
        raise BadSetting("EMAIL_USE_TLS and EMAIL_USE_SSL can't both be on.")
    return values | {"EMAIL_HOST": values["EMAIL_HOST"] or "localhost"}


def template_folders(base: Path) -> list[Path]:
    """Return the folders of templates that replace the service's own."""
    name = MailServer.TEMPLATES_DIR.read()
    if not name:
        return []
    folder = base / name
    if not folder.is_dir():
        raise BadSetting("TEMPLATES_DIR must name a folder, and there is none.")
    return [folder]
