"""Failures of the deployment's code: logged in full, and turned into errors that callers get."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from backend.kernel.errors import ScriptFailed, ServiceError
from backend.kernel.interruptions import is_from_outside
from backend.kernel.request_context import current
from backend.kernel.texts.encoding import presentable
from backend.logs.setup import get_logger

_CODES: Final = range(-(2**31), 2**31)
_STATUSES: Final = range(400, 600)

log = get_logger("functions")

_T = TypeVar("_T")


def contained(what: str, body: Callable[[], _T]) -> _T:
    """Run code of the deployment, which may raise anything. Raises ``ServiceError`` only.

    ``what`` names the code in the log and in errors, such as "function pay".
    """
    try:
        return body()
    except ServiceError as error:
        shown = presentable_error(error)
        if shown is error:
            raise
        raise shown from error
    except BaseException as error:
        if is_from_outside(error):
            raise
        log.error("code of the deployment failed", what=what, exc_info=error)
        text = f"The {what} failed. Request id: {current().request_id}"
        raise ScriptFailed(presentable(text)) from error


def presentable_error(error: ServiceError) -> ServiceError:
    """Return an error whose code, status and message can be sent to clients.

    It is the same error wherever this is possible.
    """
    code, status, message = (_attribute(error, name) for name in ("code", "status", "message"))
    right_code = _number(code, _CODES, ScriptFailed.code)
    right_status = _number(status, _STATUSES, ScriptFailed.status)
    text = presentable(error if message is None else message)
    if code is right_code and status is right_status and type(message) is str and message == text:
        return error
    try:
        error.code, error.status, error.message = right_code, right_status, text
    except BaseException as refusal:  # a class with properties or slots
        if is_from_outside(refusal):
            raise
        return ScriptFailed(text, code=right_code, status=right_status)
    return error


def _number(value: Any, allowed: range, default: int) -> int:
    """Return a number that is allowed. It is the same object if it is of the type ``int``."""
    number = int.__int__(value) if isinstance(value, int) else default
    return number if number in allowed else default


def _attribute(error: ServiceError, name: str) -> Any:
    try:
        return getattr(error, name)
    except BaseException as failure:  # of a property
        if is_from_outside(failure):
            raise
        return None
