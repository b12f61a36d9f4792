"""Requests about files that are carried out once, and the removal of a file."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest

from backend.http import idempotency
from backend.http.call import Call
from backend.http.idempotency import Keeping
from backend.http.permissions import Requires, check_route
from backend.http.renderers import Answer
from backend.http.views import read_call
from backend.kernel.principal import Principal
from backend.settings.conf import service_settings
from objects.files import service


def once(
    request: HttpRequest, call: Call, carry_out: Callable[[], Answer], content: str = ""
) -> Answer:
    """Carry it out, or answer as before if the request is sent again; ``content`` says what with.

    Storage takes no part in transactions.
    """
    request_id = idempotency.request_id(request.META)
    if request_id is None:
        return carry_out()
    path = request.path_info[len(service_settings.MOUNT_PATH) :]
    return idempotency.answer(
        request_id, call, path, Keeping.AFTERWARDS, lambda _: carry_out(), content=content
    )


def removed(request: HttpRequest, name: str) -> Answer:
    """Remove the file of this name for the request's caller. Raises what ``service.delete`` raises,
    and what is wrong with the request."""
    call = read_call(request)
    return once(request, call, lambda: deleted(call.principal, name))


def deleted(principal: Principal, name: str) -> Answer:
    """Remove the file of this name for a caller with a key. Raises what ``service.delete`` does."""
    check_route(Requires.CLIENT_KEY, principal)
    service.delete(principal, name)
    return Answer({})
