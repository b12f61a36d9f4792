"""Settings that are unfit for production."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from time import time
from urllib.parse import urlsplit

from django.conf import settings
from django.http.request import validate_host

from backend.checks import deployment
from backend.instance.keys import MAKERS
from backend.kernel.doctor import Finding, check, fail, ok, warn
from backend.operations.keys.instance import present_keys
from backend.settings import environment
from backend.settings.conf import service_settings
from backend.settings.former_keys import unexpired

_SHORT, _VARIETY = 20, 8  # characters, different ones
_PLACEHOLDERS = ("changeme", "change-me", "example", "insecure", "password", "yourkey", "your-key")
_SECRET = ("SECRET_KEY", "MASTER_KEY", "READ_ONLY_MASTER_KEY", "MAINTENANCE_KEY")
_SHORT_MASTER_KEY = "backend.W003"  # keys are looked at here, more closely
_ROTATE = (
    "script/manage rotate_keys makes new ones. If released apps have the key in their code, "
    "--grace TIME keeps the old one valid until they are updated."
)


@check("names of settings")
def names() -> Iterator[Finding]:
    """Whether names are misspelt settings, and lines of ``.env`` aren't settings."""
    problems = environment.problems()
    for problem, advice in problems:
        yield warn(problem, advice)
    if not problems:
        yield ok("no variable looks like a misspelt setting, no line of .env is ignored")


@check("keys")
def keys() -> Iterator[Finding]:
    """Whether keys can be guessed, read by others, or are left over."""
    has_problem = False
    present = {name: value for name, value in present_keys().items() if name in MAKERS}
    for name, value in present.items():
        if name == "APP_ID":
            continue
        reason = _weakness(value)
        if reason:
            has_problem = True
            make = fail if name in _SECRET else warn
            yield make(f"{name} can be guessed: {reason}.", _ROTATE)
    values = list(present.values())
    same = sorted(name for name, value in present.items() if values.count(value) > 1)
    if same:
        has_problem = True
        yield fail(f"{', '.join(same)} are the same.", _ROTATE)
    file = settings.DATA_FOLDER.keys
    if file.exists() and stat.S_IMODE(file.stat().st_mode) & 0o077:
        has_problem = True
        yield fail(f"{file} can be read by other accounts.", f"chmod 600 {file}")
    if settings.SECRET_KEY_FALLBACKS:
        has_problem = True
        yield warn(
            "A former SECRET_KEY is still in use.",
            "When every process has been restarted: script/manage rotate_keys --finish",
        )
    former = service_settings.FORMER_KEYS
    over = sorted(former.keys() - unexpired(former, time()).keys())
    if over:
        has_problem = True
        yield warn(
            f"FORMER_KEYS has keys whose time is over: {', '.join(over)}.", "Take them out of it."
        )
    if not has_problem:
        yield ok(f"{len(present)} keys")


def _weakness(value: str) -> str | None:
    if len(value) < _SHORT:
        return f"it has fewer than {_SHORT} characters"
    if len(set(value)) < _VARIETY:
        return f"it has fewer than {_VARIETY} different characters"
    if any(word in value.lower() for word in _PLACEHOLDERS):
        return "it looks like a placeholder"
    return None


@check("settings")
def settings_for_production() -> Iterator[Finding]:
    """What ``check --deploy`` says of this service, and what makes Django unsafe."""
    has_problem = False
    if settings.DEBUG:
        has_problem = True
        yield fail("DEBUG is on: errors show settings and code.", "Set DEBUG=off.")
    for message in deployment(None):
        if message.id != _SHORT_MASTER_KEY:
            has_problem = True
            yield warn(str(message.msg), str(message.hint or ""))
    host = urlsplit(settings.PUBLIC_URL).hostname or ""
    if "*" in settings.ALLOWED_HOSTS:
        has_problem = True
        yield warn("ALLOWED_HOSTS has *, so any Host header is taken.", "List your host names.")
    elif not validate_host(f"[{host}]" if ":" in host else host, settings.ALLOWED_HOSTS):
        has_problem = True
        yield fail(
            f"The host of PUBLIC_URL, {host}, isn't in ALLOWED_HOSTS: the admin refuses it.",
            "Add it, or leave ALLOWED_HOSTS unset.",
        )
    if not has_problem:
        yield ok("fit for production")
