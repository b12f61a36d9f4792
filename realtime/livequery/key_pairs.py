"""The keys of a client of live queries: which it must send, and what they permit.

The application's id is always necessary. If keys are sent, one has to be right. The setting
``LIVE_QUERY_KEY_PAIRS`` names keys of which one must be sent; with ``WS_REQUIRE_KEY`` it may be any
key of the application. The master key reads everything only if the setting names it.
"""

from __future__ import annotations

from typing import Final

from backend.http.authentication import CLIENT_KEYS, Credentials, authenticate, is_key
from backend.kernel.errors import InvalidClientKey
from backend.kernel.principal import CLIENT, Authority, Principal
from backend.settings.conf import service_settings
from realtime.core.messages import Connect

_MASTER: Final = "masterKey"
_FIELDS: Final = {
    "javascriptKey": "javascript_key",
    "restAPIKey": "rest_key",
    "clientKey": "client_key",
    "windowsKey": "windows_key",
}
"""The fields of ``Credentials``, by the names of the keys in ``LIVE_QUERY_KEY_PAIRS``."""


def authenticate_client(message: Connect, address: str) -> Principal:
    """Return the principal of a ``connect`` message, without its session.

    It is a client, unless the message has a master key that ``LIVE_QUERY_KEY_PAIRS`` names.
    Raises ``InvalidApplicationId``, ``InvalidMasterKey`` and ``InvalidClientKey``.
    """
    credentials = Credentials(
        application_id=message.application_id,
        # SDKs send empty texts for keys that an app doesn't have.
        master_key=message.master_key or None,
        rest_key=message.rest_key or None,
        javascript_key=message.javascript_key or None,
        client_key=message.client_key or None,
        windows_key=message.windows_key or None,
    )
    principal = authenticate(credentials, address, with_session=False)
    pairs = service_settings.LIVE_QUERY_KEY_PAIRS
    if principal.is_master and _MASTER in pairs:
        return principal
    if pairs:
        # Compares all of them, so that the time doesn't show which of them matches.
        matches = [
            is_key(getattr(credentials, field), CLIENT_KEYS[field])
            for name, field in _FIELDS.items()
            if name in pairs
        ]
        if not any(matches):
            raise InvalidClientKey
    elif service_settings.WS_REQUIRE_KEY and principal.authority is Authority.APPLICATION:
        raise InvalidClientKey
    return CLIENT
