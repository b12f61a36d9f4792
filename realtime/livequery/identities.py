"""The users of session tokens, for as long as live queries use them.

A process has one ``Identity`` per token, which subscriptions share. It is authenticated at first
use and ends with its session: when that is removed (logout, a new password, deletion of the user,
the admin), when it expires, or when its token changes. Roles are read again whenever any role has
changed.

``follow`` gets every batch of committed changes before it is published. Its effects apply to the
whole batch, so a change that was committed after a session ended, or after a role was removed,
isn't sent to its former holder. This requires ``_Session`` to be captured since before the first
``authenticate``.

``authenticate``, ``follow`` and ``reload`` read the database: call them in threads, also
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

    ``principal`` is replaced when the user's roles change, and ``generation`` grows then. It knows
    nothing of a device; a caller that does makes a principal with it.
    """

    __slots__ = ("_holders", "_key", "_until", "ended", "generation", "principal")

    def __init__(self, key: str, proven: Proven, now: float) -> None:
        self._key = key
        self._holders = 0
        self.generation = 0
        self.ended = False
        self.principal = _principal(proven)
        self._until = _until(proven, now)

    @property
    def session_id(self) -> str:
        assert self.principal.session_id is not None
        return self.principal.session_id

    def _is_over(self, now: float) -> bool:
        return self._until is not None and self._until <= now

    def _become(self, principal: Principal) -> bool:
        """Whether that is anything new."""
        if principal == self.principal:
            return False
        self.principal = principal
        self.generation += 1
        return True


@dataclass(slots=True)
class SessionChanges:
    """What has become of identities: those that ended (they are forgotten already), and those that
    hold other roles now."""

    ended: list[Identity] = field(default_factory=list)
    changed: list[Identity] = field(default_factory=list)


class Identities:
    """The identities of a process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # never held while the database is asked
        self._known: dict[str, Identity] = {}  # by the token's hash
        self._by_session: dict[str, Identity] = {}
        self._role_version: str | None = None
        self._role_changes = 0
        self._doubtful: set[Identity] = set()
        # By the time at which they expire; those that ended or go on longer are found out there.
        self._expiring: list[tuple[float, int, Identity]] = []
        self._numbers = count()
        self._proving = 0
        # Sessions that have changed since the oldest proof under way has begun.
        self._touched: set[str] = set()

    def __len__(self) -> int:
        return len(self._known)

    def authenticate(self, token: str) -> Identity:
        """The bearer of a token; ``release`` it as often as it was proven.

        Raises ``InvalidSessionToken`` (209) for one that is unknown, has expired or has ended.
        """
        key = tokens.token_hash(token)
        with self._lock:
            identity = self._known.get(key)
            if identity is not None and not identity._is_over(monotonic()):
                identity._holders += 1
                return identity
            self._proving += 1
        try:
            return self._proven(key, token)
        finally:
            with self._lock:
                self._proving -= 1
                if not self._proving:
                    self._touched.clear()

    def _proven(self, key: str, token: str) -> Identity:
        for _ in range(_ATTEMPTS):
            with self._lock:
                role_changes = self._role_changes
                before = set(self._touched)
            proven = tokens.authenticate(token)
            with self._lock:
                # A reading taken in meanwhile may have ended what was proven, or taken a role away.
                touched = proven.session_id in self._touched - before
                if touched or role_changes != self._role_changes:
                    continue
                identity = self._known.get(key)
                if identity is None:
                    identity = self._known[key] = Identity(key, proven, monotonic())
                    self._by_session[identity.session_id] = identity
                    self._expect(identity)
                identity._holders += 1
                return identity
        raise ServiceUnavailable("Sessions and roles are changing; try again.")

    def release(self, identity: Identity) -> None:
        """One holder of the identity less; the last one forgets it. Never waits."""
        with self._lock:
            identity._holders -= 1
            if identity._holders <= 0:
                self._forget(identity)

    def follow(self, changes: Iterable[Change], role_version: str) -> SessionChanges:
        """Take in the changes of a reading, sessions that have expired, and roles.

        Call it for empty readings too: sessions expire without a change. If it raises, nothing of
        the reading may be delivered; what was left undone is done by the next call.
        """
        effects = SessionChanges()
        with self._lock:
            for change in changes:
                if change.table.class_name == SESSIONS:
                    self._note(change, effects)
            self._note_expired(monotonic())
            doubtful = set(self._doubtful)
            roles_changed = role_version != self._role_version
            unaffected: list[Identity] = []
            if roles_changed:
                self._role_changes += 1
                unaffected = [
                    identity for identity in self._known.values() if identity not in doubtful
                ]
        if doubtful:
            self._authenticate_again(doubtful, effects)
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
            self._touched.update(self._by_session)
            everybody = set(self._known.values())
            self._doubtful |= everybody
        if everybody:
            self._authenticate_again(everybody, effects)
        return effects

    def _note(self, change: Change, effects: SessionChanges) -> None:
        if self._proving:
            self._touched.add(change.object_id)
        identity = self._by_session.get(change.object_id)
        if identity is None:
            return
        if change.after is None:
            self._end(identity, effects)
        else:
            self._doubtful.add(identity)

    def _expect(self, identity: Identity) -> None:
        """Look at an identity when it expires."""
        if identity._until is None:
            return
        if len(self._expiring) > 2 * len(self._known) + _SPARE:
            # Most are gone long before they would expire.
            self._expiring = [
                (known_identity._until, next(self._numbers), known_identity)
                for known_identity in self._known.values()
                if known_identity._until is not None
            ]
            heapq.heapify(self._expiring)
            return
        heapq.heappush(self._expiring, (identity._until, next(self._numbers), identity))

    def _note_expired(self, now: float) -> None:
        while self._expiring and self._expiring[0][0] <= now:
            identity = heapq.heappop(self._expiring)[2]
            if identity._is_over(now) and self._is_known(identity):
                self._doubtful.add(identity)

    def _is_known(self, identity: Identity) -> bool:
        return self._known.get(identity._key) is identity

    def _authenticate_again(self, doubtful: set[Identity], effects: SessionChanges) -> None:
        proven = tokens.prove_many([identity._key for identity in doubtful])
        now = monotonic()
        with self._lock:
            self._doubtful -= doubtful
            for identity in doubtful:
                session = proven.get(identity._key)
                if session is None or session.session_id != identity.session_id:
                    self._end(identity, effects)
                    continue
                identity._until = _until(session, now)
                self._expect(identity)
                if identity._become(_principal(session)):
                    effects.changed.append(identity)

    def _read_roles(self, identities: list[Identity], effects: SessionChanges) -> None:
        users = {identity.principal.user_id for identity in identities}
        held = roles.held_by_many([user_id for user_id in users if user_id is not None])
        with self._lock:
            for identity in identities:
                previous = identity.principal
                assert previous.user_id is not None
                current = _client(previous.user_id, held[previous.user_id], previous.session_id)
                if identity._become(current):
                    effects.changed.append(identity)

    def _end(self, identity: Identity, effects: SessionChanges) -> None:
        if not identity.ended:
            identity.ended = True
            identity.generation += 1
            effects.ended.append(identity)
            self._forget(identity)

    def _forget(self, identity: Identity) -> None:
        self._doubtful.discard(identity)
        if self._is_known(identity):
            del self._known[identity._key]
        if self._by_session.get(identity.session_id) is identity:
            del self._by_session[identity.session_id]


def check(identity: Identity | None) -> None:
    """Raise ``InvalidSessionToken`` if the identity has ended; None never ends."""
    if identity is not None and identity.ended:
        raise InvalidSessionToken("Invalid session token")


def _principal(proven: Proven) -> Principal:
    return _client(proven.user_id, proven.roles, proven.session_id)


def _client(user_id: str, held: frozenset[str], session_id: str | None) -> Principal:
    return Principal(Authority.CLIENT, user_id=user_id, roles=held, session_id=session_id)


def _until(proven: Proven, now: float) -> float | None:
    return None if proven.seconds_left is None else now + proven.seconds_left
