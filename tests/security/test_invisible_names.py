"""No account takes a name or address that looks exactly like another one.

Accounts whose names are older than the rules still log in, and can be changed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from django.core.signals import setting_changed

from backend.kernel.errors import InvalidEmailAddress, UsernameMissing
from backend.kernel.texts.spelling import name_key
from objects import triggers
from objects.users.accounts import directory
from objects.users.models import User
from objects.users.names import check_new_email, check_new_username
from tests.backend.commands.conftest import run
from tests.objects.access.transports import TRANSPORTS, Send
from tests.objects.admin.staff import logged_in
from tests.objects.users.passkeys.calls import log_in_init, register_init
from tests.people import PASSWORD, log_in, sign_up
from tests.people import User as Person
from tests.rest import CLIENT, MASTER, Api, Reply

ANYBODY, SERVER = Api(CLIENT), Api(MASTER)
LIKE_ANN = {
    "zero width space": "an\u200bn",
    "non-joiner between Latin letters": "an\u200cn",
    "joiner between Latin letters": "an\u200dn",
    "soft hyphen": "an\u00adn",
    "right-to-left override": "\u202eann",
    "pop directional formatting": "ann\u202c",
    "isolate": "\u2066ann\u2069",
    "right-to-left mark": "ann\u200f",
    "byte order mark": "\ufeffann",
    "word joiner": "an\u2060n",
    "Mongolian vowel separator": "an\u180en",
    "Mongolian variation selector": "an\u180bn",
    "variation selector": "ann\ufe0f",
    "ideographic variation selector": "ann\U000e0100",
    "tag": "ann\U000e0041",
    "combining grapheme joiner": "an\u034fn",
    "Hangul filler": "ann\u3164",
    "halfwidth Hangul filler": "ann\uffa0",
    "interlinear annotation": "ann\ufff9",
    "Braille blank": "ann\u2800",
    "null notehead": "ann\U0001d159",
    "line separator": "an\u2028n",
    "noncharacter": "ann\ufffe",
    "reserved ignorable": "ann\U000e0fff",
    "joiner after an emoji": "ann\U0001f44d\u200d",
    "tags after a letter": "ann\U000e0067\U000e0062\U000e007f",
    "variation selector after a digit": "ann1\ufe0f",
}
SPACES = [" ", "\u00a0", "\u1680", "\u2003", "\u202f", "\u205f", "\u3000"]
SEEN = [
    "ann smith", "ann+1", "ann@example.org", "José", "Jose\u0301", "Анна", "安娜", "한글",
    "אנה", "آنا", "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", "\u0915\u094d\u200d\u0937",
    "\u0d9a\u0dca\u200d\u0dbb", "ann 👍", "👍🏽", "❤️", "☎︎", "👨‍👩‍👧", "🏳️‍🌈", "🕵🏽‍♂️", "🙂‍↔️", "🇩🇪",
    "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f", "1️⃣",
    "ann\u00a0smith", "a-b_c.d", "50% off", "ann\ufffd",
]  # fmt: skip


def refused(reply: Reply, code: int, place: str) -> None:
    assert reply.error == (400, code), reply.json
    assert reply.json["error"].startswith(f"{place}: "), reply.json


# -- Which names -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LIKE_ANN.values(), ids=LIKE_ANN)
def test_a_name_with_an_invisible_character_is_refused_and_the_character_named(name):
    with pytest.raises(UsernameMissing, match=r"username: invisible character U\+[0-9A-F]{4,5}\."):
        check_new_username(name)
    with pytest.raises(InvalidEmailAddress):
        check_new_email(f"{name}@example.org")
    with pytest.raises(InvalidEmailAddress):
        check_new_email(f"ann@{name}.example.org")


@pytest.mark.parametrize("space", SPACES)
def test_a_name_does_not_begin_or_end_with_a_space(space):
    for name in (f"{space}ann", f"ann{space}", space):
        with pytest.raises(UsernameMissing):
            check_new_username(name)


@pytest.mark.parametrize("name", ["\u200b", "\u2060\u200d", "\u3164", "\U000e0041", "\u2800"])
def test_a_name_of_invisible_characters_alone_is_refused(name):
    with pytest.raises(UsernameMissing):
        check_new_username(name)


@pytest.mark.parametrize("name", SEEN)
def test_names_in_all_scripts_spaces_inside_symbols_and_emoji_are_accepted(name):
    assert check_new_username(name) == name


@pytest.mark.parametrize(
    "address", ["ann+news@example.org", "анна@пример.рф", "👍@example.org", "josé@example.org"]
)
def test_addresses_in_all_scripts_are_accepted(address):
    assert check_new_email(address) == address


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("❤️", "❤"),
        ("ann smith", "ann  smith"),
        ("ann smith", "ann\u00a0smith"),
        ("ann smith", "Ann\u2003\u2003Smith"),
        ("ann\u1680smith", "ann smith"),
        ("\u0645\u06cc\u200c\u062e\u0648", "\u0645\u06cc\u062e\u0648"),
        ("👨‍👩‍👧", "👨👩👧"),
    ],
)  # fmt: skip
def test_names_that_differ_in_what_no_one_sees_are_one_name(db, name, other):
    assert name_key(name) == name_key(other)
    sign_up(name)
    reply = ANYBODY.post("/users", {"username": other, "password": PASSWORD})
    assert reply.error == (400, 202)
    assert log_in(other).status == 200


@pytest.mark.parametrize("mark", ["\u200b", "\u00ad", "\u202e", "\ufe0f", "\u00a0", "\U000e0041"])
def test_names_of_other_things_have_no_invisible_characters(master, mark):
    """Refused by their grammars."""
    name = f"Ga{mark}me"
    acl = {"*": {"read": True}}
    for reply, code in (
        (master.post("/roles", {"name": name, "ACL": acl}), 139),
        (master.post(f"/classes/{quote(name)}", {"score": 1}), 103),
        (master.post(f"/schemas/{quote(name)}", {}), 103),
        (master.post("/classes/Game", {name: 1}), 105),
        (master.put("/config", {"params": {name: 1}}), 105),
        (master.call("POST", f"/files/{quote(name)}.txt", raw=b"x"), 122),
        (master.post("/hooks/functions", {"functionName": name, "url": "https://a.org"}), 143),
        (master.post(f"/functions/{quote(name)}"), 141),
    ):
        assert reply.error == (400, code), reply.json


# -- Every way to a name ---------------------------------------------------------------------------

BADGE = {"badge": {"number": "123", "pin": "321"}}
FAKE = LIKE_ANN["zero width space"]
Attempt = Callable[[str, Any], Reply]


@pytest.fixture
def badges(settings) -> Iterator[None]:
    settings.SERVICE = {
        **settings.SERVICE,
        "AUTH_ADAPTERS": {"badge": {"adapter": "tests.objects.users.badge.Badge"}},
    }
    yield
    setting_changed.send(None, setting="SERVICE", value=None, enter=False)


@pytest.fixture(params=TRANSPORTS, ids=[transport.__name__ for transport in TRANSPORTS])
def send(request) -> Send:
    transport: Send = request.param
    return transport


@pytest.fixture
def bob(db, badges) -> Person:
    sign_up("ann", email="ann@example.org")
    return sign_up("bob")


FIELDS = [("username", FAKE, 200), ("email", f"{FAKE}@example.org", 125)]


@pytest.mark.parametrize(("field", "value", "code"), FIELDS)
def test_no_one_signs_up_or_is_created_with_it(bob, send, field, value, code):
    body = {"username": "carl", "password": PASSWORD, field: value}
    for api in (ANYBODY, SERVER):
        for path in ("/users", "/classes/_User"):
            refused(send(api, "POST", path, body), code, field)
            refused(send(api, "POST", path, {**body, "authData": BADGE}), code, field)
    assert User.objects.count() == 2


@pytest.mark.parametrize(("field", "value", "code"), FIELDS)
def test_no_one_is_renamed_to_it(bob, send, field, value, code):
    for api in (bob, SERVER):
        for path in (f"/users/{bob.user_id}", f"/classes/_User/{bob.user_id}"):
            refused(send(api, "PUT", path, {field: value}), code, field)
    assert SERVER.get(f"/users/{bob.user_id}").json["username"] == "bob"


@pytest.mark.parametrize(("field", "value", "code"), FIELDS)
def test_a_trigger_can_not_choose_it(bob, field, value, code):
    def rename(occasion: triggers.Occasion) -> None:
        assert occasion.object is not None
        occasion.object[field] = value

    triggers.register("before_save", "_User", rename)
    try:
        body = {"username": "carl", "password": PASSWORD}
        refused(ANYBODY.post("/users", body), code, field)
        refused(bob.put(f"/users/{bob.user_id}", {"colour": "red"}), code, field)
    finally:
        triggers.unregister("before_save", "_User", rename)


def test_a_passkey_is_not_registered_for_it(bob):
    reply = ANYBODY.post("/functions/registerInit", {"username": FAKE})
    assert reply.error == (400, 141)
    assert reply.json["error"].startswith("Invalid parameter username: ")


@pytest.mark.parametrize(("field", "value", "code"), FIELDS)
def test_it_is_not_imported(bob, tmp_path: Path, field, value, code):
    path = tmp_path / "users.ndjson"
    row = {"username": "carl", "password": PASSWORD, field: value}
    path.write_text(json.dumps(row) + "\n")
    report = run("import_objects", "_User", str(path), "--on-error", "skip")
    assert "0 objects stored, 1 rows left out" in report.out
    assert f"{field}: invisible character U+200B" in report.out + report.err
    assert User.objects.count() == 2


@pytest.mark.parametrize(("field", "value", "code"), FIELDS)
def test_staff_do_not_set_it(bob, field, value, code):
    staff = logged_in()
    path = f"/admin/data/_User/o/{bob.user_id}/"
    stored = SERVER.get(f"/users/{bob.user_id}").json
    page = staff.post(f"{path}", {f"f.{field}": value, "updatedAt": stored["updatedAt"]})
    assert f"{field}: invisible character U+200B" in page.text
    form = {"f.username": "carl", "f.password": PASSWORD, f"f.{field}": value}
    page = staff.post("/admin/data/_User/add/", form)
    assert f"{field}: invisible character U+200B" in page.text
    assert User.objects.filter(username__in=("ann", "bob")).count() == User.objects.count() == 2


@pytest.mark.parametrize("name", LIKE_ANN.values())
def test_it_finds_no_account_by_login(bob, name):
    assert log_in(name).error == (404, 101)


@pytest.mark.parametrize("name", [*LIKE_ANN.values(), "ann ", "\u3000ann"])
def test_it_names_no_account(bob, name):
    assert directory.user_named(name) is directory.id_of_name(name) is None


# -- Accounts from before --------------------------------------------------------------------------

FORMER = [FAKE, "\u202eann", "ann ", "\u200b", "ann  smith", "❤️"]


def address_of(name: str) -> str:
    return f"x{name.replace(' ', '')}@example.org"


@pytest.fixture(params=FORMER)
def former(request, bob) -> str:
    """The name of an account that was stored before the rules."""
    name: str = request.param
    sign_up("ann smith")
    email = address_of(name)
    User.objects.filter(object_id=bob.user_id).update(
        username=name, username_key=name, email=email, email_key=email
    )
    return name


def test_an_account_from_before_is_found_by_its_own_name(bob, former):
    assert log_in(former).json["objectId"] == bob.user_id
    by_address = {"email": address_of(former), "password": PASSWORD}
    assert ANYBODY.post("/login", by_address).json["objectId"] == bob.user_id
    assert directory.user_named(former) == directory.id_of_name(former) == bob.user_id
    assert bob.user_id in directory.search(former, 10)
    assert log_in_init(username=former)
    # Its look-alike is still found by its own.
    assert log_in("ann").json["objectId"] != bob.user_id


def test_an_account_from_before_can_be_changed_with_the_name_that_it_has(bob, former):
    same = {"username": former, "email": address_of(former), "colour": "red"}
    assert bob.put(f"/users/{bob.user_id}", same).status == 200
    assert bob.put(f"/users/{bob.user_id}", {"password": "another correct horse"}).status == 200
    assert log_in(former, "another correct horse").status == 200


def test_an_account_from_before_adds_a_passkey(bob, former):
    user = Person(bob.headers, user_id=bob.user_id, name=former, token=bob.token)
    assert register_init(former, user)
