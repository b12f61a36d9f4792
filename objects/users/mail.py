"""Tokens that are mailed to users: to verify an address, to set a new password."""

from __future__ import annotations

from objects.database import fetch


def email_given(user_id: str, email: object, *, new: bool) -> bool:
    """A user has this address from now on; whether a new user has to verify it before a session."""
    return False


def forget_tokens(user_id: str) -> None:
    """Make every token worthless that was mailed to the user."""
    fetch("DELETE FROM objects_mail_token WHERE user_id = %s", (user_id,), prepare=True)
