"""Users, sessions, roles and installations in the admin: what is shown, done, and to whom."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth.models import User as Staff
from django.test import Client

from backend.kernel.principal import MASTER
from backend.logs import search as log_search
from backend.logs import store
from backend.logs.filters import LogFilter
from backend.site.staff import ADMINISTRATORS, EDITORS, VIEWERS
from objects import service
from objects.database import maintenance
from objects.database.statements import fetch
from objects.definitions import registry
from objects.users import roles
from objects.users.accounts import second_factor
from objects.users.accounts.directory import search, standing, user_named
from objects.users.models import FailedLogins, Identity, SecondFactor
from objects.users.models import User as StoredUser
from tests.callers import *  # noqa: F403
from tests.mailbox import *  # noqa: F403
from tests.objects.admin.log_records import *  # noqa: F403
from tests.objects.admin.staff import logged_in
from tests.people import PASSWORD, User, log_in, make_role, sign_up
from tests.rest import MASTER as MASTER_KEYS
from tests.rest import Api

pytestmark = pytest.mark.django_db

USERS = "/admin/people/users/"


@pytest.fixture
def ann() -> User:
    return sign_up("Ann", email="ann@example.org", colour="red")


def action(user: User, name: str) -> str:
    return f"{USERS}{user.user_id}/{name}/"


# -- Looking ---------------------------------------------------------------------------------------


def test_users_are_found_by_the_beginning_of_a_name_an_address_or_by_id(ann):
    bob = sign_up("bob", email="anneliese@example.org")
    assert search("ANN", 10) == [ann.user_id, bob.user_id]
    assert search("ann@", 10) == [ann.user_id]
    assert search(bob.user_id, 10) == [bob.user_id]
    assert search("ann", 1) == [ann.user_id]
    for nobody in ("", "zoe", "%", "_nn", "\x00", "x" * 300, "\U0010ffff"):
        assert search(nobody, 10) == []
    assert user_named("aNN") == user_named("ANN@example.org") == ann.user_id
    assert user_named(ann.user_id) == ann.user_id
    assert user_named("an") is None
    page = logged_in(VIEWERS).get(USERS, {"q": "ann"})
    assert ann.user_id in page.text
    assert bob.user_id in page.text


def test_no_one_is_found_where_no_one_is(ann):
    assert "No user's" in logged_in(VIEWERS).get(USERS, {"q": "zoe"}).text


def test_the_list_pages_from_the_newest_to_the_oldest_and_back():
    for number in range(55):
        service.create(MASTER, "_User", {"username": f"u{number:02}", "password": PASSWORD})
    # Several are made in one millisecond, and those would be in the order of their ids.
    fetch(
        "UPDATE objects_user SET created_at = '2026-01-01'::timestamptz"
        " + substr(username, 2)::integer * interval '1 s'",
        (),
        prepare=False,
    )
    staff = logged_in(VIEWERS)
    # The names stand alone in their cells. A random id may contain one.
    first = staff.get(USERS).text
    assert ">u54<" in first
    assert ">u04<" not in first
    older = re.search(r'rel="next" href="([^"]+)"', first)
    assert older is not None
    second = staff.get(USERS + older[1].replace("&amp;", "&")).text
    assert ">u04<" in second
    assert ">u05<" not in second
    newer = re.search(r'rel="prev" href="([^"]+)"', second)
    assert newer is not None
    assert ">u54<" in staff.get(USERS + newer[1]).text
    for odd in ("after=x", "before=%00", "after=W10", "after=WzEsMV0"):
        assert "there is no such page" in staff.get(f"{USERS}?{odd}").text


def test_the_page_of_a_user_shows_all_that_there_is(ann, master):
    inner = make_role(master, "Inner", [ann])
    make_role(master, "Outer", roles=[inner])
    Identity.objects.create(provider="github", external_id="42", user_id=ann.user_id)
    SecondFactor.objects.create(
        user_id=ann.user_id, secret="s", created_at="2026-01-02T03:04:05Z", last_step=0
    )
    FailedLogins.objects.create(user_id=ann.user_id, count=3, locked_until="2999-01-01T00:00:00Z")
    text = logged_in(VIEWERS).get(f"{USERS}{ann.user_id}/").text
    for shown in (
        *("Ann", "ann@example.org", "colour", "red", "Inner", "through Inner → Outer"),
        *("github", "42", "on since 2026-01-02 03:04", "locked until 2999-01-01", "3 wrong"),
        "signup password",
    ):
        assert shown in text, shown
    assert ann.token not in text
    assert "<form" not in text.partition('class="sv-sides"')[2].partition("</main>")[0]


def test_a_user_who_is_not_there(ann):
    staff = logged_in()
    for missing in ("missing000", "no id", "x" * 300):
        assert staff.get(f"{USERS}{missing}/").status_code == 404
        assert staff.post(f"{USERS}{missing}/unlock/").status_code == 404
    assert staff.post(f"{USERS}{ann.user_id}/dance/").status_code == 404
    assert standing("missing000").has_password is False


# -- Doing -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "groups"),
    [
        ("revoke", {EDITORS, ADMINISTRATORS}),
        ("revoke-all", {EDITORS, ADMINISTRATORS}),
        ("unlock", {EDITORS, ADMINISTRATORS}),
        ("send-reset", {EDITORS, ADMINISTRATORS}),
        ("set-password", {ADMINISTRATORS}),
        ("reset-second-factor", {ADMINISTRATORS}),
        ("unlink", {ADMINISTRATORS}),
        ("delete", {EDITORS, ADMINISTRATORS}),
    ],
)
def test_who_may_do_what(ann, name, groups):
    for group in (VIEWERS, EDITORS, ADMINISTRATORS):
        staff = logged_in(group)
        is_refused = staff.post(action(ann, name)).status_code == 403
        assert is_refused == (group not in groups), group
        assert staff.get(action(ann, name)).status_code in (403, 405)


def test_strangers_do_nothing(ann):
    for path in (USERS, f"{USERS}{ann.user_id}/", "/admin/people/sessions/"):
        assert Client().get(path).status_code == 302
    assert Client().post(action(ann, "revoke-all")).status_code == 302
    assert ann.get("/users/me").status == 200


def test_without_the_token_of_the_form_nothing_is_done(ann):
    staff = Client(enforce_csrf_checks=True)
    staff.force_login(Staff.objects.create_superuser("root"))
    assert staff.post(action(ann, "revoke-all")).status_code == 403
    assert ann.get("/users/me").status == 200


def sessions_of(user: User) -> list[dict[str, Any]]:
    where = {"user": user.pointer}
    return Api(MASTER_KEYS).get("/sessions", where=where).json["results"]


def test_a_session_ends_and_all_of_them(ann):
    log_in("Ann")
    bob = sign_up("bob")
    staff = logged_in(EDITORS)
    (foreign,) = sessions_of(bob)
    assert staff.post(action(ann, "revoke"), {"session": foreign["objectId"]}).status_code == 404
    newest = sessions_of(ann)[-1]
    assert staff.post(action(ann, "revoke"), {"session": newest["objectId"]}).status_code == 302
    assert len(sessions_of(ann)) == 1
    assert ann.get("/users/me").status == 200
    assert staff.post(action(ann, "revoke-all")).status_code == 302
    assert ann.get("/users/me").error == (400, 209)
    assert bob.get("/users/me").status == 200
    page = staff.get("/admin/people/sessions/", {"user": "BOB"}).text
    assert bob.user_id in page
    assert bob.token not in page
    where = {"session": foreign["objectId"], "next": "/admin/people/sessions/?user=bob"}
    answer = staff.post("/admin/people/sessions/revoke/", where)
    assert answer.headers["Location"] == "/admin/people/sessions/?user=bob"
    assert bob.get("/users/me").error == (400, 209)
    assert staff.post("/admin/people/sessions/revoke/", where).status_code == 404


def test_the_way_back_leads_nowhere_else(ann):
    (session,) = sessions_of(ann)
    answer = logged_in().post(
        "/admin/people/sessions/revoke/",
        {"session": session["objectId"], "next": "https://evil.example/"},
    )
    assert answer.headers["Location"] == "/admin/people/sessions/"


def test_a_password_that_staff_set(ann, settings):
    settings.SERVICE = {**settings.SERVICE, "PASSWORD_PATTERN": ".{8}"}
    staff = logged_in(ADMINISTRATORS)
    path = action(ann, "set-password")
    short = staff.post(path, {"password": "short", "again": "short"})
    assert short.status_code == 400
    assert "Password does not meet" in short.text
    assert 'value="short"' not in short.text
    assert staff.post(path, {"password": "a new one", "again": "another"}).status_code == 400
    assert staff.post(path, {}).status_code == 400
    assert log_in("Ann").status == 200
    FailedLogins.objects.create(user_id=ann.user_id, count=9)
    assert staff.post(path, {"password": "a new one", "again": "a new one"}).status_code == 302
    assert log_in("Ann").status == 404
    assert log_in("Ann", "a new one").status == 200
    assert ann.get("/users/me").error == (400, 209)
    assert not FailedLogins.objects.exists()


def test_a_lock_is_taken_off(ann, settings):
    settings.SERVICE = {**settings.SERVICE, "LOCKOUT_THRESHOLD": 1}
    log_in("Ann", "wrong")
    assert log_in("Ann").status == 404
    assert standing(ann.user_id).locked_until is not None
    assert logged_in(EDITORS).post(action(ann, "unlock")).status_code == 302
    assert standing(ann.user_id).locked_until is None
    assert log_in("Ann").status == 200


def test_a_letter_for_a_new_password(ann, postbox):
    staff = logged_in(EDITORS)
    assert postbox.after(lambda: staff.post(action(ann, "send-reset"))).status_code == 302
    assert "token=" in postbox.last_link()
    assert [letter.to for letter in postbox.letters] == [["ann@example.org"]]
    bob = sign_up("bob")
    refused = staff.post(action(bob, "send-reset"))
    assert refused.status_code == 400
    assert "no email address" in refused.text


def test_a_second_factor_is_taken_off(ann):
    SecondFactor.objects.create(
        user_id=ann.user_id, secret="s", created_at="2026-01-02T03:04:05Z", last_step=0
    )
    assert logged_in(EDITORS).post(action(ann, "reset-second-factor")).status_code == 403
    assert second_factor.is_set_up(ann.user_id)
    assert logged_in(ADMINISTRATORS).post(action(ann, "reset-second-factor")).status_code == 302
    assert not second_factor.is_set_up(ann.user_id)
    assert ann.get("/users/me").status == 200


def test_an_identity_is_taken_off(ann):
    auth = {"github": {"id": "42"}}
    Identity.objects.create(provider="github", external_id="42", user_id=ann.user_id)
    StoredUser.objects.filter(object_id=ann.user_id).update(auth_data=auth)
    staff = logged_in(ADMINISTRATORS)
    assert staff.post(action(ann, "unlink"), {"provider": ""}).status_code == 400
    assert staff.post(action(ann, "unlink"), {"provider": "mfa"}).status_code == 400
    assert staff.post(action(ann, "unlink"), {"provider": "github"}).status_code == 302
    assert not Identity.objects.exists()


def test_a_user_is_deleted_when_that_is_confirmed(ann):
    staff = logged_in(EDITORS)
    assert staff.post(action(ann, "delete")).status_code == 400
    assert staff.post(action(ann, "delete"), {"confirm": "other"}).status_code == 400
    assert ann.get("/users/me").status == 200
    assert staff.post(action(ann, "delete"), {"confirm": ann.user_id}).status_code == 302
    assert ann.get("/users/me").error == (400, 209)
    assert search("ann", 5) == []


@pytest.mark.django_db(transaction=True)
def test_in_maintenance_mode_accounts_are_protected_and_not_changed():
    registry.forget_all()
    ann = sign_up("ann", email="ann@example.org")
    FailedLogins.objects.create(user_id=ann.user_id, count=2)
    staff = logged_in(ADMINISTRATORS)
    maintenance.on()
    try:
        new = {"password": "a new one", "again": "a new one"}
        assert staff.post(action(ann, "set-password"), new).status_code == 400
        assert staff.post(action(ann, "send-reset")).status_code == 400
        assert staff.post(action(ann, "delete"), {"confirm": ann.user_id}).status_code == 400
        assert standing(ann.user_id).failed_logins == 2
        assert ann.get("/users/me").status == 200
        assert staff.post(action(ann, "unlock")).status_code == 302
        assert staff.post(action(ann, "revoke-all")).status_code == 302
        assert standing(ann.user_id).failed_logins == 0
        assert ann.get("/users/me").error == (400, 209)
    finally:
        maintenance.off()


def test_what_staff_do_is_logged_with_who_it_was_and_without_secrets(ann, log_store_redis):
    staff = logged_in(ADMINISTRATORS)
    staff.post(action(ann, "set-password"), {"password": "a new one", "again": "a new one"})
    staff.post(action(ann, "revoke-all"))
    store.flush()
    entries = log_search.search(LogFilter(text="staff write")).entries
    message = [
        (entry.fields["staff"], entry.fields["action"], entry.fields["user"]) for entry in entries
    ]
    assert message == [
        ("administrators", "revoke-all", ann.user_id),
        ("administrators", "set-password", ann.user_id),
    ]
    assert log_search.search(LogFilter(text="a new one")).entries == []


# -- Roles -----------------------------------------------------------------------------------------


def test_roles_their_users_and_the_tree_of_roles_inside(ann, master):
    leaf = make_role(master, "Leaf", [ann])
    middle = make_role(master, "Middle", roles=[leaf])
    top = make_role(master, "Top", roles=[middle, leaf])
    back = {
        "__op": "AddRelation",
        "objects": [{"__type": "Pointer", "className": "_Role", "objectId": top}],
    }
    master.put(f"/roles/{leaf}", {"roles": back})  # a circle
    staff = logged_in(VIEWERS)
    results = staff.get("/admin/people/roles/", {"q": "Mid"}).text
    assert "Middle" in results
    assert "Leaf" not in results
    text = staff.get(f"/admin/people/roles/{top}/").text
    assert "Leaf" in text
    assert "shown elsewhere" in text
    assert ">Add</button>" not in text
    assert "New role" not in staff.get("/admin/people/roles/").text
    assert "New role" in logged_in(EDITORS).get("/admin/people/roles/").text
    text = staff.get(f"/admin/people/roles/{leaf}/").text
    assert ann.user_id in text
    assert "Holders also hold" in text
    assert staff.get("/admin/people/roles/missing000/").status_code == 404


def test_members_are_taken_in_and_out(ann, master):
    role, inner = make_role(master, "Team"), make_role(master, "Inner", [sign_up("bob")])
    path = f"/admin/people/roles/{role}/members/"
    assert logged_in(VIEWERS).post(path, {"who": "ann", "add": "1"}).status_code == 403
    staff = logged_in(EDITORS)
    assert staff.get(path).status_code == 405
    for nobody in ("", "zoe", "x" * 999):
        assert staff.post(path, {"who": nobody, "add": "1"}).status_code == 404
        assert staff.post(path, {"who": nobody, "kind": "roles", "add": "1"}).status_code == 404

    def holds() -> set[str]:
        where = {"$relatedTo": {"object": pointer("_Role", role), "key": "users"}}
        return {result["username"] for result in master.get("/users", where=where).json["results"]}

    assert staff.post(path, {"who": "ann@example.org", "add": "1"}).status_code == 302
    assert holds() == {"Ann"}
    assert staff.post(path, {"who": "Inner", "kind": "roles", "add": "1"}).status_code == 302
    assert roles.tree(role, "Team").inside[0].role_id == inner
    assert staff.post(path, {"who": inner, "kind": "roles", "remove": "1"}).status_code == 302
    assert roles.tree(role, "Team").inside == []
    assert staff.post(path, {"who": ann.user_id, "remove": "1"}).status_code == 302
    assert holds() == set()
    missing = "/admin/people/roles/missing000/members/"
    assert staff.post(missing, {"who": "ann", "add": "1"}).status_code == 404


def pointer(class_name: str, object_id: str) -> dict[str, str]:
    return {"__type": "Pointer", "className": class_name, "objectId": object_id}


def test_installations(master):
    token = "a" * 64
    master.make("_Installation", deviceType="ios", deviceToken=token, channels=["news"])
    master.make("_Installation", deviceType="android", installationId="one-two")
    staff = logged_in(VIEWERS)
    everything = staff.get("/admin/people/installations/").text
    assert ">ios<" in everything
    assert "news" in everything
    assert token not in everything
    text = staff.get("/admin/people/installations/", {"q": "ONE-TWO"}).text
    assert "android" in text
    assert ">ios<" not in text.partition("<tbody>")[2]


# -- What people have written themselves -----------------------------------------------------------


def test_what_users_have_written_is_text_and_nothing_else(master):
    evil = "<script>alert(1)</script>"
    user = sign_up(evil, email="a@b.example", **{"note": evil, "deep": {"x": [evil]}})
    role = make_role(master, "Team", [user])
    Identity.objects.create(provider=evil, external_id=evil, user_id=user.user_id)
    master.make(
        "_Installation", deviceType=evil, installationId=evil, appName=evil, channels=[evil]
    )
    staff = logged_in()
    for path in (
        f"{USERS}?q=%3Cscript%3E",
        f"{USERS}{user.user_id}/",
        "/admin/people/sessions/?user=%22%3E%3Cscript%3Ealert(1)%3C/script%3E",
        "/admin/people/sessions/",
        "/admin/people/roles/?q=%22%3E%3Cscript%3Ealert(1)%3C/script%3E",
        f"/admin/people/roles/{role}/",
        "/admin/people/installations/",
        f"{USERS}%3Cscript%3Ealert(1)%3C%2Fscript%3E/",
    ):
        text = staff.get(path).text
        assert "<script>alert" not in text, path
