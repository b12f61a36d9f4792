"""Users that come from Parse Server: their hashes, and the internal fields of their accounts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import bcrypt
import pytest

from objects.users.email import tokens
from objects.users.models import FormerPassword, MailToken, Password
from tests.mailbox import Postbox
from tests.people import log_in, sign_up
from tests.rest import CLIENT, MAINTENANCE, MASTER, Api


@pytest.fixture
def maintenance(db: None) -> Api:
    return Api(MAINTENANCE)


def hashed(password: str, prefix: bytes = b"2b") -> str:
    """The hash of a password as Parse Server stores it, with the least work."""
    salt = bcrypt.gensalt(4, prefix=b"2b")
    encoded = bcrypt.hashpw(password.encode()[:72], salt).decode()
    return encoded.replace("$2b$", f"${prefix.decode()}$", 1)


def date(moment: datetime) -> dict[str, str]:
    text = moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return {"__type": "Date", "iso": text}


def imported(maintenance: Api, name: str = "ann", **fields: Any) -> str:
    reply = maintenance.post("/users", {"username": name, **fields})
    assert reply.status == 201, reply.json
    assert "sessionToken" not in reply.json
    return str(reply.json["objectId"])


@pytest.mark.parametrize("prefix", [b"2a", b"2b", b"2y"])
def test_a_user_logs_in_with_the_password_of_the_hash(maintenance: Api, prefix: bytes) -> None:
    user_id = imported(maintenance, _hashed_password=hashed("correct horse", prefix))
    assert log_in("ann", "wrong horse").error == (404, 101)
    assert log_in("ann").json["objectId"] == user_id


def test_a_login_replaces_the_hash_by_one_of_the_service(maintenance: Api) -> None:
    user_id = imported(maintenance, _hashed_password=hashed("correct horse"))
    assert Password.objects.get(user_id=user_id).encoded.startswith("bcrypt$$2b$")
    assert log_in("ann", "wrong horse").status == 404
    assert Password.objects.get(user_id=user_id).encoded.startswith("bcrypt$$2b$")
    assert log_in("ann").status == 200
    assert Password.objects.get(user_id=user_id).encoded.startswith("argon2$argon2id$")
    assert log_in("ann").status == 200


def test_of_a_long_password_the_first_72_bytes_count_until_then(maintenance: Api) -> None:
    long = "x" * 80
    imported(maintenance, _hashed_password=hashed(long))
    assert log_in("ann", "x" * 71).status == 404
    assert log_in("ann", long).status == 200
    assert log_in("ann", "x" * 72).status == 404


@pytest.mark.parametrize(
    "value",
    [
        "plain text",
        "",
        5,
        [],
        "$2b$31$" + "a" * 53,
        "$2b$99$" + "a" * 53,
        "$2b$10$short",
        "md5$salt$0123456789abcdef",
        "bcrypt$$2b$10$" + "a" * 53,
        "argon2$\u00e9$",
        "x$" * 400,
        "argon2$x",
        "argon2$argon2id$v=19$m=999999,t=2,p=1$c2FsdHNhbHQ$aGFzaGhhc2hoYXNoaGFzaGhhc2g",
        "argon2$argon2id$v=19$m=8,t=99,p=1$c2FsdHNhbHQ$aGFzaGhhc2hoYXNoaGFzaGhhc2g",
        "pbkdf2_sha256$999999999$salt$aGFzaGhhc2g=",
    ],
)
def test_what_is_no_hash_is_refused(maintenance: Api, value: Any) -> None:
    reply = maintenance.post("/users", {"username": "ann", "_hashed_password": value})
    assert reply.error == (400, 111)
    assert maintenance.get("/users").json["results"] == []


def test_a_hash_of_the_service_is_taken_as_it_is(maintenance: Api) -> None:
    ann = sign_up("ann")
    encoded = Password.objects.get(user_id=ann.user_id).encoded
    imported(maintenance, "bob", _hashed_password=encoded)
    assert log_in("bob").status == 200


def test_only_the_maintenance_key_sets_internal_fields(db: None) -> None:
    ann = sign_up("ann")
    for api in (Api(CLIENT), Api(MASTER)):
        body = {"username": "bob", "password": "p", "_hashed_password": hashed("p")}
        assert api.post("/users", body).error == (400, 105)
    for api in (ann, Api(MASTER)):
        assert api.put(f"/users/{ann.user_id}", {"_failed_login_count": 0}).error == (400, 105)
    assert log_in("ann").status == 200


@pytest.mark.parametrize("name", ["_rperm", "_wperm", "_session_token", "_tombstone", "_x", "__op"])
def test_other_internal_names_are_refused(maintenance: Api, name: str) -> None:
    reply = maintenance.post("/users", {"username": "ann", "password": "p", name: "x"})
    assert reply.error == (400, 105)
    assert reply.json["error"] == f"Invalid field name: {name}."


def test_an_account_is_imported_with_its_state(maintenance: Api) -> None:
    soon = datetime.now(UTC) + timedelta(hours=1)
    earlier = datetime(2020, 1, 1, tzinfo=UTC)
    user_id = imported(
        maintenance,
        email="ann@example.org",
        _hashed_password=hashed("correct horse"),
        _password_history=[hashed("former horse")],
        _password_changed_at=date(earlier),
        _failed_login_count=3,
        _account_lockout_expires_at=date(soon),
        _perishable_token="0123456789abcdefghijklmno",
        _perishable_token_expires_at=date(soon),
        _email_verify_token="abcdefghijklmno0123456789",
    )
    assert FormerPassword.objects.filter(user_id=user_id).count() == 1
    holder = tokens.holder_of("0123456789abcdefghijklmno", tokens.RESET)
    assert (holder.user_id, holder.address) == (user_id, "ann@example.org")
    assert tokens.holder_of("abcdefghijklmno0123456789", tokens.VERIFY).user_id == user_id
    (user,) = maintenance.get("/users").json["results"]
    assert user["_password_changed_at"] == date(earlier)
    assert user["_failed_login_count"] == 3
    assert user["_account_lockout_expires_at"] == date(soon)
    assert user["_perishable_token_expires_at"] == date(soon)
    assert "_email_verify_token_expires_at" in user
    assert maintenance.get(f"/users/{user_id}").json == user


def test_fields_are_changed_and_removed(maintenance: Api) -> None:
    user_id = imported(
        maintenance,
        email="ann@example.org",
        _hashed_password=hashed("correct horse"),
        _failed_login_count=3,
        _perishable_token="0123456789abcdefghijklmno",
    )
    path = f"/users/{user_id}"
    until = datetime.now(UTC) + timedelta(minutes=5)
    body = {
        "_failed_login_count": 0,
        "_perishable_token_expires_at": until.isoformat(),
        "_account_lockout_expires_at": None,
    }
    assert maintenance.put(path, body).status == 200
    user = maintenance.get(path).json
    assert user["_failed_login_count"] == 0
    assert user["_perishable_token_expires_at"]["iso"][:19] == until.isoformat()[:19]
    assert maintenance.put(path, {"_perishable_token": {"__op": "Delete"}}).status == 200
    assert not MailToken.objects.filter(user_id=user_id).exists()
    assert log_in("ann").status == 200
    assert maintenance.put(path, {"_hashed_password": hashed("new horse")}).status == 200
    assert log_in("ann").status == 404
    assert log_in("ann", "new horse").status == 200


def test_hashes_and_tokens_are_never_shown(maintenance: Api) -> None:
    token = "0123456789abcdefghijklmno"
    encoded = hashed("correct horse")
    user_id = imported(
        maintenance,
        email="ann@example.org",
        _hashed_password=encoded,
        _password_history=[encoded],
        _perishable_token=token,
    )
    for path in ("/users", f"/users/{user_id}", "/classes/_User"):
        text = str(maintenance.get(path).json)
        assert encoded not in text
        assert token not in text
        assert "_hashed_password" not in text


def test_other_keys_see_no_internal_field(maintenance: Api) -> None:
    user_id = imported(maintenance, _hashed_password=hashed("correct horse"), _failed_login_count=1)
    session = log_in("ann").json["sessionToken"]
    for headers in (CLIENT, MASTER, {**CLIENT, "X-Svc-Session-Token": session}):
        user = Api(headers).get(f"/users/{user_id}").json
        assert not [name for name in user if name.startswith("_")]


def test_an_account_keeps_its_times(maintenance: Api) -> None:
    created, updated = "2019-01-01T00:00:00.000Z", "2019-02-01T00:00:00.000Z"
    user_id = imported(
        maintenance,
        password="correct horse",
        _failed_login_count=0,
        createdAt={"__type": "Date", "iso": created},
        updatedAt={"__type": "Date", "iso": updated},
    )
    user = maintenance.get(f"/users/{user_id}").json
    assert (user["createdAt"], user["updatedAt"]) == (created, updated)


@pytest.mark.parametrize("password", ["a\0b", "x" * 1000, "\u00e9" * 40])
def test_any_password_is_compared_with_a_hash(maintenance: Api, password: str) -> None:
    imported(maintenance, _hashed_password=hashed("correct horse"))
    assert log_in("ann", password).error == (404, 101)


@pytest.mark.parametrize(
    "value",
    [
        "$2b$10$" + "z" * 53,
        "argon2$argon2id$v=19$m=8,t=1,p=1$AAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA",
        "argon2$argon2id$v=19$m=8,t=1,p=8$AAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAA",
    ],
)
def test_what_only_looks_like_a_hash_is_nobodys_password(maintenance: Api, value: str) -> None:
    reply = maintenance.post("/users", {"username": "ann", "_hashed_password": value})
    assert reply.status == 201
    assert log_in("ann").error == (404, 101)


@pytest.mark.usefixtures("verifying")
def test_an_import_sends_no_email_and_keeps_the_token_of_the_one_that_was_sent(
    maintenance: Api, postbox: Postbox
) -> None:
    token = "abcdefghijklmno0123456789"
    user_id = postbox.after(
        lambda: imported(
            maintenance,
            email="ann@example.org",
            _hashed_password=hashed("correct horse"),
            _email_verify_token=token,
        )
    )
    assert postbox.letters == []
    assert tokens.holder_of(token, tokens.VERIFY).user_id == user_id
    assert maintenance.get(f"/users/{user_id}").json["emailVerified"] is False


@pytest.mark.usefixtures("verifying")
def test_a_new_address_of_an_import_sends_no_email_and_ends_the_former_tokens(
    maintenance: Api, postbox: Postbox
) -> None:
    former, token = "0123456789abcdefghijklmno", "abcdefghijklmno0123456789"
    user_id = imported(
        maintenance, email="ann@example.org", password="correct horse", _perishable_token=former
    )
    body = {"email": "new@example.org", "_email_verify_token": token}
    assert postbox.after(lambda: maintenance.put(f"/users/{user_id}", body)).status == 200
    assert postbox.letters == []
    assert tokens.holder_of(token, tokens.VERIFY).address == "new@example.org"
    assert MailToken.objects.filter(user_id=user_id).count() == 1


def test_null_leaves_the_password_its_time_and_the_ends_of_tokens(maintenance: Api) -> None:
    earlier = datetime(2020, 1, 1, tzinfo=UTC)
    soon = datetime.now(UTC) + timedelta(hours=1)
    user_id = imported(
        maintenance,
        email="ann@example.org",
        _hashed_password=hashed("correct horse"),
        _password_changed_at=date(earlier),
        _perishable_token="0123456789abcdefghijklmno",
        _perishable_token_expires_at=date(soon),
        _password_history=[hashed("former horse")],
        _failed_login_count=3,
    )
    kept = ("_hashed_password", "_password_changed_at", "_perishable_token_expires_at")
    removed = ("_password_history", "_failed_login_count")
    body = dict.fromkeys((*kept, *removed))
    assert maintenance.put(f"/users/{user_id}", body).status == 200
    user = maintenance.get(f"/users/{user_id}").json
    assert user["_password_changed_at"] == date(earlier)
    assert user["_perishable_token_expires_at"] == date(soon)
    assert user["_failed_login_count"] == 0
    assert not FormerPassword.objects.filter(user_id=user_id).exists()
    assert Password.objects.filter(user_id=user_id).exists()
