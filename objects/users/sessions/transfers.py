"""Sessions of another server go on with the tokens that their bearers have.

Imports alone transfer sessions, with the rights of the owner, so the gate isn't called.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from objects.database.statements import fetch
from objects.users.sessions.tokens import token_hash

_STORE: Final = """
UPDATE objects_session s SET token_hash = decode(v.token_hash, 'hex')
FROM unnest(%(ids)s::text[], %(hashes)s::text[]) AS v(session_id, token_hash)
WHERE s.object_id = v.session_id
"""


def store_tokens(tokens: Mapping[str, str]) -> None:
    """Store the tokens of transferred sessions, by session id."""
    hashes = [token_hash(token) for token in tokens.values()]
    fetch(_STORE, {"ids": list(tokens), "hashes": hashes}, prepare=False)
