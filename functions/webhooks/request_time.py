"""The time that the webhooks of one request may take.

Each webhook of a request to the API may take ``WEBHOOK_TIMEOUT`` seconds, all of them together
``WEBHOOK_REQUEST_TIMEOUT``, and those after an operation ``WEBHOOK_AFTER_TIMEOUT``. A batch is one
request. Jobs and other work outside of a request have no common limit.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic

from backend.kernel.outgoing import Unreachable
from backend.kernel.request_context import WebhookUse, current
from backend.settings.conf import service_settings


def is_in_request() -> bool:
    """Whether a client of the API waits for what is done here."""
    return current().results is not None


def use() -> WebhookUse:
    """Return what the webhooks of the current request have taken so far."""
    now = current()
    if now.webhooks is None:
        now.webhooks = WebhookUse()
    return now.webhooks


@contextmanager
def counted() -> Iterator[float]:
    """Count the time of a webhook that the request depends on, and yield the seconds that it has.

    Raises ``Unreachable`` if the webhooks of the request have used up their time.
    """
    if not is_in_request():
        yield service_settings.WEBHOOK_TIMEOUT
        return
    request = use()
    left = service_settings.WEBHOOK_REQUEST_TIMEOUT - request.seconds
    if left <= 0:
        limit = service_settings.WEBHOOK_REQUEST_TIMEOUT
        raise Unreachable(f"the webhooks of this request took longer than {limit} seconds")
    begin = monotonic()
    try:
        yield min(service_settings.WEBHOOK_TIMEOUT, left)
    finally:
        request.seconds += monotonic() - begin


def left_afterwards() -> float:
    """Return the seconds that are left for webhooks after the operations of the request."""
    request = use()
    return min(
        service_settings.WEBHOOK_TIMEOUT,
        service_settings.WEBHOOK_AFTER_TIMEOUT - request.seconds_after,
        service_settings.WEBHOOK_REQUEST_TIMEOUT - request.seconds,
    )


@contextmanager
def counted_afterwards() -> Iterator[None]:
    """Count the time of a webhook after an operation."""
    request = use()
    begin = monotonic()
    try:
        yield
    finally:
        seconds = monotonic() - begin
        request.seconds += seconds
        request.seconds_after += seconds
