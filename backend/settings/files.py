"""Where files are stored and which are taken, from the environment."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from backend.settings import environment
from backend.settings.conf import DEFAULTS
from backend.settings.environment import BadSetting

_HOST: Final = re.compile(r"[a-z0-9.-]+(?::[0-9]{1,5})?|\[[0-9a-f:.]+\](?::[0-9]{1,5})?")


def service_values(public_url: str = "") -> dict[str, Any]:
    """The settings of files, as ``backend.settings.conf`` names them."""
    return {
        "FILE_UPLOAD_PUBLIC": environment.flag("FILE_UPLOAD_PUBLIC", False),
        "FILE_UPLOAD_ANONYMOUS": environment.flag("FILE_UPLOAD_ANONYMOUS", False),
        "FILE_UPLOAD_AUTHENTICATED": environment.flag("FILE_UPLOAD_AUTHENTICATED", True),
        "FILE_EXTENSIONS_ALLOWED": _extensions("FILE_EXTENSIONS_ALLOWED"),
        "FILE_EXTENSIONS_DENIED": _extensions("FILE_EXTENSIONS_DENIED"),
        "FILE_CLEAN_UP": environment.flag("FILE_CLEAN_UP", False),
        "FILE_URL_VALIDITY": environment.whole(
            "FILE_URL_VALIDITY", DEFAULTS["FILE_URL_VALIDITY"], least=1
        ),
        "FILE_URL_DOMAINS": tuple(
            word.lower() for word in environment.words("FILE_URL_DOMAINS", ())
        ),
        "FILE_HOST": _separate_host(public_url),
        **{
            name: environment.whole(name, DEFAULTS[name], most=2**53)
            for name in ("FILE_QUOTA", "FILE_QUOTA_PUBLIC")
        },
    }


def _separate_host(public_url: str) -> str:
    host = environment.text("FILE_HOST").lower()
    if not host:
        return ""
    try:
        parts = urlsplit(f"//{host}")
        is_host = parts.netloc == host and parts.hostname and parts.port != 0 and "@" not in host
    except ValueError:
        is_host = False
    if not is_host or not _HOST.fullmatch(host):
        raise BadSetting("FILE_HOST must be a host such as files.example.org, with a port or not.")
    if parts.hostname == urlsplit(public_url).hostname:
        # Cookies know no ports.
        raise BadSetting("FILE_HOST must be another host than that of PUBLIC_URL.")
    return host


def _extensions(name: str) -> tuple[str, ...]:
    return tuple(word.lower().removeprefix(".") for word in environment.words(name, DEFAULTS[name]))


def storage(data_dir: Path) -> dict[str, Any]:
    """Django's storage for files: a folder below ``DATA_DIR``, or a bucket that speaks S3."""
    if environment.choice("FILE_STORAGE", "folder", ("folder", "s3")) == "folder":
        return {
            "BACKEND": "django.core.files.storage.FileSystemStorage",
            "OPTIONS": {
                "location": data_dir / "files",
                "file_permissions_mode": 0o600,
                "directory_permissions_mode": 0o700,
            },
        }
    needed = "FILE_STORAGE=s3 needs it."
    options: dict[str, Any] = {
        "bucket_name": environment.required("FILE_S3_BUCKET", needed),
        "endpoint_url": environment.address("FILE_S3_ENDPOINT", "", ("http", "https")) or None,
        "region_name": environment.text("FILE_S3_REGION") or None,
        "location": environment.text("FILE_S3_PREFIX"),
        "default_acl": None,
        "file_overwrite": True,  # names are unique, so no look-up is needed
        "querystring_auth": False,
    }
    access_key = environment.text("FILE_S3_ACCESS_KEY")
    if access_key:
        # Without them boto3 looks where AWS's own tools do: variables, profile, the machine's role.
        options["access_key"] = access_key
        options["secret_key"] = environment.required(
            "FILE_S3_SECRET_KEY", "FILE_S3_ACCESS_KEY needs it."
        )
    return {"BACKEND": "objects.files.s3.ObjectStorage", "OPTIONS": options}
