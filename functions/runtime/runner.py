"""Execution of a deployment's functions, triggers and jobs.

The caller gets a result or a ``ServiceError``: the error that the code raised, ``Timeout`` (124)
after the time limit, or ``ScriptFailed`` (141) with a neutral message and the request's id for any
other exception, which is logged in full.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, TypeVar

from django.db import DEFAULT_DB_ALIAS, connections

from backend.http.bodies.parsers import decoded_parameters
from backend.kernel.errors import ScriptFailed, Timeout
from backend.kernel.principal import Principal
from backend.kernel.request_context import current
from backend.limits import Request as Limited
from backend.limits import decide
from backend.logs.failures import contained
from backend.logs.setup import get_logger
from backend.settings.conf import service_settings
from backend.settings.rate_limits import METHODS, Rule
from functions.runtime import registry
from functions.runtime.deadlines import TimeIsUp, time_limit
from functions.runtime.registry import Function
from functions.runtime.request import FunctionRequest
from functions.runtime.requirements import RateLimit
from functions.runtime.values import NO_RESULT, decode, encode
from objects.database.transactions import all_or_nothing

MAX_DEPTH = 20
"""How many functions and triggers may be under way one inside of the other."""
_MOST_NAMED = 8
"""How many of the functions and triggers of a request its log line names."""

log = get_logger("functions")

_T = TypeVar("_T")


def call(
    name: str,
    params: Mapping[str, Any],
    principal: Principal,
    key: str = "",
    query: Mapping[str, Any] = MappingProxyType({}),
) -> Any:
    """Call a function for a client with wire parameters and return its result as wire JSON.

    ``query`` are parameters of the query string, which go before others. Webhooks get them as
    texts, as in Parse; for functions in Python, text that is JSON is decoded. Returns ``NO_RESULT``
    if a webhook has sent none.

    Checks that the function exists, then its parameters, then the rights of the caller. Raises
    ``ScriptFailed``, ``ValidationFailed``, ``RateLimited``, and the errors of the function.
    """
    function = registry.find_function(name)
    if function is None:
        raise registry.unknown_function(name)
    texts = query if function.is_webhook else decoded_parameters(query)
    return _called(function, decode({**params, **texts}), principal, key, is_outside=True)


def call_python(name: str, params: Mapping[str, Any], principal: Principal) -> Any:
    """Call a function from other server code with Python values and return its result."""
    function = registry.find_function(name)
    if function is None:
        raise registry.unknown_function(name)
    result = _called(function, dict(params), principal, "", is_outside=False)
    return None if result is NO_RESULT else result


def _called(
    function: Function, params: dict[str, Any], principal: Principal, key: str, *, is_outside: bool
) -> Any:
    what = f"function {function.name}"
    # Types of parameters may be classes of the deployment, whose methods are called.
    arguments = contained(what, lambda: function.parameters.read(params))
    request = FunctionRequest(function.name, principal, params)
    function.requirements.check(principal, lambda: request.user or {})
    limit = function.requirements.rate_limit
    if limit is not None and is_outside:
        _count(function.name, limit, principal, key)

    def body() -> Any:
        result = function.body(request, **arguments)
        return encode(result) if is_outside and result is not NO_RESULT else result

    seconds = function.time_limit
    return run(
        what,
        partial(all_or_nothing, body) if function.in_transaction else body,
        time_limit_of(seconds),
    )


def time_limit_of(seconds: float | None) -> float:
    """Return the time limit of a registration, or the default of the settings."""
    return service_settings.FUNCTION_TIME_LIMIT if seconds is None else seconds


def run(what: str, body: Callable[[], _T], seconds: float) -> _T:
    """Run code of the deployment within a time limit. Raises ``ServiceError`` and nothing else."""
    now = current()
    if now.depth >= MAX_DEPTH:
        raise ScriptFailed(
            f"Functions and triggers call each other more than {MAX_DEPTH} levels deep: {what}"
        )
    # Inside of another call its limit holds.
    limit = seconds if now.depth == 0 else 0
    now.depth += 1
    if len(now.ran) < _MOST_NAMED:
        now.ran = (*now.ran, what)
    try:
        with time_limit(limit, connections[DEFAULT_DB_ALIAS]):
            return contained(what, body)
    except TimeIsUp:
        if now.depth > 1:
            raise
        log.error("took too long", what=what, seconds=seconds)
        raise Timeout(f"The {what} took longer than {seconds:g} seconds.") from None
    finally:
        now.depth -= 1


def _count(name: str, limit: RateLimit, principal: Principal, key: str) -> None:
    path = f"/functions/{name}"
    rule = Rule(
        name=f"function {name}",
        paths=(path,),
        methods=frozenset(METHODS),
        count=limit.count,
        window=round(limit.window * 1000),
        per=(limit.per,),
        include_master=limit.include_master,
        message=limit.message,
    )
    (verdict,) = decide([Limited((rule,), path, current().address, principal, key)])
    if verdict.refusal is not None:
        raise verdict.refusal
