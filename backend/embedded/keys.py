"""The keys of an instance that was given none: made once, kept where only their owner reads."""

from __future__ import annotations

import os
import secrets

from backend.embedded.folder import DataFolder, private_file

_MAKERS = {
    "SECRET_KEY": lambda: secrets.token_urlsafe(48),
    "APP_ID": lambda: f"app-{secrets.token_hex(6)}",
    "REST_API_KEY": lambda: f"rest-{secrets.token_hex(16)}",
    "JAVASCRIPT_KEY": lambda: f"javascript-{secrets.token_hex(16)}",
    "MASTER_KEY": lambda: f"master-{secrets.token_hex(24)}",
}
_HEADING = "# Keys of this instance. The environment and .env win over this file.\n"


def ensure_keys(folder: DataFolder) -> bool:
    """Make the keys that neither the environment nor the folder has; whether any was made."""
    try:
        kept = folder.keys.read_text()
    except FileNotFoundError:
        kept = _HEADING
    names = {line.partition("=")[0] for line in kept.splitlines()}
    missing = [
        name
        for name in _MAKERS
        if name not in names and not os.environ.get(name) and not os.environ.get(f"{name}_FILE")
    ]
    if not missing:
        return False
    fresh = folder.keys.with_suffix(".new")
    with private_file(fresh) as file:
        file.write(kept + "".join(f"{name}={_MAKERS[name]()}\n" for name in missing))
    fresh.replace(folder.keys)
    return True
