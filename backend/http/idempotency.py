"""Requests with an id of their own (``X-Svc-Request-Id``), which may be sent again.

The first answer to such a request is kept, and given again to the same request with the same id
(``docs/idempotency.md``). Nothing is looked at or stored for requests without the header.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import Enum
from functools import lru_cache
from typing import Any, Final

from backend.http.call import Call
from backend.http.headers import header_names
from backend.http.ports import ports
from backend.http.renderers import Answer, encode_json
from backend.kernel.errors import (
    InternalError,
    InvalidValue,
    RateLimited,
    ServiceError,
    ServiceUnavailable,
    Timeout,
    TransactionConflict,
    UnderMaintenance,
)
from backend.kernel.idempotency import IdentifiedRequest, StoredResponse
from backend.kernel.texts.encoding import json_encoder
from backend.settings.conf import service_settings

REPLAYED = "Idempotent-Replayed"
"""The header that says of an answer that it is a former one."""

_HEADER, _ALIAS = header_names("REQUEST_ID")
_ONE_ID_FOR_ALL: Final = re.compile(r"(?:i|osx|apple-tv|apple-watch)\d")
_WRITES = frozenset({"POST", "PUT", "DELETE"})
_WELL_FORMED = re.compile(r"[!-~]{1,128}", re.ASCII).fullmatch
_ordered: Final = json_encoder(order="deterministic")
# Errors after which a client may retry.
_PASSING = (
    *(InternalError, RateLimited, ServiceUnavailable, Timeout, TransactionConflict),
    UnderMaintenance,
)


class Keeping(Enum):
    """How the answer of a route is kept."""

    IN_TRANSACTION = "with the work, in one transaction"
    AFTERWARDS = "when the work is done, failures included: the work can't be undone"
    NOT = "not at all: the request is carried out each time"


def request_id(meta: Mapping[str, Any]) -> str | None:
    """The id in a request's header, as it is; None without one.

    The ids of the SDK for Apple's systems are no ids of requests: it makes one for each run of an
    app and sends it with every request.
    """
    if _HEADER in meta:
        return str(meta[_HEADER]) or None
    if _ALIAS in meta and service_settings.PARSE_HEADERS:
        if _ONE_ID_FOR_ALL.match(meta.get("HTTP_X_PARSE_CLIENT_VERSION") or ""):
            return None
        return str(meta[_ALIAS]) or None
    return None


def answer(
    request_id: str,
    call: Call,
    path: str,
    keeping: Keeping,
    carry_out: Callable[[Call], Answer],
    *,
    content: str = "",
) -> Answer:
    """Return the stored answer of a request with this id, or carry the request out.

    ``path`` is below the mount path. ``content`` stands for what the request brings apart from its
    body. Raises ``InvalidValue`` for an id that isn't one, ``DuplicateRequest``, and what
    ``carry_out`` raises.
    """
    if keeping is Keeping.NOT or call.method not in _WRITES or not _is_asked_for(path):
        return carry_out(call)
    identified = _identify(request_id, call, path, content)
    if keeping is Keeping.IN_TRANSACTION:
        # A transaction may have to be repeated, so each time there is a body to be used up.
        answered, is_former = ports.idempotency.in_transaction(
            identified,
            lambda: _answered(
                carry_out(replace(call, body=dict(call.body), in_transaction=True)),
            ),
        )
    else:
        answered, is_former = ports.idempotency.afterwards(
            identified, lambda: _answered_or_failed(lambda: carry_out(call))
        )
    headers = {**answered.headers, REPLAYED: "true"} if is_former else answered.headers
    return Answer(answered.body, answered.status, headers)


def _is_asked_for(path: str) -> bool:
    if service_settings.IDEMPOTENCY_MODE == "off":
        return False
    bare = path.strip("/")
    return any(_compiled(pattern).match(bare) for pattern in service_settings.IDEMPOTENCY_PATHS)


@lru_cache(maxsize=64)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _identify(request_id: str, call: Call, path: str, content: str) -> IdentifiedRequest:
    if not _WELL_FORMED(request_id):
        raise InvalidValue("X-Svc-Request-Id: expected 1 to 128 printable ASCII characters")
    caller = call.principal
    who = (caller.authority.value, caller.user_id or "", caller.installation_id or "")
    contents = [call.method, path.rstrip("/"), call.params, call.body, content]
    return ports.idempotency.identify(who, request_id, _ordered(contents))


def _answered(answer: Answer) -> StoredResponse:
    body = answer.body if type(answer.body) is bytes else encode_json(answer.body)
    return StoredResponse(answer.status, answer.headers, body)


def _answered_or_failed(carry_out: Callable[[], Answer]) -> StoredResponse:
    try:
        return _answered(carry_out())
    except _PASSING:
        raise
    except ServiceError as error:
        headers = dict(getattr(error, "headers", {}))
        return StoredResponse(error.status, headers, encode_json(error.body()))
