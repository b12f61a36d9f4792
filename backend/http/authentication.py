"""Credentials to ``Principal`` (docs/rest.md).

Credentials come in headers (``X-Svc-…``, with ``X-Parse-…`` as an alias unless ``PARSE_HEADERS`` is
off). When none of these names an application, they come by HTTP Basic (``appId:masterKey`` or
``appId:javascript-key=KEY``), or else in the JSON body under the names that Parse's SDKs use.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import replace
from hmac import compare_digest
from time import time
from typing import Any, Final, NamedTuple

from backend.http.headers import header_names
from backend.http.ports import ports
from backend.kernel.errors import (
    InvalidApplicationId,
    InvalidClientKey,
    InvalidJSON,
    InvalidMaintenanceKey,
    InvalidMasterKey,
)
from backend.kernel.networks import is_in_networks
from backend.kernel.principal import (
    APPLICATION,
    CLIENT,
    MAINTENANCE,
    MASTER,
    READ_ONLY_MASTER,
    Authority,
    Principal,
)
from backend.settings.conf import service_settings

# What SDKs call credentials in the body.
_BODY_KEYS = {
    "_ApplicationId": "application_id",
    "_MasterKey": "master_key",
    "_MaintenanceKey": "maintenance_key",
    "_RestAPIKey": "rest_key",
    "_JavaScriptKey": "javascript_key",
    "_ClientKey": "client_key",
    "_SessionToken": "session_token",
    "_InstallationId": "installation_id",
}
# Other keys of SDKs in the body, which are never fields of an object.
_BODY_REMARKS = (
    "_method",
    "_ClientVersion",
    "_RevocableSession",
    "_noBody",
    "_ContentType",
)
_NAMES_IN_BODIES = frozenset((*_BODY_KEYS, *_BODY_REMARKS))


class Credentials(NamedTuple):
    """The application id, keys and session token of a request, not verified yet.

    A tuple, which is made faster than a frozen dataclass: each request has one.
    """

    application_id: str | None = None
    master_key: str | None = None
    rest_key: str | None = None
    javascript_key: str | None = None
    client_key: str | None = None
    session_token: str | None = None
    installation_id: str | None = None
    maintenance_key: str | None = None
    windows_key: str | None = None


CLIENT_KEYS: Final = {
    "rest_key": "REST_API_KEY",
    "javascript_key": "JAVASCRIPT_KEY",
    "client_key": "CLIENT_KEY",
    "windows_key": "CLIENT_KEY",
}
"""The settings that the keys of clients are compared with, by their fields in ``Credentials``."""

# In the order of the fields above.
_HEADERS = (
    "APPLICATION_ID",
    "MASTER_KEY",
    "REST_API_KEY",
    "JAVASCRIPT_KEY",
    "CLIENT_KEY",
    "SESSION_TOKEN",
    "INSTALLATION_ID",
    "MAINTENANCE_KEY",
    "WINDOWS_KEY",
)
_WITH_ALIAS = tuple(map(header_names, _HEADERS))
_WITHOUT_ALIAS = tuple((header, header) for header, _ in _WITH_ALIAS)


def of_request(meta: MutableMapping[str, Any]) -> Credentials:
    """Return ``from_headers``, parsed once for each request and carried by its environment."""
    credentials: Credentials | None = meta.get(_PARSED)
    if credentials is None:
        credentials = meta[_PARSED] = from_headers(meta)
    return credentials


_PARSED = "service.credentials"  # no header has this name: those begin with HTTP_


def from_headers(meta: Mapping[str, Any]) -> Credentials:
    """The credentials in a request's headers, or in its HTTP Basic authorisation.

    An empty header is a missing one.
    """
    names = _WITH_ALIAS if service_settings.PARSE_HEADERS else _WITHOUT_ALIAS
    credentials = Credentials._make(
        [meta.get(name) or meta.get(alias) or None for name, alias in names]
    )
    if credentials.application_id is None and "HTTP_AUTHORIZATION" in meta:
        return credentials._replace(**_basic(meta["HTTP_AUTHORIZATION"]))
    return credentials


def _basic(authorization: str) -> dict[str, str]:
    scheme, _, encoded = authorization.partition(" ")
    if scheme.lower() != "basic":
        return {}
    try:
        text = base64.b64decode(encoded.strip(), validate=True).decode()
    except ValueError:  # not base64, or not text in UTF-8
        return {}
    application_id, _, key = text.partition(":")
    values = {"application_id": application_id}
    if key.startswith("javascript-key="):
        values["javascript_key"] = key.removeprefix("javascript-key=")
    elif key:
        values["master_key"] = key
    return values


def take_from_body(body: dict[str, Any], headers: Credentials) -> Credentials:
    """Remove what SDKs put into a body beside its fields; return the request's credentials.

    Those in the body count only when no header names an application, and keys in headers then count
    in addition. An empty text is a missing one. Raises ``InvalidJSON``.
    """
    if body.keys().isdisjoint(_NAMES_IN_BODIES):
        return headers
    for name in _BODY_REMARKS:
        body.pop(name, None)
    values: dict[str, str] = {}
    for name, attribute in _BODY_KEYS.items():
        value = body.pop(name, None)
        if value is not None:
            if type(value) is not str:
                raise InvalidJSON(f"{name}: expected a string")
            if value:
                values[attribute] = value
    if headers.application_id is not None or not values:
        return headers
    return headers._replace(**values)


def authenticate(
    credentials: Credentials,
    address: str,
    *,
    with_session: bool = True,
    proven: Principal | None = None,
) -> Principal:
    """Return the principal that these credentials prove.

    ``address`` is the caller's IP address. Without ``with_session``, and with a master key, the
    session token isn't checked: the principal has it without a user.
    ``proven`` is what ``check_keys`` has returned for them, so that keys are compared once. Raises
    ``InvalidApplicationId``, ``InvalidMasterKey`` and ``InvalidMaintenanceKey`` (also when another
    key is valid), ``InvalidClientKey`` when a client key is given and none is valid,
    ``InvalidSessionToken``.
    Without any key the principal is the application alone, which only some routes accept.
    """
    principal = proven or check_keys(credentials, address)
    token, installation_id = credentials.session_token, credentials.installation_id
    if principal.is_master:
        if token is None and installation_id is None:
            return principal
        return replace(principal, installation_id=installation_id, session_token=token)
    if token is not None and with_session:
        session = ports.authenticate_session(token)
        return Principal(
            principal.authority,
            user_id=session.user_id,
            roles=session.roles,
            installation_id=installation_id,
            session_id=session.session_id,
            session_token=token,
        )
    if token is None and installation_id is None:
        return principal
    return Principal(principal.authority, installation_id=installation_id, session_token=token)


def proven_by_keys(credentials: Credentials, address: str) -> Principal | None:
    """As ``check_keys``, but None where it raises."""
    try:
        return check_keys(credentials, address)
    except (InvalidApplicationId, InvalidMasterKey, InvalidClientKey):
        return None


def check_keys(credentials: Credentials, address: str) -> Principal:
    """Return the principal that application id and keys prove, without the session.

    Raises what ``authenticate`` raises for them.
    """
    if not is_application(credentials.application_id):
        raise InvalidApplicationId
    if credentials.maintenance_key is not None:
        if not is_maintenance_key(credentials.maintenance_key, address):
            raise InvalidMaintenanceKey
        if credentials.installation_id is not None:
            return Principal(Authority.MAINTENANCE, installation_id=credentials.installation_id)
        return MAINTENANCE
    if credentials.master_key is not None:
        master = _master(credentials.master_key, address)
        if master is None:
            raise InvalidMasterKey
        return master
    # Always all that were sent, so that the time doesn't show which of them matches.
    matches = [
        is_key(key, setting)
        for name, setting in CLIENT_KEYS.items()
        if (key := getattr(credentials, name)) is not None
    ]
    if any(matches):
        return CLIENT
    if matches:
        raise InvalidClientKey
    return APPLICATION


def is_master_key(key: str, address: str) -> bool:
    """Whether this is a master key, read-only or not, that may be used from this address."""
    return _master(key, address) is not None


def is_maintenance_key(key: str, address: str) -> bool:
    """Whether this is the maintenance key, and it may be used from this address."""
    is_right = is_key(key, "MAINTENANCE_KEY")
    return is_right and _is_allowed(address, service_settings.MAINTENANCE_KEY_IPS)


def _master(key: str, address: str) -> Principal | None:
    is_master = is_key(key, "MASTER_KEY")
    is_read_only = is_key(key, "READ_ONLY_MASTER_KEY")
    if not (is_master or is_read_only) or not _is_allowed(address, service_settings.MASTER_KEY_IPS):
        return None
    return MASTER if is_master else READ_ONLY_MASTER


def is_application(app_id: str | None) -> bool:
    """Whether this is the id of the application that is served here."""
    return is_same_key(app_id, service_settings.APP_ID)


def is_key(candidate: str | None, name: str) -> bool:
    """Whether this is the key in the setting ``name``, or a former key that is still valid."""
    is_right = is_same_key(candidate, getattr(service_settings, name))
    former = service_settings.FORMER_KEYS
    if former:
        now = time()
        for key, until in former.get(name, ()):
            is_right |= is_same_key(candidate, key) and now < until
    return is_right


def is_same_key(key: str | None, expected: str) -> bool:
    """Whether a key is the expected one, in constant time. False if the setting is empty."""
    if key is None or not expected:
        return False
    return compare_digest(key.encode("utf-8", "replace"), expected.encode())


def _is_allowed(address: str, networks: Sequence[str]) -> bool:
    return networks == _ANY_ADDRESS or is_in_networks(address, tuple(networks))


_ANY_ADDRESS = ("0.0.0.0/0", "::/0")
