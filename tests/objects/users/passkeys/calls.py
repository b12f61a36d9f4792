"""Calls of the functions of passkeys."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.utils import timezone

from tests.objects.users.passkeys.authenticator import Authenticator
from tests.rest import APPLICATION, Api, Reply

ANYBODY = Api(APPLICATION)


def result(reply: Reply) -> Any:
    assert reply.status == 200, reply.json
    return reply.json["result"]


def register_init(username: str, api: Api = ANYBODY) -> dict[str, Any]:
    """The options for a new passkey."""
    results: dict[str, Any] = result(api.post("/functions/registerInit", {"username": username}))
    return results


def complete(
    options: dict[str, Any], signed: dict[str, Any], api: Api = ANYBODY, **more: Any
) -> Reply:
    return api.post(
        "/functions/registerComplete",
        {
            "signedChallenge": signed,
            "temporaryAuthenticationToken": options["temporaryAuthenticationToken"],
            **more,
        },
    )


def register(
    username: str, authenticator: Authenticator | None = None, api: Api = ANYBODY
) -> tuple[Authenticator, dict[str, Any]]:
    """A new user with a passkey: the authenticator that has it, and the answer."""
    authenticator = authenticator or Authenticator()
    options = register_init(username, api)
    return authenticator, result(complete(options, authenticator.create(options), api))


def log_in_init(api: Api = ANYBODY, **value: Any) -> dict[str, Any]:
    results: dict[str, Any] = result(api.post("/functions/passkeyLoginInit", value))
    return results


def log_in_complete(
    options: dict[str, Any], assertion: dict[str, Any], api: Api = ANYBODY, **more: Any
) -> Reply:
    return api.post(
        "/functions/passkeyLoginComplete",
        {
            "assertion": assertion,
            "temporaryAuthenticationToken": options["temporaryAuthenticationToken"],
            **more,
        },
    )


def log_in(authenticator: Authenticator, api: Api = ANYBODY, **value: Any) -> Reply:
    """The answer to a log-in with this passkey."""
    options = log_in_init(api, **value)
    return log_in_complete(options, authenticator.get(options), api)


@contextmanager
def under_maintenance() -> Iterator[None]:
    """The switch inside of the test's own transaction."""
    from objects.definitions.models import Maintenance

    Maintenance.objects.create(id=1, message="Wait.", since=timezone.now(), chain_paused=False)
    yield
    Maintenance.objects.all().delete()
