"""Where files and backups are stored, and which files are accepted."""

from __future__ import annotations

import os
import re
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import urlsplit

from backend.settings import environment
from backend.settings.areas.http import Http
from backend.settings.declaration import Area, Setting, choice, flag, items, text, whole
from backend.settings.environment import BadSetting

Keep: TypeAlias = tuple[tuple[str, int], ...]
"""How many backups stay: pairs of a unit (h, d, w, m, y) and a number."""

_HOST: Final = re.compile(r"[a-z0-9.-]+(?::[0-9]{1,5})?|\[[0-9a-f:.]+\](?::[0-9]{1,5})?")
_LARGEST: Final = 2**53  # bytes
_PAGES: Final = (
    "html htm shtml shtm xhtml xhtm xht mhtml mht hta htc svg svgz xml xsl xslt xsd dtd rng rdf owl"
    " mathml mml atom rss xul xbl"
)
_TEN_GIGABYTES: Final = 10 * 1024**3
_BUCKET: Final = re.compile(r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[A-Za-z0-9_.+=@/-]*)?")
_COUNT: Final = re.compile(r"(?P<count>[1-9][0-9]{0,3})(?P<unit>[hdwmy])")
_KEY_PREFIX: Final = "AGE-SECRET-KEY-1"
# Commands read all settings, so BACKUP_TO must not demand the key that this one makes.
_NEW_KEY: Final = "`BACKUP_TO= BACKUP_KEY= script/manage backup --new-key` prints one."


def _file_host(name: str, default: str) -> str:
    host = environment.text(name, default).lower()
    if not host:
        return ""
    try:
        parts = urlsplit(f"//{host}")
        is_host = parts.netloc == host and parts.hostname and parts.port != 0 and "@" not in host
    except ValueError:
        is_host = False
    if not is_host or not _HOST.fullmatch(host):
        raise BadSetting(f"{name} must be a host such as files.example.org, with a port or not.")
    if parts.hostname == urlsplit(Http.PUBLIC_URL.read()).hostname:
        # Cookies know no ports.
        raise BadSetting(f"{name} must be another host than that of PUBLIC_URL.")
    return host


def _extension(word: str) -> str:
    return word.lower().removeprefix(".")


class Files(Area):
    """Which files are accepted, of whom, and their addresses."""

    title = "Files"

    FILE_UPLOAD_AUTHENTICATED = flag(True, "users may upload, in addition to the master key")
    FILE_UPLOAD_ANONYMOUS = flag(False, "anonymous users may upload")
    FILE_UPLOAD_PUBLIC = flag(False, "everybody may upload")
    FILE_DOWNLOAD_AUTHENTICATED = flag(True, "users may read files")
    FILE_DOWNLOAD_ANONYMOUS = flag(True, "anonymous users may read files")
    FILE_DOWNLOAD_PUBLIC = flag(True, "callers without a session may read files that are public")
    FILE_EXTENSIONS_DENIED = items(
        "extensions that are refused",
        _extension,
        default=_PAGES.split(),
        shown="HTML, SVG and XML families",
    )
    FILE_EXTENSIONS_ALLOWED = items(
        "if set, the only ones that are accepted; `*` is all", _extension
    )
    FILE_URL_VALIDITY = whole(3600, "time that a link to a private file works", least=1, unit="s")
    FILE_URL_DOMAINS = items(
        "hosts whose addresses may stand in File values; `*.example.org` is any host below, `*`"
        " any",
        str.lower,
    )
    FILE_HOST = Setting(
        "",
        "a host for files alone, such as `files.example.org`"
        " ([files.md](files.md#what-browsers-do-with-a-file))",
        _file_host,
    )
    FILE_QUOTA = whole(
        _TEN_GIGABYTES,
        "files that each user may store, 10 GB; 0 is no limit",
        most=_LARGEST,
        unit="bytes",
    )
    FILE_QUOTA_PUBLIC = whole(
        _TEN_GIGABYTES,
        "files that uploads without a user may have, all together; 0 is no limit",
        most=_LARGEST,
        unit="bytes",
    )
    FILE_CLEAN_UP = flag(False, "removes files that nothing refers to every day")


class Storage(Area):
    """A folder, or a bucket that speaks S3."""

    title = "Files"

    FILE_STORAGE = choice("folder", ("folder", "s3"), "below `DATA_DIR`, or `s3`")
    FILE_S3_BUCKET = text("the bucket; needed with `s3`")
    FILE_S3_ENDPOINT: Setting[str] = Setting(
        "",
        "the address of the service, if it isn't AWS",
        partial(environment.address, schemes=("http", "https")),
    )
    FILE_S3_REGION = text("the region")
    FILE_S3_PREFIX = text("how all names in the bucket begin")
    # Without it boto3 looks where AWS's own tools do: variables, profile, the machine's role.
    FILE_S3_ACCESS_KEY = text("the access key", secret=True, shown="where AWS's own tools look")
    FILE_S3_SECRET_KEY = text("its secret; needed with an access key", secret=True)


def _place(name: str, default: str) -> str:
    place = environment.text(name, default)
    if place.startswith("s3://"):
        if not _BUCKET.fullmatch(place) or ".." in place:
            raise BadSetting(f"{name} must be s3://BUCKET or s3://BUCKET/PREFIX.")
    elif place and not os.path.isabs(place):
        raise BadSetting(f"{name} must be an absolute path, or s3://BUCKET/PREFIX.")
    return place


def _key(name: str, default: str) -> str:
    """Read an age identity. No error repeats it."""
    key = environment.text(name, default)
    if not key:
        return key
    if not key.upper().startswith(_KEY_PREFIX):
        what = "this is the public part" if key.startswith("age1") else "it begins otherwise"
        raise BadSetting(f"{name} must be an age identity, {_KEY_PREFIX}…, but {what}. {_NEW_KEY}")
    from pyrage import IdentityError, x25519

    try:
        x25519.Identity.from_str(key)
    except IdentityError:
        raise BadSetting(
            f"{name} isn't a complete age identity: copy the whole line, {_KEY_PREFIX} and 58"
            " letters and digits."
        ) from None
    return key


def _schedule(name: str, default: str) -> str:
    line = environment.text(name, default)
    if line.lower() in ("", "off"):
        return ""
    # Loads Celery.
    from backend.settings.timetables import parse_cron

    try:
        parse_cron(line)
    except ValueError as error:
        raise BadSetting(
            f"{name} must be a crontab line such as 0 3 * * *, in UTC or with a time zone after it,"
            f" or off: {error}."
        ) from None
    return line


def _keep(name: str, default: Keep) -> Keep:
    words = environment.text(name).lower().split()
    counts: dict[str, int] = {}
    for word in words:
        match = _COUNT.fullmatch(word)
        if match is None or match["unit"] in counts:
            raise BadSetting(
                f"{name} must be numbers of hours, days, weeks, months and years such as"
                f" 7d 4w 6m, each unit once, not {word!r}."
            )
        counts[match["unit"]] = int(match["count"])
    return tuple(counts.items()) or default


class Backups(Area):
    """Where and when backups are made, and how long they are stored."""

    title = "Backups"

    BACKUP_TO = Setting(
        "",
        "where [backups](backups.md) go: an existing folder (an absolute path), or"
        " `s3://bucket/prefix`",
        _place,
    )
    BACKUP_SCHEDULE = Setting(
        "",
        "when they are made: a crontab line, in UTC or with a time zone after it"
        " (`0 3 * * * Europe/Berlin`); needs `BACKUP_TO`",
        _schedule,
        shown="off",
    )
    BACKUP_KEEP: Setting[Keep] = Setting(
        (("d", 7), ("w", 4), ("m", 6)),
        "how many of them stay: the newest one of each of so many hours (`h`), days (`d`), weeks"
        " (`w`), months (`m`) and years (`y`) that have one",
        _keep,
        shown="`7d 4w 6m`",
    )
    BACKUP_VERIFY: Setting[Literal["restore", "checksums"]] = choice(
        "restore",
        ("restore", "checksums"),
        "what is done with each after it was read back and compared: `restore` also restores its"
        " database into another one on the server, and drops that",
    )
    BACKUP_KEY = Setting(
        "",
        "the age identity (`AGE-SECRET-KEY-1…`) that backups are encrypted with and restored by;"
        " required for a bucket. Keep a copy elsewhere: without it they can't be read",
        _key,
        secret=True,
    )
    BACKUP_S3_ENDPOINT: Setting[str] = Setting(
        "",
        "the address of the service of the bucket, if it isn't AWS",
        partial(environment.address, schemes=("http", "https")),
        derived=Storage.FILE_S3_ENDPOINT.read,
        shown="`FILE_S3_ENDPOINT`",
    )
    BACKUP_S3_REGION = text(
        "its region", derived=Storage.FILE_S3_REGION.read, shown="`FILE_S3_REGION`"
    )
    BACKUP_S3_ACCESS_KEY = text(
        "its access key. One of its own that can't read files, and that files' key can't be used"
        " for, is better",
        derived=Storage.FILE_S3_ACCESS_KEY.read,
        shown="`FILE_S3_ACCESS_KEY`",
        secret=True,
    )
    BACKUP_S3_SECRET_KEY = text(
        "its secret; needed with an access key",
        derived=Storage.FILE_S3_SECRET_KEY.read,
        shown="`FILE_S3_SECRET_KEY`",
        secret=True,
    )

    @classmethod
    def check(cls, values: dict[str, Any]) -> None:
        if values["BACKUP_TO"].startswith("s3://") and not values["BACKUP_KEY"]:
            raise BadSetting(f"BACKUP_KEY isn't set: backups in a bucket are encrypted. {_NEW_KEY}")
        if values["BACKUP_SCHEDULE"] and not values["BACKUP_TO"]:
            raise BadSetting("BACKUP_TO isn't set: BACKUP_SCHEDULE needs it.")
        own_access = environment.text("BACKUP_S3_ACCESS_KEY")
        if own_access and not environment.text("BACKUP_S3_SECRET_KEY"):
            raise BadSetting("BACKUP_S3_SECRET_KEY isn't set: BACKUP_S3_ACCESS_KEY needs it.")


def storage(data_dir: Path) -> dict[str, Any]:
    """Return Django's storage for files: a folder below ``DATA_DIR``, or a bucket."""
    if Storage.FILE_STORAGE.read() == "folder":
        return {
            "BACKEND": "django.core.files.storage.FileSystemStorage",
            "OPTIONS": {
                "location": data_dir / "files",
                "file_permissions_mode": 0o600,
                "directory_permissions_mode": 0o700,
            },
        }
    options: dict[str, Any] = {
        "bucket_name": environment.required("FILE_S3_BUCKET", "FILE_STORAGE=s3 needs it."),
        "endpoint_url": Storage.FILE_S3_ENDPOINT.read() or None,
        "region_name": Storage.FILE_S3_REGION.read() or None,
        "location": Storage.FILE_S3_PREFIX.read(),
        "default_acl": None,
        "file_overwrite": True,  # names are random, so there is nothing to look for
        "querystring_auth": False,
    }
    if access_key := Storage.FILE_S3_ACCESS_KEY.read():
        options["access_key"] = access_key
        options["secret_key"] = environment.required(
            "FILE_S3_SECRET_KEY", "FILE_S3_ACCESS_KEY needs it."
        )
    return {"BACKEND": "objects.files.s3.ObjectStorage", "OPTIONS": options}
