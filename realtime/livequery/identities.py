"""The users of session tokens, for as long as live queries use them.

A process has one ``Identity`` per token, which subscriptions share. It is authenticated at first
use and ends with its session: when that is removed (logout, a new password, deletion of the user,
the admin), when it expires, or when its token changes. Roles are read again whenever any role has
changed.

``apply`` gets every batch of committed changes before it is published. Its effects apply to the
whole batch, so a change that was committed after a session ended, or after a role was removed,
isn't sent to its former holder. This requires ``_Session`` to be captured since before the first
``authenticate``.

``authenticate``, ``apply`` and ``reload`` read the database: call them in threads, also
concurrently. Code that binds rights to an identity reads its ``generation`` first, and again in
the step that puts these rights into force: if it has changed, the rights are bound again.
"""

from __future__ import annotations

import heapq
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import count
from time import monotonic
from typing import Final

from backend.kernel.errors import InvalidSessionToken, ServiceUnavailable
from backend.kernel.principal import Authority, Principal
from objects.changes import Change
from objects.core.names import SESSION
from objects.users import roles
from objects.users.sessions import tokens
from objects.users.sessions.tokens import Proven

SESSIONS: Final = SESSION
_ATTEMPTS: Final = 20
_SPARE: Final = 1000


class Identity:
    """One session token's bearer.

    ``principal`` is replaced when the user's roles change, and ``generation`` grows then. It has no
    installation id; a caller that knows it adds it.
    """

    __slots__ = ("_expires_at", "_holders", "_key", "ended", "generation", "principal")

    def __init__(self, key: str, proven: Proven, now: float) -> None:
        self._key = key
        self._holders = 0
        self.generation = 0
        self.ended = False
        self.principal = _principal(proven)
        self._expires_at = _expires_at(proven, now)

    @property
    def session_id(self) -> str:
        assert self.principal.session_id is not None
        return self.principal.session_id

    def _has_expired(self, now: float) -> bool:
        return self._expires_at is not None and self._expires_at <= now

    def _replace_principal(self, principal: Principal) -> bool:
        """Replace the principal; return whether it has changed."""
        if principal == self.principal:
            return False
        self.principal = principal
        self.generation += 1
        return True


@dataclass(slots=True)
class SessionChanges:
    """The effects of changes on identities: those that ended, which are removed already, and those
    whose roles changed."""

    ended: list[Identity] = field(default_factory=list)
    changed: list[Identity] = field(default_factory=list)


class Identities:
    """The identities of a process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # never held during a query
        self._by_key: dict[str, Identity] = {}  # by the token's hash
        self._by_session: dict[str, Identity] = {}
        self._role_version: str | None = None
        self._role_changes = 0
        self._stale: set[Identity] = set()
        # A heap by expiry; entries of ended or prolonged sessions are skipped when they are popped.
        self._expiring: list[tuple[float, int, Identity]] = []
        self._order = count()
        self._authentications = 0
        # Sessions that have changed since the oldest authentication in progress started.
        self._changed_sessions: set[str] = set()

    def __len__(self) -> int:
        return len(self._by_key)

    def authenticate(self, token: str) -> Identity:
        """Return the identity of a token; call ``release`` once for each call of this.

        Raises ``InvalidSessionToken`` (209) for one that is unknown, has expired or has ended.
        """
        key = tokens.token_hash(token)
        with self._lock:
            identity = self._by_key.get(key)
            if identity is not None and not identity._has_expired(monotonic()):
                identity._holders += 1
                return identity
            self._authentications += 1
        try:
            return self._authenticate(key, token)
        finally:
            with self._lock:
                self._authentications -= 1
                if not self._authentications:
                    self._changed_sessions.clear()

    def _authenticate(self, key: str, token: str) -> Identity:
        for _ in range(_ATTEMPTS):
            with self._lock:
                role_changes = self._role_changes
                before = set(self._changed_sessions)
            proven = tokens.authenticate(token)
            with self._lock:
                # A batch applied meanwhile may have ended the session or removed a role.
                has_changed = proven.session_id in self._changed_sessions - before
                if has_changed or role_changes != self._role_changes:
                    continue
                identity = self._by_key.get(key)
                if identity is None:
                    identity = self._by_key[key] = Identity(key, proven, monotonic())
                    self._by_session[identity.session_id] = identity
                    self._schedule_expiry(identity)
                identity._holders += 1
                return identity
        raise ServiceUnavailable("Sessions and roles are changing; try again.")

    def release(self, identity: Identity) -> None:
        """Release an identity; it is removed with its last holder. Never waits."""
        with self._lock:
            identity._holders -= 1
            if identity._holders <= 0:
                self._remove(identity)

    def apply(self, changes: Iterable[Change], role_version: str) -> SessionChanges:
        """Apply a batch of changes, expired sessions and changed roles; return the effects.

        Call it for empty batches too: sessions expire without a change. If it raises, the batch
        must not be published; the next call completes the work.
        """
        effects = SessionChanges()
        with self._lock:
            for change in changes:
                if change.table.class_name == SESSIONS:
                    self._apply_session_change(change, effects)
            self._mark_expired(monotonic())
            stale = set(self._stale)
            roles_changed = role_version != self._role_version
            unaffected: list[Identity] = []
            if roles_changed:
                self._role_changes += 1
                unaffected = [
                    identity for identity in self._by_key.values() if identity not in stale
                ]
        if stale:
            self._authenticate_again(stale, effects)
        if roles_changed:
            self._read_roles(unaffected, effects)
            with self._lock:
                self._role_version = role_version
        return effects

    def reload(self) -> SessionChanges:
        """Authenticate all identities again, after batches were missed."""
        effects = SessionChanges()
        with self._lock:
            self._role_changes += 1
            self._changed_sessions.update(self._by_session)
            identities = set(self._by_key.values())
            self._stale |= identities
        if identities:
            self._authenticate_again(identities, effects)
        return effects

    def _apply_session_change(self, change: Change, effects: SessionChanges) -> None:
        if self._authentications:
            self._changed_sessions.add(change.object_id)
        identity = self._by_session.get(change.object_id)
        if identity is None:
            return
        if change.after is None:
            self._end(identity, effects)
        else:
            self._stale.add(identity)

    def _schedule_expiry(self, identity: Identity) -> None:
        """Check an identity again when it expires."""
        if identity._expires_at is None:
            return
        if len(self._expiring) > 2 * len(self._by_key) + _SPARE:
            # Most entries are of identities that were removed long before their expiry.
            self._expiring = [
                (other._expires_at, next(self._order), other)
                for other in self._by_key.values()
                if other._expires_at is not None
            ]
            heapq.heapify(self._expiring)
            return
        heapq.heappush(self._expiring, (identity._expires_at, next(self._order), identity))

    def _mark_expired(self, now: float) -> None:
        while self._expiring and self._expiring[0][0] <= now:
            identity = heapq.heappop(self._expiring)[2]
            if identity._has_expired(now) and self._is_known(identity):
                self._stale.add(identity)

    def _is_known(self, identity: Identity) -> bool:
        return self._by_key.get(identity._key) is identity

    def _authenticate_again(self, stale: set[Identity], effects: SessionChanges) -> None:
        proven = tokens.prove_many([identity._key for identity in stale])
        now = monotonic()
        with self._lock:
            self._stale -= stale
            for identity in stale:
                session = proven.get(identity._key)
                if session is None or session.session_id != identity.session_id:
                    self._end(identity, effects)
                    continue
                identity._expires_at = _expires_at(session, now)
                self._schedule_expiry(identity)
                if identity._replace_principal(_principal(session)):
                    effects.changed.append(identity)

    def _read_roles(self, identities: list[Identity], effects: SessionChanges) -> None:
        users = {identity.principal.user_id for identity in identities}
        held = roles.held_by_many([user_id for user_id in users if user_id is not None])
        with self._lock:
            for identity in identities:
                previous = identity.principal
                assert previous.user_id is not None
                current = _client(previous.user_id, held[previous.user_id], previous.session_id)
                if identity._replace_principal(current):
                    effects.changed.append(identity)

    def _end(self, identity: Identity, effects: SessionChanges) -> None:
        if not identity.ended:
            identity.ended = True
            identity.generation += 1
            effects.ended.append(identity)
            self._remove(identity)

    def _remove(self, identity: Identity) -> None:
        self._stale.discard(identity)
        if self._is_known(identity):
            del self._by_key[identity._key]
        if self._by_session.get(identity.session_id) is identity:
            del self._by_session[identity.session_id]


def require_active(identity: Identity | None) -> None:
    """Raise ``InvalidSessionToken`` if the identity has ended; None never ends."""
    if identity is not None and identity.ended:
        raise InvalidSessionToken("Invalid session token")


def _principal(proven: Proven) -> Principal:
    return _client(proven.user_id, proven.roles, proven.session_id)


def _client(user_id: str, held: frozenset[str], session_id: str | None) -> Principal:
    return Principal(Authority.CLIENT, user_id=user_id, roles=held, session_id=session_id)


def _expires_at(proven: Proven, now: float) -> float | None:
    return None if proven.seconds_left is None else now + proven.seconds_left
