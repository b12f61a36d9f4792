"""Every way to a session, under every condition that an account can be in.

``WAYS`` has all of them. The last part of this file looks for callers of the gate in the source, so
a way that isn't in the table fails the run.
"""

from __future__ import annotations

import ast
import base64
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.signals import setting_changed
from django.utils import timezone

from functions import before_login
from functions.runtime.registry import registry
from objects.users.accounts import second_factor
from objects.users.accounts.impersonation import as_user as as_user_of
from objects.users.models import FailedLogins, Password, Session, User
from objects.users.sessions import gate as session_gate
from objects.users.sessions.gate import Way
from tests.objects.sign_in.accounts import ALICE, BOB, sign
from tests.objects.users.passkeys.authenticator import UP, UV, Authenticator
from tests.objects.users.passkeys.calls import complete, log_in_complete, log_in_init, register_init
from tests.people import PASSWORD, as_user, with_token
from tests.people import User as Person
from tests.rate_limits import limit, nothing_counted
from tests.rest import CLIENT, MASTER, Api, Reply

__all__ = ["limit", "nothing_counted"]

ANYBODY, SERVER = Api(CLIENT), Api(MASTER)
BADGE = {"badge": {"number": "123", "pin": "321"}}
DEVICE = {"anonymous": {"id": "8f14e45f-ceea-467f-9575-5f1c6f5f2f4e"}}


@dataclass
class Account:
    """A user who can enter on all ways."""

    user: Person
    authenticator: Authenticator

    @property
    def path(self) -> str:
        return f"/users/{self.user.user_id}"


@pytest.fixture(autouse=True)
def providers(settings) -> Iterator[None]:
    settings.SERVICE = {
        **settings.SERVICE,
        "ALLOW_ANONYMOUS_USERS": True,
        "WEBAUTHN_USER_VERIFICATION": "preferred",
        "AUTH_ADAPTERS": {
            "badge": {"adapter": "tests.objects.users.badge.Badge"},
            "wallet": {"domains": ["localhost:8000"]},
        },
    }
    yield
    setting_changed.send(None, setting="SERVICE", value=None, enter=False)


def wallet(account=ALICE) -> dict[str, dict[str, str]]:
    """A fresh proof of a wallet: each counts once."""
    data = {"challengeData": {"wallet": {"address": account.address, "chainId": 1}}}
    message = ANYBODY.post("/challenge", data).json["challengeData"]["wallet"]["message"]
    return {"wallet": {"message": message, "signature": sign(message, account)}}


@pytest.fixture
def account(db, providers) -> Account:
    body = {"username": "ann", "password": PASSWORD, "email": "ann@example.org"}
    user = as_user("ann", ANYBODY.post("/users", body))
    SERVER.put(f"/users/{user.user_id}", {"emailVerified": True})
    linked = user.put(f"/users/{user.user_id}", {"authData": {**BADGE, **DEVICE, **wallet()}})
    assert linked.status == 200, linked.json
    authenticator = Authenticator()
    options = register_init("ann", user)
    assert complete(options, authenticator.create(options), user).status == 200
    return Account(user, authenticator)


# -- The ways of a user who exists ----------------------------------------------------------------


def by_passkey(account: Account, flags: int) -> Reply:
    account.authenticator.flags = flags
    options = log_in_init(ANYBODY)
    return log_in_complete(options, account.authenticator.get(options), ANYBODY)


def by_password(account: Account) -> Reply:
    return ANYBODY.post("/login", {"username": "ann", "password": PASSWORD})


def in_a_batch(account: Account) -> Reply:
    body = {"username": "ann", "password": PASSWORD}
    request = {"method": "POST", "path": "/api/login", "body": body}
    reply = ANYBODY.post("/batch", {"requests": [request]})
    (item,) = reply.json
    failed = "error" in item
    return Reply(400 if failed else 200, item["error" if failed else "success"], reply.headers)


ALL = frozenset({"closed", "locked", "unverified", "old password", "second factor", "trigger"})
Enter = Callable[[Account], Reply]


@dataclass(frozen=True)
class Entry:
    """A way as a client takes it: what it does, the conditions of the account that refuse it, and
    the route that its rate limit counts. ``gate`` is the way that the gate knows it by."""

    gate: Way
    enter: Enter
    refused_by: frozenset[str]
    path: str


NO_PASSWORD_USED = ALL - {"old password"}
BY_SESSION = frozenset({"closed", "locked", "unverified"})
NEW_PASSWORD = {"password": "another correct horse"}
WAYS: dict[str, Entry] = {
    "password": Entry(session_gate.PASSWORD, by_password, ALL, "/login"),
    "password by GET": Entry(
        session_gate.PASSWORD,
        lambda _: ANYBODY.get("/login", username="ann", password=PASSWORD),
        ALL,
        "/login",
    ),
    "password and e-mail": Entry(
        session_gate.PASSWORD,
        lambda _: ANYBODY.post("/login", {"email": "ann@example.org", "password": PASSWORD}),
        ALL,
        "/login",
    ),
    "password in a batch": Entry(session_gate.PASSWORD, in_a_batch, ALL, "/login"),
    "provider": Entry(
        session_gate.PROVIDER,
        lambda _: ANYBODY.post("/users", {"authData": BADGE}),
        NO_PASSWORD_USED,
        "/users",
    ),
    "provider by the class": Entry(
        session_gate.PROVIDER,
        lambda _: ANYBODY.post("/classes/_User", {"authData": BADGE}),
        NO_PASSWORD_USED,
        "/users",
    ),
    "wallet": Entry(
        session_gate.PROVIDER,
        lambda _: ANYBODY.post("/users", {"authData": wallet()}),
        NO_PASSWORD_USED,
        "/users",
    ),
    "anonymous": Entry(
        session_gate.PROVIDER,
        lambda _: ANYBODY.post("/users", {"authData": DEVICE}),
        NO_PASSWORD_USED,
        "/users",
    ),
    "passkey": Entry(
        session_gate.PASSKEY,
        lambda account: by_passkey(account, UP),
        NO_PASSWORD_USED,
        "/functions/passkeyLoginComplete",
    ),
    "passkey that verified the user": Entry(
        session_gate.VERIFIED_PASSKEY,
        lambda account: by_passkey(account, UP | UV),
        NO_PASSWORD_USED - {"second factor"},
        "/functions/passkeyLoginComplete",
    ),
    "loginAs": Entry(
        session_gate.MASTER_KEY,
        lambda account: SERVER.post("/loginAs", {"userId": account.user.user_id}),
        frozenset({"trigger"}),
        "/loginAs",
    ),
    "another session": Entry(
        session_gate.SESSION,
        lambda account: account.user.post("/sessions"),
        BY_SESSION,
        "/sessions",
    ),
    "another session by the class": Entry(
        session_gate.SESSION,
        lambda account: account.user.post("/classes/_Session"),
        BY_SESSION,
        "/sessions",
    ),
    "a session that the master key stores": Entry(
        session_gate.MASTER_SESSION,
        lambda account: SERVER.post("/sessions", {"user": account.user.pointer}),
        frozenset(),
        "/sessions",
    ),
    "upgrade of a session": Entry(
        session_gate.UPGRADE,
        lambda account: account.user.post("/upgradeToRevocableSession"),
        BY_SESSION,
        "/upgradeToRevocableSession",
    ),
    "linking by the master key": Entry(
        session_gate.MASTER_LINK,
        lambda account: SERVER.put(account.path, {"authData": BADGE}),
        frozenset(),
        "/users/*",
    ),
    "new password": Entry(
        session_gate.NEW_PASSWORD,
        lambda account: account.user.put(account.path, NEW_PASSWORD),
        frozenset({"closed"}),
        "/users/*",
    ),
    "upgrade of an anonymous user": Entry(
        session_gate.NEW_PASSWORD,
        lambda account: account.user.put(
            account.path, {"username": "ann2", **NEW_PASSWORD, "authData": {"anonymous": None}}
        ),
        frozenset({"closed"}),
        "/users/*",
    ),
}
ways = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


def token_in(reply: Reply) -> str | None:
    if reply.status >= 300:
        assert set(reply.json) == {"code", "error"}
        return None
    answer = reply.json.get("result", reply.json)
    token: str | None = answer.get("sessionToken") or answer.get("token")
    return token


def session_ids() -> set[str]:
    return {*Session.objects.values_list("object_id", flat=True)}


def enters(reply: Reply, before: set[str]) -> bool:
    """Whether there is a new session; if not, the answer has no token either."""
    token, added = token_in(reply), session_ids() - before
    assert (token is not None) == bool(added), reply.json
    if token is not None:
        shown = with_token(token).get("/sessions/me")
        assert shown.json["objectId"] in added
    return token is not None


# -- The conditions -------------------------------------------------------------------------------


def closed(account: Account, settings) -> None:
    # As the master key's ``{"ACL": {}}``, but with the sessions as they are.
    User.objects.filter(object_id=account.user.user_id).update(read_acl=[], write_acl=[])


def locked(account: Account, settings) -> None:
    settings.SERVICE = {**settings.SERVICE, "LOCKOUT_THRESHOLD": 3}
    until = timezone.now() + timedelta(minutes=5)
    FailedLogins.objects.create(user_id=account.user.user_id, count=3, locked_until=until)


def unverified(account: Account, settings) -> None:
    settings.SERVICE = {**settings.SERVICE, "PREVENT_LOGIN_WITH_UNVERIFIED_EMAIL": True}
    SERVER.put(account.path, {"emailVerified": False})


def old_password(account: Account, settings) -> None:
    settings.SERVICE = {**settings.SERVICE, "PASSWORD_MAX_AGE": 30}
    Password.objects.update(changed_at=timezone.now() - timedelta(days=31))


def with_second_factor(account: Account, settings) -> None:
    secret = b"a secret of 20 bytes"
    step = int(time.time()) // second_factor.STEP
    token = second_factor.one_time_password(secret, step)
    value = {"secret": base64.b32encode(secret).decode(), "token": token}
    second_factor.set_up(account.user.user_id, value)


def with_refusing_trigger(account: Account, settings) -> None:
    @before_login()
    def refuse(request):
        raise ValueError("not today")


CONDITIONS = {
    "closed": closed,
    "locked": locked,
    "unverified": unverified,
    "old password": old_password,
    "second factor": with_second_factor,
    "trigger": with_refusing_trigger,
}


@ways
def test_each_way_gives_a_session_that_works(account, way):
    before = session_ids()
    reply = way.enter(account)
    assert enters(reply, before), reply.json


@pytest.mark.parametrize("condition", CONDITIONS)
@ways
def test_each_condition_stops_the_ways_that_it_is_about(account, settings, way, condition):
    with registry.temporarily():
        CONDITIONS[condition](account, settings)
        before = session_ids()
        reply = way.enter(account)
        assert enters(reply, before) == (condition not in way.refused_by), reply.json


@pytest.mark.parametrize("name", [name for name in WAYS if name not in ("password in a batch",)])
def test_each_way_has_a_rate_limit_if_there_is_a_rule(account, limit, name):
    way = WAYS[name]
    limit({"path": way.path, "count": 1, "includeMaster": True})
    assert way.enter(account).status < 300
    assert way.enter(account).error == (429, 100)


def test_a_batch_has_the_rate_limit_of_its_items(account, limit):
    limit({"path": "/login", "count": 1})
    assert in_a_batch(account).status == 200
    assert in_a_batch(account).json["code"] == 100


@pytest.mark.parametrize("condition", sorted(ALL - {"trigger"}))
def test_a_password_is_verified_under_the_conditions_of_a_login(account, settings, condition):
    CONDITIONS[condition](account, settings)
    before = session_ids()
    reply = ANYBODY.post("/verifyPassword", {"username": "ann", "password": PASSWORD})
    assert reply.status >= 400
    assert session_ids() == before


# -- New users ------------------------------------------------------------------------------------


def register_with_passkey(body) -> Reply:
    options = register_init("new", ANYBODY)
    return complete(options, Authenticator().create(options), ANYBODY)


ADDRESS = {"email": "new@example.org"}
SIGN_UPS: dict[str, tuple[Way, Callable[[dict[str, str]], Reply]]] = {
    "password": (
        session_gate.SIGN_UP,
        lambda body: ANYBODY.post("/users", {"username": "new", "password": PASSWORD, **body}),
    ),
    "provider": (
        session_gate.PROVIDER_SIGN_UP,
        lambda body: ANYBODY.post("/users", {"authData": BADGE, **body}),
    ),
    "wallet": (
        session_gate.PROVIDER_SIGN_UP,
        lambda body: ANYBODY.post("/users", {"authData": wallet(BOB), **body}),
    ),
    "anonymous": (
        session_gate.PROVIDER_SIGN_UP,
        lambda body: ANYBODY.post("/users", {"authData": DEVICE, **body}),
    ),
    "passkey": (session_gate.PASSKEY_SIGN_UP, register_with_passkey),
}
sign_ups = pytest.mark.parametrize("name", SIGN_UPS)


@sign_ups
def test_each_sign_up_gives_a_session_that_works(db, name):
    before = session_ids()
    assert enters(SIGN_UPS[name][1](ADDRESS), before)


@pytest.mark.parametrize(
    "options",
    [
        {"PREVENT_LOGIN_WITH_UNVERIFIED_EMAIL": True},
        {"PREVENT_SIGNUP_WITH_UNVERIFIED_EMAIL": True, "VERIFY_EMAIL": True},
    ],
)
@pytest.mark.parametrize("name", sorted(SIGN_UPS.keys() - {"passkey"}))
def test_no_sign_up_gives_a_session_while_its_address_is_unverified(db, settings, name, options):
    settings.SERVICE = {**settings.SERVICE, **options}
    before = session_ids()
    reply = SIGN_UPS[name][1](ADDRESS)
    assert reply.status == 201
    assert not enters(reply, before)


@sign_ups
def test_an_account_without_an_address_has_nothing_to_verify_but_one_with_a_password(
    db, settings, name
):
    settings.SERVICE = {**settings.SERVICE, "PREVENT_LOGIN_WITH_UNVERIFIED_EMAIL": True}
    before = session_ids()
    assert enters(SIGN_UPS[name][1]({}), before) == (name != "password")


# -- What gives no session ------------------------------------------------------------------------


def test_resetting_a_password_and_adding_a_way_in_give_no_session(account):
    before = session_ids()
    assert ANYBODY.post("/requestPasswordReset", {"email": "ann@example.org"}).status == 200
    linked = account.user.put(account.path, {"authData": wallet()})
    assert (linked.status, token_in(linked)) == (200, None)
    options = register_init("ann", account.user)
    added = complete(options, Authenticator().create(options), account.user)
    assert token_in(added) == account.user.token
    assert session_ids() == before


# -- Closing an account ---------------------------------------------------------------------------


def test_closing_an_account_ends_its_sessions_and_opening_it_lets_its_user_in_again(account):
    assert SERVER.put(account.path, {"ACL": {}}).status == 200
    assert account.user.get("/users/me").error == (400, 209)
    assert session_ids() == set()
    for name, way in WAYS.items():
        if not way.refused_by or name == "loginAs":
            continue
        assert way.enter(account).json["code"] in (101, 206, 209), name
    assert session_ids() == set()
    own = {account.user.user_id: {"read": True, "write": True}}
    assert SERVER.put(account.path, {"ACL": own}).status == 200
    assert ANYBODY.post("/users", {"authData": BADGE}).status == 200


def test_the_master_key_gets_into_a_closed_account(account):
    SERVER.put(account.path, {"ACL": {}})
    body = {"username": "ann", "password": PASSWORD}
    assert SERVER.post("/login", body).status == 200
    assert SERVER.post("/loginAs", {"userId": account.user.user_id}).status == 200
    assert SERVER.post("/users", {"authData": BADGE}).status == 200


# -- No way around the gate -----------------------------------------------------------------------

ROOT = Path(__file__).parents[2]
APPLICATIONS = ("backend", "objects", "functions", "chain", "realtime")
# Each function that asks the gate for a session, and what of the tables above leads to it.
CALLERS: dict[str, set[Way]] = {
    "objects.users.sign_in.log_in": {session_gate.PASSWORD},
    "objects.users.sign_in.sign_in_with_providers": {session_gate.PROVIDER},
    "objects.users.sign_in.log_in_with_passkey": {
        session_gate.PASSKEY,
        session_gate.VERIFIED_PASSKEY,
    },
    "objects.users.sign_in.log_in_as": {session_gate.MASTER_KEY},
    "objects.users.sign_in.session_after_linking": {session_gate.MASTER_LINK},
    "objects.users.sign_in.upgrade_session": {session_gate.UPGRADE},
    "objects.users.rules.users.after_create": {
        session_gate.SIGN_UP,
        session_gate.PROVIDER_SIGN_UP,
        session_gate.PASSKEY_SIGN_UP,
    },
    "objects.users.rules.users._change_password": {session_gate.NEW_PASSWORD},
    "objects.users.rules.sessions.before_create": {
        session_gate.SESSION,
        session_gate.MASTER_SESSION,
    },
}
ASKING = ("gate.enter", "gate.enter_new", "gate.admit_to_create")


def sources() -> Iterator[tuple[str, str]]:
    for application in APPLICATIONS:
        for path in sorted((ROOT / application).rglob("*.py")):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            yield name, path.read_text()


def calls_of(names: tuple[str, ...]) -> set[str]:
    """The functions that use one of these names, as ``module.function``."""
    results = set()
    for module, text in sources():
        if not any(name.rpartition(".")[2] in text for name in names):
            continue
        for function in ast.walk(ast.parse(text)):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                used = {
                    ast.unparse(node)
                    for node in ast.walk(function)
                    if isinstance(node, ast.Attribute | ast.Name)
                }
                if not used.isdisjoint(names):
                    results.add(f"{module}.{function.name}")
    return results


def test_every_caller_of_the_gate_is_in_the_tables():
    calls = calls_of(ASKING)
    helper = "objects.users.sign_in._entered"
    assert helper in calls
    assert calls - {helper} | calls_of(("_entered",)) == CALLERS.keys()


def test_every_way_of_the_gate_is_taken_by_a_test():
    existing = {value for value in vars(session_gate).values() if isinstance(value, Way)}
    taken = {way.gate for way in WAYS.values()} | {way for way, _ in SIGN_UPS.values()}
    assert taken == existing == set().union(*CALLERS.values())


@pytest.mark.parametrize(
    ("text", "modules"),
    [
        ("objects.users.sessions import creation", {"objects.users.sessions.gate"}),
        ("SessionPermit(", {"objects.users.sessions.gate"}),
        ("INTO objects_session", {"objects.users.sessions.creation"}),
        ("SET token_hash", {"objects.users.sessions.creation", "objects.users.sessions.transfers"}),
        ("new_token()", {"objects.users.sessions.creation"}),
        ("Session.objects", set()),
    ],
)
def test_sessions_are_created_behind_the_gate_alone(text, modules):
    used = {
        module
        for module, source in sources()
        if text in source.replace(f"class {text}", "").replace(f"def {text}", "")
    }
    assert used == modules


def test_acting_as_a_user_makes_no_session(account):
    before = session_ids()
    principal, name = as_user_of(account.user.user_id)
    assert (principal.session_id, principal.session_token, name) == (None, None, "ann")
    assert session_ids() == before
