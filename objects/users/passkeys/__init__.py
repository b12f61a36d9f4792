"""Passkeys (WebAuthn): keys of authenticators that users sign up and in with.

``relying_party`` says who the service is to authenticators; ``challenges`` keeps what they are
asked to sign; ``ceremonies`` makes the options for clients and verifies what comes back; ``keys``
keeps the keys. A user who has passkeys has ``authData.passkey`` as well, whose id is the user's
own: taking that away takes all of them. Nothing here starts a session (``sign_in`` does).
"""

from __future__ import annotations

from typing import Final

PROVIDER: Final = "passkey"
"""The name of passkeys in ``authData`` and in ``createdWith``. No adapter may have it."""
