"""The keys of this instance: which there are, where each comes from, and giving it others.

Nothing here puts a key into a log or an error.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from django.conf import settings

from backend.instance import keys as keys_file
from backend.instance.keys import MAKERS, read_keys, values_in, write_keys
from backend.settings import environment, former_keys
from backend.settings.conf import DEFAULTS, service_settings

FALLBACKS = "SECRET_KEY_FALLBACKS"
FORMER = "FORMER_KEYS"
NAMES: tuple[str, ...] = (*MAKERS, FALLBACKS, FORMER)
"""What a key may be called: those that can be made, and what keeps former ones."""


def present_keys() -> dict[str, str]:
    """The keys that this process has been started with, by name; those that aren't set are left
    out."""
    keys = {name: str(getattr(service_settings, name)) for name in MAKERS if name in DEFAULTS}
    keys["SECRET_KEY"] = settings.SECRET_KEY
    keys[FALLBACKS] = ",".join(settings.SECRET_KEY_FALLBACKS)
    keys[FORMER] = former_keys.format_keys(service_settings.FORMER_KEYS)
    return {name: value for name, value in keys.items() if value}


def live_keys() -> dict[str, str]:
    """The keys that the running service counts, by name: those of its last start or reload, and not
    those that were stored since."""
    stored = keys_file.live_keys(settings.DATA_FOLDER)
    return present_keys() | {name: key for name, key in stored.items() if not is_given(name)}


def note_live_keys() -> None:
    """Remember that the service runs with the keys of this process. Never raises ``OSError``."""
    folder = settings.DATA_FOLDER
    keys = {name: key for name, key in present_keys().items() if name in MAKERS}
    with suppress(OSError):
        if folder.keys.exists():
            values = {name: key for name, key in keys.items() if not is_given(name)}
            keys_file.note_live_keys(folder, values)


def is_given(name: str) -> bool:
    """Whether the environment or ``.env`` decides about this key, so that what ``DATA_DIR`` keeps
    doesn't count."""
    if os.environ.get(f"{name}_FILE") or name in _given_at_start() or name in _in_env_file():
        return True
    # The settings put what they read from files into the environment.
    stored = read_keys(settings.DATA_FOLDER).get(name)
    return os.environ.get(name, stored) != stored


def _given_at_start() -> set[str]:
    """The environment that this process was started with, as the kernel remembers it."""
    try:
        lines = Path("/proc/self/environ").read_bytes().split(b"\0")
    except OSError:
        return set()
    return {line.partition(b"=")[0].decode(errors="replace") for line in lines}


def _in_env_file() -> set[str]:
    path = environment.env_file(settings.BASE_DIR / ".env")
    return set(values_in(path)) if path.is_file() else set()


def keep(values: Mapping[str, str | None]) -> list[str]:
    """Put keys into the instance's file (None takes one out), as far as it decides about them.

    The names of those that the environment decides about, or that the file can't hold, are given
    back; these have to be changed there. Processes that run go on with what they have.
    """
    left = [name for name in values if is_given(name)]
    writable = {name: value for name, value in values.items() if name not in left}
    while writable:
        try:
            write_keys(settings.DATA_FOLDER, writable)
        except ValueError as error:
            name = str(error)
            del writable[name]
            left.append(name)
        else:
            break
    return left


def check_writable() -> None:
    """Raise ``OSError`` if nothing can be kept in ``DATA_DIR``."""
    folder = settings.DATA_FOLDER.path
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with tempfile.TemporaryFile(dir=folder):
        pass


def fallbacks(keys: Sequence[str]) -> str | None:
    """Former secret keys as the setting has them; None for none."""
    return ",".join(dict.fromkeys(key for key in keys if key)) or None
