"""Passkeys of staff, with an authenticator in software."""

from __future__ import annotations

import html
import json
import re
from typing import Any

import pytest

from objects.staff.models import StaffPasskey
from tests.objects.staff.accounts import SET_UP, START, STEP, Person, person, shown_codes
from tests.objects.users.passkeys.authenticator import Authenticator
from tests.objects.users.passkeys.calls import register

pytestmark = pytest.mark.django_db


def options_of(page: Any) -> tuple[dict[str, Any], str]:
    """The options and the token of the page's passkey form."""
    options = re.search(r'data-options="([^"]+)"', page.text)
    token = re.search(r'name="token" value="([^"]+)"', page.text)
    assert options is not None
    assert token is not None
    return json.loads(html.unescape(options[1])), token[1]


def add(person: Person, authenticator: Authenticator, name: str = "Laptop") -> Any:
    options, token = options_of(person.client.get(SET_UP))
    answer = json.dumps(authenticator.create(options))
    form = {"action": "passkey", "token": token, "answer": answer, "name": name}
    return person.client.post(SET_UP, form)


def use(person: Person, authenticator: Authenticator) -> Any:
    options, token = options_of(person.client.get(STEP))
    answer = json.dumps(authenticator.get(options))
    return person.client.post(STEP, {"token": token, "answer": answer})


@pytest.fixture
def bare(mode) -> Person:
    mode("required")
    bare = person(with_app=False)
    bare.log_in()
    return bare


@pytest.fixture
def key() -> Authenticator:
    return Authenticator(origin="http://localhost")


@pytest.fixture
def root(bare, key) -> Person:
    bare.codes = shown_codes(add(bare, key))
    return bare


def test_a_passkey_is_a_second_factor_with_recovery_codes(root, key):
    assert len(root.codes) == 8
    assert root.is_in
    other = Person(root.user)
    other.log_in()
    assert not other.is_in
    assert use(other, key).headers["Location"] == START
    assert other.is_in
    third = Person(root.user)
    third.log_in()
    third.enter(root.codes[0])
    assert third.is_in


def test_a_second_passkey_makes_no_new_codes(root):
    reply = add(root, Authenticator(origin="http://localhost"), "Phone")
    assert reply.headers["Location"] == SET_UP
    page = root.client.get(SET_UP).text
    assert ("Laptop" in page, "Phone" in page, "8 left" in page) == (True, True, True)


def test_the_last_one_stays_where_one_is_required(root, key):
    page = root.client.post(SET_UP, {"action": "remove-passkey", "id": key.id})
    assert "It is your only second factor." in page.text
    add(root, Authenticator(origin="http://localhost"))
    root.client.post(SET_UP, {"action": "remove-passkey", "id": key.id})
    assert StaffPasskey.objects.exclude(credential_id=key.id).count() == 1
    assert root.is_in


def test_another_s_passkey_is_not_removed(root, key, mode):
    mode("optional")
    eve = person("eve", with_app=False)
    eve.log_in()
    eve.client.post(SET_UP, {"action": "remove-passkey", "id": key.id})
    assert StaffPasskey.objects.count() == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"origin": "https://example.org"},
        {"says_rp": "example.org"},
        {"says_challenge": "AAAA"},
        {"says_type": "webauthn.create"},
        {"in_frame": True},
        {"counter": 0},
        {"flags": 0},
    ],
    ids=str,
)
def test_a_signature_that_does_not_hold_opens_nothing(root, key, wrong):
    other = Person(root.user)
    other.log_in()
    use(other, key)
    third = Person(root.user)
    third.log_in()
    for name, value in wrong.items():
        setattr(key, name, value)
    assert "The passkey could not be verified." in use(third, key).text
    assert not third.is_in


def test_a_signature_works_once_and_for_its_own_account(root, key):
    other = Person(root.user)
    other.log_in()
    options, token = options_of(other.client.get(STEP))
    form = {"token": token, "answer": json.dumps(key.get(options))}
    eve = person("eve")
    eve.log_in()
    assert "another account" in eve.client.post(STEP, form).text
    assert not eve.is_in
    assert other.client.post(STEP, form).status_code == 302
    third = Person(root.user)
    third.log_in()
    assert "used before" in third.client.post(STEP, form).text
    assert not third.is_in


def test_a_user_s_passkey_is_no_staff_user_s_nor_the_other_way_round(root, key, settings):
    settings.SERVICE = {**settings.SERVICE, "PUBLIC_URL": "http://localhost"}
    theirs, _ = register("ann", Authenticator(origin="http://localhost"))
    other = Person(root.user)
    other.log_in()
    assert "The passkey could not be verified." in use(other, theirs).text
    assert not other.is_in


@pytest.mark.parametrize("answer", ["{", "[]", "7", "[" * 100_000, '{"type": "public-key"}'])
def test_an_answer_that_is_none_is_refused(root, bare, answer):
    _, token = options_of(root.client.get(SET_UP))
    form = {"action": "passkey", "token": token, "answer": answer}
    assert "The passkey could not be verified." in root.client.post(SET_UP, form).text


def test_an_address_offers_no_passkeys(bare):
    page = bare.client.get(SET_UP, headers={"host": "127.0.0.1:8000"})
    assert "data-passkey" not in page.text
