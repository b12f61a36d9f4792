"""Who the service is to authenticators: its domain, its name, and where its pages are."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

from backend.settings.conf import service_settings


@dataclass(frozen=True, slots=True)
class RelyingParty:
    """A domain that passkeys belong to, what authenticators call it, and its pages' origins."""

    domain: str
    name: str
    origins: tuple[str, ...]

    @property
    def has_name(self) -> bool:
        """Whether its domain is a name: passkeys don't belong to addresses."""
        return not _is_address(self.domain)


def of_apps() -> RelyingParty:
    """Return the relying party of the apps' users, by the settings."""
    return RelyingParty(domain(), name(), tuple(origins()))


def of_site(host: str) -> RelyingParty:
    """Return the relying party of the admin at this host, which may have a port.

    Both schemes are among the origins: browsers have passkeys over plain HTTP at localhost alone.
    """
    hostname = urlsplit(f"//{host}").hostname or ""
    return RelyingParty(hostname, name(), (f"https://{host}", f"http://{host}"))


def domain() -> str:
    """The relying party's id: passkeys belong to it and are worth nothing elsewhere."""
    return service_settings.WEBAUTHN_RP_ID or _public_host()


def name() -> str:
    """What authenticators show."""
    return service_settings.WEBAUTHN_RP_NAME or service_settings.APP_NAME or domain()


def origins() -> list[str]:
    """Where a client may have asked its authenticator, as browsers spell it."""
    return list(service_settings.WEBAUTHN_ORIGINS) or [_public_origin()]


def _public_host() -> str:
    return urlsplit(service_settings.PUBLIC_URL).hostname or "localhost"


def _public_origin() -> str:
    parts = urlsplit(service_settings.PUBLIC_URL)
    port = parts.port
    if (parts.scheme, port) in (("https", 443), ("http", 80)):
        port = None
    host = _public_host()
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}" + (f":{port}" if port else "")


def problems() -> list[str]:
    """Why no browser lets pages ask for passkeys, if that is so."""
    here = domain()
    if _is_address(here):
        return [f"{here} is an address, and they belong to names"]
    problems_found = []
    for origin in origins():
        parts = urlsplit(origin)
        host = parts.hostname or ""
        if parts.scheme not in ("http", "https"):
            continue  # an app proves its domain otherwise
        if host != here and not host.endswith(f".{here}"):
            problems_found.append(f"{origin} isn't of the domain {here}")
        elif parts.scheme == "http" and host != "localhost" and not host.endswith(".localhost"):
            problems_found.append(f"{origin} isn't https")
    return problems_found


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
