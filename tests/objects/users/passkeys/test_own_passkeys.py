"""What users have passkeys for besides signing up: more of them, seeing and removing them."""

from __future__ import annotations

import base64
import time

import pytest

from backend.site.staff import ADMINISTRATORS, EDITORS, VIEWERS
from chain.models.signing import Wallet
from objects.users import expired
from objects.users.accounts import second_factor
from objects.users.models import Identity
from objects.users.passkeys import keys
from objects.users.passkeys.models import Passkey, PasskeyChallenge
from tests.objects.admin.staff import logged_in
from tests.objects.users.passkeys.authenticator import Authenticator
from tests.objects.users.passkeys.calls import (
    ANYBODY,
    complete,
    log_in,
    register,
    register_init,
    result,
)
from tests.people import User, sign_up, with_token
from tests.rest import MASTER, READ_ONLY, Api


def add(user: User, **more: str) -> Authenticator:
    """A further passkey of a user."""
    authenticator = Authenticator()
    options = register_init(user.name, user)
    result(complete(options, authenticator.create(options), user, **more))
    return authenticator


def listed(user: Api) -> list[str]:
    return [item["id"] for item in result(user.post("/functions/listPasskeys"))]


def test_a_user_with_a_password_gets_a_passkey_and_wallets(client):
    ann = sign_up("ann")
    assert Wallet.objects.count() == 0
    options = register_init("ANN", ann)
    authenticator = Authenticator()
    answer = result(complete(options, authenticator.create(options), ann))
    assert answer["token"] == ann.token
    assert answer["user"] == {"id": ann.user_id, "username": "ann"}
    assert len(answer["wallets"]) == 1
    assert result(log_in(authenticator))["user"]["id"] == ann.user_id
    assert ann.get("/users/me").json["authData"] == {"passkey": {"id": ann.user_id}}


def test_a_second_one_is_made_by_another_authenticator_and_no_more_wallets(client):
    ann = sign_up("ann")
    first = add(ann)
    options = register_init("ann", ann)
    assert [credential["id"] for credential in options["excludeCredentials"]] == [first.id]
    second = add(ann)
    assert set(listed(ann)) == {first.id, second.id}
    assert Wallet.objects.count() == 1
    for credential in (first, second):
        assert log_in(credential).status == 200


def test_only_the_session_that_asked_adds_it(client):
    ann, bob = sign_up("ann"), sign_up("bob")
    options = register_init("ann", ann)
    signed = Authenticator().create(options)
    for other in (ANYBODY, bob, Api(MASTER)):
        reply = complete(options, signed, other)
        assert reply.error == (400, 141)
        assert "temporaryAuthenticationToken" in reply.json["error"]
    assert not Passkey.objects.exists()
    assert complete(options, signed, ann).status == 200


def test_no_one_gets_a_passkey_for_a_name_of_others(client):
    sign_up("ann")
    bob = sign_up("bob")
    assert bob.post("/functions/registerInit", {"username": "ann"}).error == (400, 202)
    options = register_init("carol", bob)
    answer = result(complete(options, Authenticator().create(options), bob))
    assert answer["user"]["id"] != bob.user_id
    assert listed(bob) == []


def test_a_second_factor_is_requested(client):
    ann = sign_up("ann")
    secret = base64.b32encode(b"12345678901234567890").decode()

    def token(step: int) -> str:
        now = int(time.time()) // second_factor.STEP
        return second_factor.one_time_password(b"12345678901234567890", now + step)

    second_factor.set_up(ann.user_id, {"secret": secret, "token": token(-1)})
    options = register_init("ann", ann)
    signed = Authenticator().create(options)
    assert complete(options, signed, ann).error == (400, -1)
    assert complete(options, signed, ann, mfaToken="000000").error == (400, 141)
    assert not Passkey.objects.exists()
    assert complete(options, signed, ann, mfaToken=token(0)).status == 200


def test_there_is_an_end_to_how_many(client, monkeypatch):
    monkeypatch.setattr(keys, "MOST", 2)
    ann = sign_up("ann")
    add(ann)
    add(ann)
    options = register_init("ann", ann)
    assert complete(options, Authenticator().create(options), ann).error == (400, 142)


def test_users_see_and_remove_their_own(client):
    ann, bob = sign_up("ann"), sign_up("bob")
    first, second, bobs = add(ann, name="Phone"), add(ann, name="Key"), add(bob)
    shown = {item["id"]: item for item in result(ann.post("/functions/listPasskeys"))}
    assert {item["name"] for item in shown.values()} == {"Phone", "Key"}
    assert shown[first.id]["lastUsedAt"] is None
    assert set(shown) == {first.id, second.id}
    assert ann.post("/functions/removePasskey", {"id": bobs.id}).error == (404, 101)
    assert ann.post("/functions/removePasskey", {"id": first.id}).status == 200
    assert log_in(first).error == (400, 141)
    assert listed(ann) == [second.id]
    assert listed(bob) == [bobs.id]


def test_the_last_one_takes_the_identity_with_it(client):
    ann = sign_up("ann")
    only = add(ann)
    assert Identity.objects.filter(provider="passkey").count() == 1
    assert ann.post("/functions/removePasskey", {"id": only.id}).status == 200
    assert "passkey" not in ann.get("/users/me").json.get("authData", {})
    assert not Identity.objects.filter(provider="passkey").exists()
    add(ann)
    assert Identity.objects.filter(provider="passkey").count() == 1


def test_the_only_way_into_an_account_stays(db):
    authenticator, answer = register("ann")
    ann = with_token(answer["token"])
    assert ann.post("/functions/removePasskey", {"id": authenticator.id}).error == (400, 119)
    ann.put(f"/users/{answer['user']['id']}", {"password": "now I have one"})
    (session,) = Api(MASTER).results("_Session")
    assert session["user"]["objectId"] == answer["user"]["id"]
    assert log_in(authenticator).status == 200


@pytest.mark.parametrize("name", ["listPasskeys", "removePasskey"])
def test_without_a_user_there_is_nothing_to_see(db, name):
    for api in (ANYBODY, Api(MASTER), Api(READ_ONLY)):
        assert api.post(f"/functions/{name}", {"id": "x"}).error == (400, 142)


def test_taking_the_identity_away_takes_all_of_them(client, master):
    ann = sign_up("ann")
    passkeys = [add(ann), add(ann)]
    reply = master.put(f"/users/{ann.user_id}", {"authData": {"passkey": None}})
    assert reply.status == 200
    assert not Passkey.objects.exists()
    for passkey in passkeys:
        assert log_in(passkey).error == (400, 141)


def test_no_one_claims_the_identity_by_authdata(client):
    _, answer = register("ann")
    bob = sign_up("bob")
    claim = {"authData": {"passkey": {"id": answer["user"]["id"]}}}
    assert client.post("/users", claim).error == (400, 252)
    assert bob.put(f"/users/{bob.user_id}", claim).error == (400, 252)


def test_passkeys_go_with_their_user_and_wallets_stay(master):
    authenticator, answer = register("ann")
    assert master.delete(f"/users/{answer['user']['id']}").status == 200
    assert not Passkey.objects.exists()
    assert Wallet.objects.count() == 1  # what is on them isn't gone
    assert log_in(authenticator).error == (400, 141)


def test_what_has_expired_is_cleared_away(db):
    register_init("ann")
    register_init("bob")
    first = PasskeyChallenge.objects.first()
    assert first is not None
    PasskeyChallenge.objects.filter(pk=first.pk).update(expires_at="2020-01-01T00:00:00Z")
    expired.remove_expired()
    assert PasskeyChallenge.objects.count() == 1


def test_staff_see_passkeys_and_administrators_take_them_off(client):
    ann = sign_up("ann")
    authenticator = add(ann, name="<Phone>")
    assert log_in(authenticator).status == 200
    page = f"/admin/people/users/{ann.user_id}/"
    viewer = logged_in(VIEWERS)
    shown = viewer.get(page).text
    assert "&lt;Phone&gt;, since 20" in shown
    assert "last used 20" in shown
    assert authenticator.id not in shown
    off = {"provider": "passkey"}
    assert logged_in(EDITORS).post(f"{page}unlink/", off).status_code == 403
    assert logged_in(ADMINISTRATORS).post(f"{page}unlink/", off).status_code == 302
    assert not Passkey.objects.exists()
    assert "Phone" not in viewer.get(page).text
