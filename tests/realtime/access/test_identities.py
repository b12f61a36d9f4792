"""Whose a session token is, for as long as live queries are open under it.

Readings are made by hand here; that every way of ending a session is read is shown where there are
sockets.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

import pytest

from backend.kernel.errors import InvalidSessionToken, ObjectNotFound
from backend.kernel.principal import MASTER
from objects import service
from objects.changes import Change
from objects.database.statements import fetch
from objects.definitions import registry
from objects.storage.records import Record
from objects.users import roles
from objects.users.models import Session
from objects.users.sessions import tokens
from realtime.livequery import identities as clock
from realtime.livequery.identities import Identities, Identity, SessionChanges
from tests.people import User, log_in, make_role, sign_up
from tests.rest import Api
from tests.statements import traffic
from tests.threads import at_once

pytestmark = pytest.mark.django_db


@pytest.fixture
def identities() -> Identities:
    return Identities()


@pytest.fixture
def ann(client: Api) -> User:
    return sign_up("ann")


def role_version() -> str:
    rows = fetch("SELECT version FROM objects_role_version", (), prepare=False)
    return rows[0][0] if rows else ""


def change_of(session_id: str) -> Change:
    """The change of a session as a reading has it now: one that has ended has no image."""
    table = registry.current("_Session")
    assert table is not None
    after: Record | None = None
    try:
        response = service.get(MASTER, "_Session", session_id)
        assert isinstance(response, Record)
        after = response
    except ObjectNotFound:
        pass
    return Change(table, session_id, None, after, 0.0)


def apply(identities: Identities, *of: Identity) -> SessionChanges:
    changes = [change_of(item.session_id) for item in of]
    return identities.apply(changes, role_version())


def expire(identity: Identity, seconds: float) -> None:
    """Let a session expire so many seconds from now."""
    fetch(
        "UPDATE objects_session SET expires_at = statement_timestamp() + make_interval(secs => %s)"
        " WHERE object_id = %s",
        (seconds, identity.session_id),
        prepare=False,
    )


@pytest.fixture
def let_pass(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Lets so many seconds pass for the process."""

    def passed(seconds: float) -> None:
        monkeypatch.setattr(clock, "monotonic", lambda: monotonic() + seconds)

    return passed


def test_repeated_authentication_of_a_token_returns_one_identity(identities, ann):
    first, second = identities.authenticate(ann.token), identities.authenticate(ann.token)
    assert first is second
    assert first.principal.user_id == ann.user_id
    assert first.principal.acl_ids == {"*", ann.user_id}
    identities.release(first)
    assert identities.authenticate(ann.token) is first
    identities.release(first)
    identities.release(first)
    assert len(identities) == 0
    assert identities.authenticate(ann.token) is not first


@pytest.mark.parametrize("token", ["", "r:", "r:" + "0" * 32, "x" * 5000, "r:\x00"])
def test_an_invalid_token_is_rejected(identities, ann, token):
    with pytest.raises(InvalidSessionToken):
        identities.authenticate(token)
    assert len(identities) == 0


def test_an_identity_does_not_contain_its_token(identities, ann):
    identity = identities.authenticate(ann.token)
    assert identity.principal.session_token is None
    assert ann.token not in repr(identity.principal)


def test_an_identity_ends_with_its_session_and_others_continue(identities, ann):
    bob = identities.authenticate(sign_up("bob").token)
    identity = identities.authenticate(ann.token)
    generation = identity.generation
    apply(identities)
    assert ann.post("/logout").status == 200
    effects = apply(identities, identity, bob)
    assert (effects.ended, effects.changed) == ([identity], [])
    assert identity.ended
    assert identity.generation > generation
    assert not bob.ended
    with pytest.raises(InvalidSessionToken):
        identities.authenticate(ann.token)
    assert apply(identities, identity).ended == []
    identities.release(identity)  # late, by a remaining holder
    assert len(identities) == 1


def test_an_identity_ends_when_its_session_gets_another_user(identities, ann):
    identity = identities.authenticate(ann.token)
    Session.objects.update(token_hash=bytes.fromhex(tokens.token_hash(tokens.new_token())))
    assert apply(identities, identity).ended == [identity]


def test_an_identity_ends_when_its_session_expires_without_a_change(identities, ann, let_pass):
    identity = identities.authenticate(ann.token)
    expire(identity, 60)
    assert apply(identities, identity).ended == []
    expire(identity, 0)  # as far as the database knows; the process isn't notified
    assert apply(identities).ended == []
    let_pass(61)
    assert apply(identities).ended == [identity]
    with pytest.raises(InvalidSessionToken):
        identities.authenticate(ann.token)


def test_a_prolonged_session_continues(identities, ann, let_pass):
    identity = identities.authenticate(ann.token)
    expire(identity, 60)
    apply(identities, identity)
    expire(identity, 100)
    let_pass(61)
    assert apply(identities).ended == []
    assert identities.authenticate(ann.token) is identity


def test_sessions_without_expiry_never_expire(identities, ann, settings):
    settings.SERVICE = {**settings.SERVICE, "EXPIRE_INACTIVE_SESSIONS": False}
    expire(identities.authenticate(ann.token), -100)
    identity = identities.authenticate(ann.token)
    assert apply(identities, identity).ended == []


def test_a_change_of_roles_applies_from_its_batch_on(identities, ann, master):
    identity = identities.authenticate(ann.token)
    bob = identities.authenticate(sign_up("bob").token)
    apply(identities)
    inner = make_role(master, "Inner", [ann])
    make_role(master, "Outer", roles=[inner])
    assert identity.principal.roles == frozenset()
    assert apply(identities).changed == [identity]
    assert identity.principal.roles == {"Inner", "Outer"}
    generation = identity.generation
    master.put(f"/roles/{inner}", {"users": {"__op": "RemoveRelation", "objects": [ann.pointer]}})
    assert apply(identities).changed == [identity]
    assert identity.principal.roles == frozenset()
    assert identity.generation == generation + 1
    assert bob.generation == 0


def test_the_roles_of_all_identities_are_read_in_one_statement(identities, ann, master):
    role_id = make_role(master, "Team", [ann])
    make_role(master, "Above", roles=[role_id])
    people = [ann, *(sign_up(f"user{number}") for number in range(5))]
    held = [identities.authenticate(item.token) for item in people]
    apply(identities)
    roles.changed()
    version = role_version()
    with traffic() as sent:
        effects = identities.apply([], version)
    assert sent.executions == 1
    assert effects.changed == []
    assert held[0].principal.roles == {"Team", "Above"}
    with traffic() as sent:
        identities.apply([], version)
    assert sent.executions == 0


def test_after_a_gap_all_identities_are_authenticated_again_in_two_statements(
    identities, ann, master
):
    people = [ann, *(sign_up(f"user{number}") for number in range(3))]
    held = [identities.authenticate(item.token) for item in people]
    apply(identities)
    people[1].post("/logout")
    make_role(master, "Team", [people[2]])
    with traffic() as sent:
        effects = identities.reload()
    assert sent.executions == 2
    assert (effects.ended, effects.changed) == ([held[1]], [held[2]])


def test_the_next_call_completes_a_failed_one(identities, ann, master):
    identity = identities.authenticate(ann.token)
    apply(identities)
    make_role(master, "Team", [ann])
    version = role_version()

    def unreadable():
        raise ConnectionError
        yield

    with pytest.raises(ConnectionError):
        identities.apply(unreadable(), version)
    assert identity.principal.roles == frozenset()
    assert identities.apply([], version).changed == [identity]


def test_a_role_applies_to_both_sessions_of_a_user(identities, ann, master):
    other = master.post("/loginAs", {"userId": ann.user_id}).json["sessionToken"]
    held = [identities.authenticate(ann.token), identities.authenticate(other)]
    assert held[0] is not held[1]
    apply(identities)
    make_role(master, "Team", [ann])
    assert apply(identities).changed == held
    apply(identities)
    fetch("DELETE FROM objects_session WHERE object_id = %s", (held[0].session_id,), prepare=False)
    assert apply(identities, *held).ended == [held[0]]


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_authentication_concurrent_with_the_end_of_its_session_leaves_no_identity(
    identities, emptied
):
    """A batch applied during authentication ends the new identity or prevents it."""
    ann = sign_up("ann")
    for _ in range(20):
        token = log_in(ann.name).json["sessionToken"]
        session_id = tokens.authenticate(token).session_id

        def prove(token: str = token) -> Identity | None:
            try:
                return identities.authenticate(token)
            except InvalidSessionToken:
                return None

        def end(session_id: str = session_id) -> None:
            tokens.end(session_id)
            identities.apply([change_of(session_id)], role_version())

        identity, _ = at_once([prove, end])
        assert identity is None or identity.ended
        assert len(identities) == 0
