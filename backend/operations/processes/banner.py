"""What the person at the terminal reads when the service has started."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from backend.instance.folder import DataFolder
from backend.settings.environment import LOOPBACK_HOSTS


def is_unreachable(site_url: str, listen_host: str) -> bool:
    """Whether Caddy serves a public address on the loopback interface alone."""
    return (
        bool(site_url)
        and listen_host in LOOPBACK_HOSTS
        and urlsplit(site_url).hostname not in LOOPBACK_HOSTS
    )


def _header(header: str, name: str, value: str | None) -> str:
    """A header for a shell: with the value, or with the variable of this name."""
    return f'"{header}: ${name}"' if value is None else shlex.quote(f"{header}: {value}")


def greeting(
    settings: Any,
    login: Mapping[str, Any],
    folder: DataFolder,
    *,
    new_keys: bool,
    is_terminal: bool,
) -> str:
    """Addresses, credentials, and two commands to paste.

    Secrets are in it when they are made and it is read at a terminal. Otherwise it names their
    files, since logs keep what is printed.
    """
    shows_keys = new_keys and is_terminal
    service = settings.SERVICE
    base = f"{settings.PUBLIC_URL}{service['MOUNT_PATH']}"
    application, master, rest_api = (
        f"-H {_header(header, name, service[name] if shows_keys else None)}"
        for header, name in (
            ("X-Svc-Application-Id", "APP_ID"),
            ("X-Svc-Master-Key", "MASTER_KEY"),
            ("X-Svc-REST-API-Key", "REST_API_KEY"),
        )
    )
    take_keys = ""
    if not shows_keys and folder.keys.exists():
        take_keys = f"\nTake the keys into this shell:\n  . {shlex.quote(str(folder.keys))}\n"
    if login["is_new"] and login["password"] is None:
        sign_in = f"user {login['username']}, password as ADMIN_PASSWORD says"
    elif login["is_new"] and is_terminal:
        sign_in = f"user {login['username']}, password {login['password']}"
    elif login["password"]:
        sign_in = f"user {login['username']}, password in {folder.path / 'admin.json'}"
    else:
        sign_in = "with your staff account"
    place = str(folder.path)
    if folder.engines != folder.path and settings.EMBEDDED_POSTGRES:
        place += f", database {folder.engines} (it can't run in a folder that only root may enter)"
    if new_keys:
        place += ", made just now"
    warning = ""
    if is_unreachable(settings.SITE_URL, settings.LISTEN_HOST):
        warning = (
            f"\nWarning    {settings.SITE_URL} is served on {settings.LISTEN_HOST} alone. Set "
            "LISTEN_HOST=0.0.0.0, so that\n           clients and the certificate authority can "
            "connect.\n"
        )
    if login["is_held"]:
        warning += (
            "\nHeld       This instance was restored: schedules, webhooks, pushes, emails and "
            "transactions wait until you run\n           script/manage resume.\n"
        )
    return f"""
Running at {base}
Admin      {settings.PUBLIC_URL}/admin/   {sign_in}
Data, keys {place}
SDKs       Parse.initialize("{service["APP_ID"]}", "{service["JAVASCRIPT_KEY"]}")
           Parse.serverURL = "{base}"
{warning}{take_keys}
Create an object:
  curl -X POST {base}/classes/Note \\
    {application} \\
    {master} \\
    -H 'Content-Type: application/json' -d '{{"text": "hello", "stars": 5}}'

Read it back:
  curl -G {base}/classes/Note \\
    {application} \\
    {rest_api} \\
    --data-urlencode 'where={{"stars": {{"$gte": 3}}}}'

Ctrl-C stops everything.
"""
