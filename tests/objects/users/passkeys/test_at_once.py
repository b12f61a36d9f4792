"""Passkeys when requests come at the same moment."""

from __future__ import annotations

import pytest

from chain.models import Identity
from chain.models.signing import Wallet
from objects.users.models import User as UserRow
from objects.users.passkeys.models import Passkey, PasskeyChallenge
from tests.objects.users.passkeys.authenticator import Authenticator
from tests.objects.users.passkeys.calls import (
    complete,
    log_in_complete,
    log_in_init,
    register,
    register_init,
)
from tests.people import sign_up
from tests.rest import MASTER, Api
from tests.threads import at_once

pytestmark = pytest.mark.django_db(transaction=True)


def made() -> tuple[int, int, int, int]:
    models = (UserRow, Passkey, Wallet, Identity)
    users, passkeys, wallets, identities = (model.objects.count() for model in models)
    return users, passkeys, wallets, identities


def test_of_requests_with_one_token_one_succeeds():
    options = register_init("ann")
    signed = Authenticator().create(options)
    replies = at_once([lambda: complete(options, signed)] * 4)
    assert sorted(reply.status for reply in replies) == [200, 400, 400, 400]
    assert {reply.json.get("code") for reply in replies} == {None, 141}
    assert made() == (1, 1, 1, 1)
    assert len(Api(MASTER).results("_Session")) == 1
    assert not PasskeyChallenge.objects.exists()


def test_of_users_with_one_name_one_succeeds():
    responses = [register_init(name) for name in ("ann", "ANN", "Ann", "aNN")]
    replies = at_once(
        [
            lambda options=options: complete(options, Authenticator().create(options))
            for options in responses
        ]
    )
    assert sorted(reply.status for reply in replies) == [200, 400, 400, 400]
    assert {reply.json.get("code") for reply in replies} == {None, 202}
    assert made() == (1, 1, 1, 1)


def test_of_users_with_one_passkey_one_succeeds():
    authenticator = Authenticator()
    responses = [register_init(name) for name in ("ann", "bob", "cat")]
    signed = [authenticator.create(options) for options in responses]
    replies = at_once(
        [
            lambda options=options, answer=answer: complete(options, answer)
            for options, answer in zip(responses, signed, strict=True)
        ]
    )
    assert sorted(reply.status for reply in replies) == [200, 400, 400]
    assert {reply.json.get("code") for reply in replies} == {None, 141}
    assert made() == (1, 1, 1, 1)


def test_of_signatures_with_one_count_one_logs_in():
    authenticator, _ = register("ann")
    responses = [log_in_init() for _ in range(4)]
    signed = []
    for options in responses:
        authenticator.counter = 6
        signed.append(authenticator.get(options))
    replies = at_once(
        [
            lambda options=options, answer=answer: log_in_complete(options, answer)
            for options, answer in zip(responses, signed, strict=True)
        ]
    )
    assert sorted(reply.status for reply in replies) == [200, 400, 400, 400]
    assert Passkey.objects.get().sign_count == 7


def test_a_first_passkey_and_a_second_one_at_once_are_both_there():
    ann = sign_up("ann")
    responses = [register_init("ann", ann) for _ in range(3)]
    replies = at_once(
        [
            lambda options=options: complete(options, Authenticator().create(options), ann)
            for options in responses
        ]
    )
    assert [reply.status for reply in replies] == [200, 200, 200]
    assert made() == (1, 3, 1, 1)
