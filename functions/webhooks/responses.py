"""What a webhook answers: ``{"success": value}``, ``{"error": text}``, or an error with a code,
``{"error": {"code": number, "error": text}}``.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from backend.kernel.errors import ScriptFailed
from backend.kernel.json_types import Json
from functions.webhooks.client import Answer

_LONGEST_TEXT: Final = 1000  # characters
_OUR_OWN: Final = 1  # the code of our own faults, which nobody else can claim


class BadAnswer(Exception):
    """An answer that isn't one. The text says why, for people."""


class Refusal(Exception):
    """What a webhook answers in place of a success."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def success_of(answer: Answer) -> Json:
    """What a webhook that was asked has answered. Raises ``BadAnswer``, ``Refusal``."""
    said = _read(answer)
    if not isinstance(said, dict) or "success" not in said:
        raise BadAnswer('its answer has no "success" and no "error"')
    success: Json = said["success"]
    return success


def check_received(answer: Answer) -> None:
    """Raise ``BadAnswer`` or ``Refusal`` if a webhook that was told something hasn't taken it."""
    _read(answer)


def _read(answer: Answer) -> Any:
    try:
        said = msgspec.json.decode(answer.body)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        said = None
    if isinstance(said, dict) and said.get("error"):
        raise _refusal(said["error"])
    if not 200 <= answer.status < 300:
        raise BadAnswer(f"it answered with status {answer.status}")
    return said


def _refusal(error: object) -> Refusal:
    code: object = ScriptFailed.code
    text = error
    if isinstance(error, dict):
        code = error.get("code")
        text = error.get("error") or error.get("message")
    if type(code) is not int or code == _OUR_OWN or abs(code) >= 2**31:
        code = ScriptFailed.code
    if not isinstance(text, str) or not text:
        text = "The webhook gave no reason."
    return Refusal(code, text[:_LONGEST_TEXT])
