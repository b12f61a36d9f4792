"""The keys of an instance: how they are made, and the file that keeps those that it was not given.

That file is ``DATA_DIR/keys.env``; only its owner reads it, and the environment and ``.env`` win
over it.
"""

from __future__ import annotations

import os
import re
import secrets
from base64 import b64encode
from collections.abc import Callable, Mapping
from pathlib import Path

from backend.instance.folder import DataFolder, private_file

MAKERS: Mapping[str, Callable[[], str]] = {
    "SECRET_KEY": lambda: secrets.token_urlsafe(48),
    "APP_ID": lambda: f"app-{secrets.token_hex(6)}",
    "REST_API_KEY": lambda: f"rest-{secrets.token_hex(16)}",
    "JAVASCRIPT_KEY": lambda: f"javascript-{secrets.token_hex(16)}",
    "MASTER_KEY": lambda: f"master-{secrets.token_hex(24)}",
    "CLIENT_KEY": lambda: f"client-{secrets.token_hex(16)}",
    "READ_ONLY_MASTER_KEY": lambda: f"read-only-{secrets.token_hex(24)}",
    "MAINTENANCE_KEY": lambda: f"maintenance-{secrets.token_hex(24)}",
    "WEBHOOK_KEY": lambda: f"webhook-{secrets.token_hex(24)}",
    "WEBHOOK_SECRET": lambda: f"whsec_{b64encode(secrets.token_bytes(32)).decode()}",
}
"""How each key is made."""

_FIRST = ("SECRET_KEY", "APP_ID", "REST_API_KEY", "JAVASCRIPT_KEY", "MASTER_KEY", "MAINTENANCE_KEY")
_HEADING = "# Keys of this instance. The environment and .env win over this file.\n"
_LINE = re.compile(r"(?:export )?([A-Za-z_0-9]+)=(.*)")
# What any reader of such files takes for itself: no quotes, no $ that would name a variable.
_PLAIN = re.compile(r"[A-Za-z0-9_.,:;+/=@%&*()~^!?|<>\[\]{} -]*")


def ensure_keys(folder: DataFolder) -> bool:
    """Make the keys that neither the environment nor the folder has. Return whether any was made;
    they are unseen then."""
    stored = read_keys(folder)
    missing = [
        name
        for name in _FIRST
        if name not in stored and not os.environ.get(name) and not os.environ.get(f"{name}_FILE")
    ]
    if missing:
        # First: a process that is killed here leaves at most a mark without keys.
        folder.unseen_keys.touch(mode=0o600)
        write_keys(folder, {name: MAKERS[name]() for name in missing})
    return bool(missing)


def has_unseen_keys(folder: DataFolder) -> bool:
    """Return whether keys were made that no start has printed yet."""
    return folder.unseen_keys.exists()


def mark_keys_seen(folder: DataFolder) -> None:
    """Remember that the keys were printed."""
    folder.unseen_keys.unlink(missing_ok=True)


def live_keys(folder: DataFolder) -> dict[str, str]:
    """Return the keys that the service runs with, or ran with last, as far as the folder's file
    decided about them. Empty before the first start."""
    return values_in(folder.live_keys)


def note_live_keys(folder: DataFolder, values: Mapping[str, str]) -> None:
    """Remember the keys that the service runs with from now on."""
    fresh = folder.live_keys.with_suffix(".new")
    with private_file(fresh) as file:
        file.writelines(f"{name}={value}\n" for name, value in values.items())
    fresh.replace(folder.live_keys)


def read_keys(folder: DataFolder) -> dict[str, str]:
    """What the file has, by name; nothing if there is no file."""
    return values_in(folder.keys)


def values_in(path: Path) -> dict[str, str]:
    """The ``NAME=value`` lines of a file, nothing if there is no such file."""
    matches = (_LINE.fullmatch(line) for line in _lines(path))
    return {match[1]: _bare(match[2]) for match in matches if match}


def write_keys(folder: DataFolder, values: Mapping[str, str | None]) -> None:
    """Put values into the file, or take those out that are None; the rest of it stays.

    Raises ``ValueError``, naming the key, for a value that the file can't hold. The file is
    replaced atomically, so a reader never sees half of it.
    """
    for name, value in values.items():
        if value is not None and (not _PLAIN.fullmatch(value) or value != value.strip()):
            raise ValueError(name)
    left = {name: value for name, value in values.items() if value is not None}
    lines = []
    for line in _lines(folder.keys) or [_HEADING.strip()]:
        match = _LINE.fullmatch(line)
        if match is None or match[1] not in values:
            lines.append(line)
        elif match[1] in left:
            lines.append(f"{match[1]}={left.pop(match[1])}")
    lines += [f"{name}={value}" for name, value in left.items()]
    folder.path.mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh = folder.keys.with_suffix(".new")
    with private_file(fresh) as file:
        file.writelines(f"{line}\n" for line in lines)
    fresh.replace(folder.keys)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except FileNotFoundError:
        return []


def _bare(value: str) -> str:
    quoted = re.fullmatch(r"'(.*)'|\"(.*)\"", value)
    return value if quoted is None else quoted[1] or quoted[2] or ""
