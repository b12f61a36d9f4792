"""Rate limits over HTTP: every request passes here, and every item of a batch.

A view calls ``admitted`` as soon as it has a request's credentials (``enter`` where it needs none),
and ``stamped`` on the response. ``read_call`` and ``ServiceView.dispatch`` do. A view that
overrides ``dispatch`` without ``read_call`` must call both. Requests that can't be decoded (no
JSON, too large) cost time, so they are counted by approximate rules (``enter_unreadable``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.http import HttpRequest, HttpResponse

from backend.http.authentication import CLIENT_KEYS, Credentials, authenticate, is_key
from backend.http.context import client_address
from backend.kernel.errors import InvalidMaintenanceKey, ServiceError
from backend.kernel.limits import result_memory
from backend.kernel.limits.statements import slow_statements
from backend.kernel.networks import client_network
from backend.kernel.principal import Authority, Principal
from backend.kernel.request_context import CLIENT_CONNECTION, Budget, ClientConnection, current
from backend.limits import FREE, Request, decide, rules_for
from backend.logs.setup import get_logger
from backend.settings.conf import service_settings


def key_name(credentials: Credentials) -> str:
    """The name of the key that proved a principal; empty for the application id alone."""
    if credentials.maintenance_key is not None:
        return "maintenance_key"
    if credentials.master_key is not None:
        return "master_key"
    names = [name for name in CLIENT_KEYS if getattr(credentials, name) is not None]
    if len(names) > 1:
        # One of them is right. Which one is counted mustn't depend on what stands beside it.
        names = [name for name in names if is_key(getattr(credentials, name), CLIENT_KEYS[name])]
    name = next(iter(names), "")
    return "client_key" if name == "windows_key" else name


def kind_of_key(principal: Principal, key: str) -> str:
    """The kind of a key for people: "master", "read-only master", "rest key", "application"."""
    is_client = principal.authority is Authority.CLIENT
    return key.replace("_", " ") if is_client else principal.authority.value


def admitted(
    request: HttpRequest,
    credentials: Credentials,
    method: str,
    *parameters: Mapping[str, Any],
    with_session: bool = True,
    proven: Principal | None = None,
) -> tuple[Principal, str, str]:
    """The caller, the caller's address and the name of the key, counted. The address becomes that
    of the current request.

    ``proven`` is what ``authentication.check_keys`` has returned for the credentials. Raises what
    ``authenticate`` and ``enter`` raise, and ``TooManySlowRequests``. Who guesses keys or tokens is
    counted too.
    """
    now = current()
    now.method = method
    now.address = address = client_address(request.META)
    network = client_network(address)
    if credentials.master_key is None and credentials.maintenance_key is None:
        slow_statements().check(network)
    try:
        principal = authenticate(credentials, address, with_session=with_session, proven=proven)
    except ServiceError as error:
        if isinstance(error, InvalidMaintenanceKey):
            get_logger("http").warning("maintenance key refused", address=address)
        enter(request, method, address, None, "", *parameters)
        raise
    key = key_name(credentials)
    now.user_id, now.session_id = principal.user_id, principal.session_id
    now.key = kind_of_key(principal, key)
    enter(request, method, address, principal, key, *parameters)
    if principal.is_master:
        now.budget = None
    else:
        connection = request.META.get(CLIENT_CONNECTION) or ClientConnection()
        now.budget = Budget(network, client=connection)
    now.results = result_memory.of_request(network)
    return principal, address, key


def enter(
    request: HttpRequest,
    method: str,
    address: str,
    principal: Principal | None,
    key: str,
    *parameters: Mapping[str, Any],
    stands_for: str | None = None,
) -> None:
    """Count a request, or raise ``TooManyRequests``. ``method`` is what is done in the end,
    ``principal`` None if the credentials are refused. ``stands_for`` is the path of a route that
    does the same: a page's form is counted as that route too."""
    path = request.path_info[len(service_settings.MOUNT_PATH) :]
    rules = rules_for(path, method)
    if stands_for is not None:
        rules = tuple(dict.fromkeys((*rules, *rules_for(stands_for, method))))
    if rules:
        _enter(request, Request(rules, path, address, principal, key, parameters))


def enter_unreadable(request: HttpRequest) -> None:
    """Count a request whose body can't be read, by address. Raises ``TooManyRequests``."""
    path = request.path_info[len(service_settings.MOUNT_PATH) :]
    rules = tuple(rule for rule in rules_for(path, request.method or "") if rule.approximate)
    if rules:
        _enter(request, Request(rules, path, client_address(request.META), None))


def _enter(request: HttpRequest, limited: Request) -> None:
    (verdict,) = decide([limited])
    request.quota = verdict.quota  # type: ignore[attr-defined]
    if verdict.refusal is not None:
        raise verdict.refusal


def enter_items(items: Sequence[Request]) -> list[ServiceError | None]:
    """Count the items of a batch in their order; the refusal of each that doesn't pass."""
    if not any(item.rules for item in items):
        return [None] * len(items)
    return [verdict.refusal for verdict in decide(items)]


def enter_together(items: Sequence[Request]) -> None:
    """Count the items of a transaction, or none of them and raise the first refusal."""
    verdicts = decide(items, together=True) if any(item.rules for item in items) else [FREE]
    for verdict in verdicts:
        if verdict.refusal is not None:
            raise verdict.refusal


def stamped(response: HttpResponse, request: HttpRequest) -> HttpResponse:
    """The response with the ``RateLimit-…`` fields of a request that was counted."""
    quota = getattr(request, "quota", None)
    if quota is not None:
        for name, value in quota.headers().items():
            response.headers[name] = value
    return response
