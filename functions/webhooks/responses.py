"""Parser of webhook responses.

A response is ``{"success": value}``, ``{"error": text}``, or an error with a code,
``{"error": {"code": number, "error": text}}``. A response of status 2xx that has neither, an empty
one included, is a success without a value, as in Parse.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from backend.kernel.errors import ScriptFailed, ServiceError
from backend.kernel.json_types import Json
from backend.kernel.outgoing import Response
from functions.runtime.values import NO_RESULT, NoResult

_LONGEST_TEXT: Final = 1000  # characters
_NOT_JSON: Final = object()
_INTERNAL_ERROR_CODE: Final = 1  # the code of internal errors, reserved for this service


class BadResponse(Exception):
    """An invalid response. The message gives the reason."""


class Refusal(Exception):
    """An error that a webhook returned, with its code and message."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message

    def error(self) -> ServiceError:
        """Return the error for the client."""
        return ServiceError(self.message, code=self.code, status=404 if self.code == 101 else 400)


def success_of(received: Response) -> Json | NoResult:
    """Return the value of a response, or ``NO_RESULT``. Raises ``BadResponse``, ``Refusal``."""
    response = _read(received)
    if response is _NOT_JSON:
        raise BadResponse("its response is not JSON")
    if not isinstance(response, dict) or "success" not in response:
        return NO_RESULT
    success: Json = response["success"]
    return success


def check_received(received: Response) -> None:
    """Raise ``BadResponse`` or ``Refusal`` unless the webhook accepted a notification."""
    _read(received)


def _read(received: Response) -> Any:
    response: Any = None
    if received.body.strip():
        try:
            response = msgspec.json.decode(received.body)
        except (msgspec.DecodeError, RecursionError, UnicodeError):
            response = _NOT_JSON
    if isinstance(response, dict) and response.get("error"):
        raise _refusal(response["error"])
    if not 200 <= received.status < 300:
        raise BadResponse(f"it responded with status {received.status}")
    return response


def _refusal(error: object) -> Refusal:
    code: object = ScriptFailed.code
    text = error
    if isinstance(error, dict):
        code = error.get("code")
        text = error.get("error") or error.get("message")
    if type(code) is not int or code == _INTERNAL_ERROR_CODE or abs(code) >= 2**31:
        code = ScriptFailed.code
    if not isinstance(text, str) or not text:
        text = "The webhook gave no reason."
    return Refusal(code, text[:_LONGEST_TEXT])
