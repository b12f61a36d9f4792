"""One-time passwords and recovery codes."""

from __future__ import annotations

import base64
import itertools
import time
from datetime import UTC, datetime

import pytest
import time_machine

from backend.kernel.errors import (
    InternalError,
    InvalidSecondFactor,
    SecondFactorMissing,
    ServiceUnavailable,
)
from objects.users.accounts import second_factor
from objects.users.models import RecoveryCode, SecondFactor, User
from tests.threads import at_once

SECRET = base64.b32encode(b"a secret of 20 bytes").decode()
OTHER = base64.b32encode(b"another 20 byte long").decode()
numbers = itertools.count(1)
NOW = datetime(2030, 1, 1, 12, 0, 15, tzinfo=UTC)


@pytest.fixture(autouse=True)
def frozen():
    with time_machine.travel(NOW, tick=False) as traveller:
        yield traveller


def new_user():
    """One of its own for each test: guesses are counted in Redis, for longer than a test."""
    user_id = f"alice{next(numbers)}"
    User.objects.create(object_id=user_id, created_at=NOW, updated_at=NOW)
    return user_id


@pytest.fixture
def user(db):
    return new_user()


def token(steps=0, secret=SECRET):
    step = int(time.time()) // second_factor.STEP + steps
    return second_factor.one_time_password(base64.b32decode(secret), step)


def set_up(user_id, steps=0, secret=SECRET, **more):
    return second_factor.set_up(user_id, {"secret": secret, "token": token(steps, secret), **more})


def refused(user_id, value, message="Invalid MFA token"):
    with pytest.raises(InvalidSecondFactor) as caught:
        second_factor.check(user_id, value)
    assert (caught.value.code, caught.value.status, caught.value.message) == (141, 400, message)
    return True


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        (59, "94287082"),
        (1111111109, "07081804"),
        (1111111111, "14050471"),
        (1234567890, "89005924"),
        (2000000000, "69279037"),
        (20000000000, "65353130"),
    ],
)
def test_passwords_are_those_of_the_standard(moment, expected):
    made = second_factor.one_time_password(b"12345678901234567890", moment // 30)
    assert made == expected[-6:]


def test_setting_up_gives_recovery_codes(user):
    assert second_factor.status(user) == {"status": "disabled"}
    codes = set_up(user)
    assert second_factor.status(user) == {"status": "enabled"}
    assert len(set(codes)) == 2
    assert all(len(code) == 30 and code.isalnum() for code in codes)


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"secret": SECRET},
        {"secret": None, "token": "1"},
        {"secret": 7, "token": "123456"},
        {"secret": "ABCDEFGHIJKLMNOPQRS", "token": "123456"},
        {"secret": "A" * 1000, "token": "123456"},
        {"secret": "1" * 32, "token": "123456"},
        {"secret": "\u00c4" * 32, "token": "123456"},
        {"secret": "AAAAAAAAAAAAAAAAAAAAAAAAA", "token": "123456"},
        {"secret": SECRET, "token": "000000"},
        {"secret": SECRET, "token": 123456},
        {"secret": SECRET, "token": ["123456"]},
        {"secret": SECRET, "token": "\u0661" * 6},
    ],
    ids=str,
)
def test_data_that_does_not_fit_sets_nothing_up(user, data):
    with pytest.raises(InvalidSecondFactor, match=r"Invalid MFA (data|token)"):
        second_factor.set_up(user, data)
    assert not second_factor.is_set_up(user)


def test_secrets_are_read_as_apps_write_them(user):
    spaced = " ".join(SECRET.lower()[i : i + 4] for i in range(0, len(SECRET), 4)) + "===="
    second_factor.set_up(user, {"secret": spaced, "token": token()})
    second_factor.check(user, token(1))


def test_a_right_token_counts(user, frozen):
    set_up(user)
    frozen.shift(30)
    second_factor.check(user, token())


def test_a_token_counts_once(user, frozen):
    set_up(user)
    assert refused(user, token()), "the one that set it up is used"
    frozen.shift(30)
    second_factor.check(user, token())
    assert refused(user, token())


def test_clocks_may_differ_by_one_step(user, frozen):
    set_up(user)
    frozen.shift(300)
    for steps in (-2, 2):
        assert refused(user, token(steps))
    for steps in (-1, 0, 1):
        second_factor.check(user, token(steps))


def test_an_earlier_token_does_not_count_after_a_later_one(user, frozen):
    set_up(user)
    frozen.shift(300)
    second_factor.check(user, token(1))
    assert refused(user, token())


@pytest.mark.parametrize(
    "value",
    [
        "",
        "12345",
        "1234567",
        " 123456",
        "\u0661" * 6,
        123456,
        True,
        [],
        {},
        "x" * 30,
        "0" * 1000,
        "\x00",
    ],
)
def test_what_is_no_token_is_refused(user, value):
    set_up(user)
    assert refused(user, value)


def test_no_token_is_told_from_a_wrong_one(user):
    set_up(user)
    with pytest.raises(SecondFactorMissing) as caught:
        second_factor.check(user, None)
    assert (caught.value.code, caught.value.message) == (-1, "Missing additional authData mfa")


def test_a_token_of_another_user_is_refused(user):
    other = new_user()
    set_up(user)
    codes = set_up(other, secret=OTHER)
    assert refused(user, token(1, OTHER))
    assert refused(user, codes[0])


def test_no_one_without_a_second_factor_passes_a_check(user):
    assert refused(user, token())
    assert refused(user, "x" * 30)


def test_a_recovery_code_counts_once(user):
    codes = set_up(user)
    for code in codes:
        second_factor.check(user, code)
        assert refused(user, code)
    assert second_factor.is_set_up(user)


def test_removing_takes_everything_away(user):
    codes = set_up(user)
    second_factor.remove(user)
    assert second_factor.status(user) == {"status": "disabled"}
    assert refused(user, codes[0])
    assert set_up(user), "and it can be set up again"


def test_another_one_needs_the_former(user):
    first_codes = set_up(user)
    for old in ({}, {"old": "000000"}, {"old": token(1, OTHER)}):
        with pytest.raises(InvalidSecondFactor):
            set_up(user, secret=OTHER, **old)
    second_factor.check(user, first_codes[0])
    codes = set_up(user, secret=OTHER, old=token(1))
    assert refused(user, first_codes[1]), "the former recovery codes are gone"
    second_factor.check(user, token(1, OTHER))
    second_factor.check(user, codes[0])


def test_a_former_one_is_not_used_up_by_a_set_up_that_fails(user):
    set_up(user)
    with pytest.raises(InvalidSecondFactor):
        second_factor.set_up(user, {"secret": OTHER, "token": "000000", "old": token(1)})
    second_factor.check(user, token(1))


def test_nothing_readable_is_kept(user):
    codes = set_up(user)
    factor = SecondFactor.objects.get(user_id=user)
    raw = base64.b32decode(SECRET)
    assert SECRET not in factor.secret
    assert base64.b64encode(raw).decode()[:12] not in factor.secret
    stored = [bytes(code.code_hash) for code in RecoveryCode.objects.filter(user_id=user)]
    assert len(stored) == 2
    assert not {code.encode() for code in codes} & set(stored)


def test_the_same_secret_is_never_kept_alike(user):
    other = new_user()
    set_up(user)
    set_up(other)
    first, second = SecondFactor.objects.values_list("secret", flat=True)
    assert first != second


def test_a_new_secret_key_still_reads_with_the_old_one_at_hand(user, settings):
    codes = set_up(user)
    former, settings.SECRET_KEY = settings.SECRET_KEY, "another secret key"
    with pytest.raises(InternalError):
        second_factor.check(user, token(1))
    second_factor.check(user, codes[0])
    settings.SECRET_KEY_FALLBACKS = [former]
    second_factor.check(user, token(1))


# -- Guessing -----------------------------------------------------------------------------------

TOO_MANY = "Too many wrong MFA tokens. Use a recovery code or try later."


def test_after_ten_wrong_tokens_no_token_counts(user):
    codes = set_up(user)
    for _ in range(10):
        assert refused(user, token(5))
    assert refused(user, token(1), TOO_MANY)
    second_factor.check(user, codes[0])
    second_factor.check(user, token(1))


def test_a_right_token_restarts_the_count(user, frozen):
    set_up(user)
    for _ in range(3):
        for _ in range(9):
            assert refused(user, token(5))
        frozen.shift(30)
        second_factor.check(user, token())


def test_guesses_at_one_user_are_not_anothers(user):
    other = new_user()
    set_up(user)
    set_up(other)
    for _ in range(11):
        with pytest.raises(InvalidSecondFactor):
            second_factor.check(other, token(5))
    second_factor.check(user, token(1))


def test_without_redis_only_recovery_codes_count(user, settings):
    codes = set_up(user)
    settings.REDIS_URL = "unix:///nowhere/redis.sock"
    with pytest.raises(ServiceUnavailable):
        second_factor.check(user, token(1))
    second_factor.check(user, codes[0])
    assert refused(user, codes[0])


# -- At once ------------------------------------------------------------------------------------


def outcomes(user_id, value, count=12):
    def attempt():
        try:
            second_factor.check(user_id, value)
        except InvalidSecondFactor:
            return False
        return True

    return at_once([attempt] * count)


@pytest.mark.django_db(transaction=True)
def test_of_many_uses_of_a_token_at_once_one_counts(frozen):
    user = new_user()
    set_up(user)
    for _ in range(5):
        frozen.shift(30)
        # So few that those which come after the one that counts are no reason to refuse the next.
        assert outcomes(user, token(), count=5).count(True) == 1


@pytest.mark.django_db(transaction=True)
def test_of_many_uses_of_a_recovery_code_at_once_one_counts():
    user = new_user()
    for code in set_up(user):
        assert outcomes(user, code).count(True) == 1


@pytest.mark.django_db(transaction=True)
def test_guesses_at_once_are_counted_one_by_one(frozen):
    user = new_user()
    set_up(user)
    frozen.shift(30)
    assert outcomes(user, "000000000", 16) == [False] * 16
    assert refused(user, token(), TOO_MANY)


@pytest.mark.django_db(transaction=True)
def test_of_many_set_ups_at_once_one_counts():
    user = new_user()

    def attempt():
        try:
            return set_up(user)
        except InvalidSecondFactor:
            return None

    made = [codes for codes in at_once([attempt] * 8) if codes]
    assert len(made) == 1
    assert RecoveryCode.objects.filter(user_id=user).count() == 2
    second_factor.check(user, made[0][0])
