"""HTTP: addresses, sizes, connections, metrics."""

from __future__ import annotations

import re
from ipaddress import ip_network
from typing import Any, Final
from urllib.parse import urlsplit

from backend.settings import environment
from backend.settings.areas.processes import Processes
from backend.settings.declaration import (
    Area,
    Setting,
    address,
    flag,
    networks,
    text,
    whole,
    words,
)
from backend.settings.environment import LOOPBACK_HOSTS, BadSetting

_RESERVED: Final = ("admin", "static", "health", "ready", "metrics", "ws", "livequery")
_MEGABYTE: Final = 1024 * 1024
_SHORTEST_TOKEN: Final = 16  # characters
_LONGEST_BADGE: Final = 30  # characters


def public_host(url: str | None = None) -> str:
    """Return the host of an address, by default of ``PUBLIC_URL``."""
    return urlsplit(Http.PUBLIC_URL.read() if url is None else url).hostname or "localhost"


def is_local(url: str) -> bool:
    """Return whether an address is on this machine."""
    return public_host(url) in LOOPBACK_HOSTS


def _mount_path(name: str, default: str) -> str:
    path = environment.text(name, default).rstrip("/")
    segments = path.split("/")[1:]
    if (
        not re.fullmatch(r"(/[A-Za-z0-9_.~-]+)+", path)
        or segments[0] in _RESERVED
        or not {".", ".."}.isdisjoint(segments)
    ):
        raise BadSetting(
            f"{name} must be a path such as /api, and not the admin's, /health or /ws."
        )
    return path


def _badge(name: str, default: str) -> str:
    value = environment.text(name, default)
    if len(value) > _LONGEST_BADGE:
        raise BadSetting(f"{name} must have at most {_LONGEST_BADGE} characters.")
    return value


class Http(Area):
    """Addresses of the API, and what one request and one connection may take."""

    title = "The HTTP face"

    PUBLIC_URL = address(
        "the service's own address, in `Location` headers and links",
        default="http://localhost:8000",
        derived=lambda: (
            environment.site_url("SITE_ADDRESS") or f"http://localhost:{Processes.PORT.read()}"
        ),
        shown="the first https address of `SITE_ADDRESS`, or `http://localhost:PORT`",
    )
    MOUNT_PATH = Setting("/api", "the path of the API", _mount_path)
    PARSE_HEADERS = flag(True, "`X-Parse-…` as an alias of each header")
    API_DOCS = flag(True, "the page `/docs`, see [api-document.md](api-document.md)")
    SECURITY_CHECK = flag(
        True, "`GET /security` runs the checks of `doctor`, see [dashboard.md](dashboard.md)"
    )
    MAX_CLIENT_BODY_SIZE = whole(_MEGABYTE, "JSON bodies of clients", least=1, unit="bytes")
    MAX_BODY_SIZE = whole(20 * _MEGABYTE, "JSON bodies of the master key", least=1, unit="bytes")
    MAX_UPLOAD_SIZE = whole(20 * _MEGABYTE, "uploaded files", least=1, unit="bytes")
    # Two of the largest objects (backend.kernel.limits.result_memory): a page of an export has at
    # least 1.
    MAX_RESPONSE_SIZE = whole(
        64 * _MEGABYTE,
        "objects that one request reads, as JSON, see [rest.md](rest.md#large-results)",
        least=32 * _MEGABYTE,
        unit="characters",
    )
    HTTP_MAX_CONNECTIONS = whole(
        4096, "open connections of a web process, see [server.md](server.md)", least=1
    )
    HTTP_MAX_PER_ADDRESS = whole(
        512, "open connections of one client address to a web process", least=1
    )
    HTTP_HEAD_TIMEOUT = whole(10, "time for the headers of a request", least=1, unit="s")
    HTTP_IDLE_TIMEOUT = whole(75, "time between two requests", least=1, unit="s")
    HTTP_MIN_RATE = whole(
        1024, "average rate of a body, and of reading a response; 0 is none", unit="bytes a second"
    )


class Site(Area):
    """Addresses of the admin and the front page."""

    title = "The HTTP face"

    ENVIRONMENT = Setting(
        "",
        "the badge on the admin's pages",
        _badge,
        derived=lambda: "local" if is_local(Http.PUBLIC_URL.read()) else "production",
        shown="`local` at localhost, else `production`",
    )
    ALLOWED_HOSTS = words(
        "hosts of the admin and the front page",
        derived=lambda: dict.fromkeys((public_host(), "localhost", "127.0.0.1", "[::1]")),
        shown="host of `PUBLIC_URL`, localhost",
    )


class Metrics(Area):
    """Who may read ``/metrics``: the owner of a token, or networks."""

    title = "The HTTP face"

    METRICS = flag(
        False, "`/metrics` for Prometheus, see [metrics.md](metrics.md); on needs one of the next"
    )
    METRICS_TOKEN = text(
        f"lets clients read them: `Authorization: Bearer …`, {_SHORTEST_TOKEN} characters or more",
        secret=True,
    )
    METRICS_NETWORKS = networks(
        "networks whose clients may read them without a token: `10.0.0.0/8,127.0.0.1`"
    )

    @classmethod
    def check(cls, values: dict[str, Any]) -> None:
        """Refuse a short token, and metrics that are open to all or to none."""
        token, allowed = values["METRICS_TOKEN"], values["METRICS_NETWORKS"]
        if token and len(token) < _SHORTEST_TOKEN:
            raise BadSetting(f"METRICS_TOKEN must have {_SHORTEST_TOKEN} characters or more.")
        if values["METRICS"] and not token and not allowed:
            raise BadSetting("METRICS needs METRICS_TOKEN or METRICS_NETWORKS: who may read them?")
        if any(ip_network(network, strict=False).prefixlen == 0 for network in allowed):
            raise BadSetting("METRICS_NETWORKS must not be everybody: METRICS_TOKEN is for that.")
