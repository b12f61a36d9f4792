"""How mail is sent and what verification and password resets are like, from the environment."""

from __future__ import annotations

from email.headerregistry import Address
from email.utils import parseaddr
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import environ
from django.core.exceptions import ImproperlyConfigured

from backend.settings import environment
from backend.settings.conf import DEFAULTS
from backend.settings.environment import BadSetting

_FLAGS = (
    "VERIFY_EMAIL",
    "SEND_VERIFICATION_EMAIL",
    "PREVENT_LOGIN_WITH_UNVERIFIED_EMAIL",
    "PREVENT_SIGNUP_WITH_UNVERIFIED_EMAIL",
    "RESET_SUCCESS_ON_UNKNOWN_EMAIL",
    "UNLOCK_ON_PASSWORD_RESET",
)
_A_YEAR = 366 * 86_400


def service_values(public_url: str) -> dict[str, Any]:
    """The settings of mail, as ``backend.settings.conf`` names them."""
    found: dict[str, Any] = {name: environment.flag(name, DEFAULTS[name]) for name in _FLAGS}
    for name in ("EMAIL_TOKEN_VALIDITY", "RESET_TOKEN_VALIDITY"):
        found[name] = environment.whole(name, DEFAULTS[name], least=60, most=_A_YEAR)
    host = urlsplit(public_url).hostname or "localhost"
    found["APP_NAME"] = " ".join(environment.text("APP_NAME", host).split())
    return found


def django_values(app_name: str, public_url: str) -> dict[str, Any]:
    """Django's own settings of mail. Without any in the environment, mail is printed."""
    host = urlsplit(public_url).hostname or "localhost"
    return {
        "EMAIL_TIMEOUT": environment.whole("EMAIL_TIMEOUT", 10, least=1, most=600),
        "DEFAULT_FROM_EMAIL": _sender(str(Address(app_name, "noreply", _domain(host)))),
        **(_by_address() or _by_names()),
    }


def _domain(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _sender(default: str) -> str:
    value = environment.text("DEFAULT_FROM_EMAIL") or default
    if "@" not in parseaddr(value)[1] or "\n" in value:
        raise BadSetting(
            "DEFAULT_FROM_EMAIL must be an address such as Name <noreply@example.org>."
        )
    return value


def _by_address() -> dict[str, Any]:
    url = environment.text("EMAIL_URL")
    if not url:
        return {}
    schemes = ", ".join(sorted(environ.Env.EMAIL_SCHEMES))
    try:
        return dict(environ.Env.email_url_config(url))
    except (ImproperlyConfigured, ValueError, KeyError):
        # Not repeated: it holds a password.
        raise BadSetting(f"EMAIL_URL must be a URL with one of the schemes {schemes}.") from None


def _by_names() -> dict[str, Any]:
    host = environment.text("EMAIL_HOST")
    default = f"django.core.mail.backends.{'smtp' if host else 'console'}.EmailBackend"
    uses_tls = environment.flag("EMAIL_USE_TLS", False)
    uses_ssl = environment.flag("EMAIL_USE_SSL", False)
    if uses_tls and uses_ssl:
        raise BadSetting("EMAIL_USE_TLS and EMAIL_USE_SSL can't both be on.")
    return {
        "EMAIL_BACKEND": environment.text("EMAIL_BACKEND", default),
        "EMAIL_HOST": host or "localhost",
        "EMAIL_PORT": environment.whole(
            "EMAIL_PORT", 465 if uses_ssl else 587 if uses_tls else 25, least=1, most=65_535
        ),
        "EMAIL_HOST_USER": environment.text("EMAIL_HOST_USER"),
        "EMAIL_HOST_PASSWORD": environment.text("EMAIL_HOST_PASSWORD"),
        "EMAIL_USE_TLS": uses_tls,
        "EMAIL_USE_SSL": uses_ssl,
    }


def template_folders(base: Path) -> list[Path]:
    """Where templates are looked for before the service's own."""
    given = environment.text("TEMPLATES_DIR")
    if not given:
        return []
    folder = base / given
    if not folder.is_dir():
        raise BadSetting("TEMPLATES_DIR must name a folder, and there is none.")
    return [folder]
