"""Searches for sessions by their tokens.

A token isn't a stored value, so a constraint on ``sessionToken`` is answered by its hash. Results
show a token only to callers who have sent it.
"""

from __future__ import annotations

from dataclasses import replace

from backend.kernel.errors import InvalidSessionToken
from backend.kernel.json_types import Wire
from backend.kernel.principal import Principal
from objects import service
from objects.access.protection import hidden_fields
from objects.core.names import SESSION, FieldName
from objects.core.query.tree import (
    AllOf,
    AnyOf,
    Equals,
    FindOptions,
    Nothing,
    OneOfIds,
    Query,
)
from objects.definitions import registry
from objects.service import Found
from objects.users.sessions import tokens

_TOKEN = FieldName("sessionToken")


def find(principal: Principal, options: FindOptions) -> Found:
    """Return sessions as ``service.find``; ``where`` may name tokens."""
    sent: dict[str, str] = {}
    where = _by_id(options.where, sent)
    results = service.find(principal, SESSION, replace(options, where=where))
    if principal.session_id is not None and principal.session_token is not None:
        sent[principal.session_id] = principal.session_token
    if not sent or not _shows_token(principal, options):
        return results
    sessions = [with_token(session, sent) for session in results.objects()]
    return Found(sessions, results.count, results.class_name)


def with_token(session: Wire, sent: dict[str, str]) -> Wire:
    """Return the session with its token, if the caller has sent it (``sent``: by session id)."""
    token = sent.get(str(session.get("objectId")))
    return session if token is None else {**session, _TOKEN: token}


def as_own(principal: Principal, session: Wire, options: FindOptions) -> Wire:
    """Return the session of the request, with its token if that was requested."""
    if principal.session_id is None or principal.session_token is None:
        return session
    if not _shows_token(principal, options):
        return session
    return with_token(session, {principal.session_id: principal.session_token})


def _by_id(where: Query, sent: dict[str, str]) -> Query:
    """Return the query with ids in place of tokens; add the sessions that they belong to."""
    if isinstance(where, AllOf | AnyOf):
        return type(where)(tuple(_by_id(part, sent) for part in where.parts))
    if not (isinstance(where, Equals) and where.path == (_TOKEN,) and isinstance(where.value, str)):
        return where
    try:
        session_id = tokens.bearer(where.value, may_be_expired=True).session_id
    except InvalidSessionToken:
        return Nothing()
    sent[session_id] = where.value
    return OneOfIds(frozenset({session_id}))


def _shows_token(principal: Principal, options: FindOptions) -> bool:
    table = registry.find(SESSION)
    if table is None or _TOKEN in hidden_fields(principal, table):
        return False
    keys, excluded = options.keys, options.exclude_keys
    return (keys is None or (_TOKEN,) in keys) and (_TOKEN,) not in (excluded or ())
