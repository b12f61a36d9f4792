"""Staff groups, and as whom the admin asks for them."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import AnonymousUser, Group, User
from django.core.exceptions import PermissionDenied
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client

from backend.kernel.principal import MASTER, READ_ONLY_MASTER
from backend.site.staff import ADMINISTRATORS, EDITORS, VIEWERS, make_groups, principal_for
from objects.definitions.registry import offered_models
from tests.objects.admin.staff import logged_in, staff_user

pytestmark = pytest.mark.django_db

READ = "objects.view_storedobject"
WRITE = "objects.change_storedobject"
SCHEMA = "objects.change_objectclass"


def test_prepare_makes_the_groups_and_may_do_so_again():
    call_command("prepare", verbosity=0)
    call_command("prepare", verbosity=0)
    assert set(Group.objects.values_list("name", flat=True)) >= {VIEWERS, EDITORS, ADMINISTRATORS}


def test_the_first_staff_user_gets_the_password_of_the_setting(
    monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Path
):
    settings.DATA_DIR = tmp_path
    monkeypatch.setenv("ADMIN_PASSWORD", "a rather long one")
    message = StringIO()
    call_command("prepare", stdout=message)
    user = get_user_model().objects.get(username="admin")
    assert user.is_superuser
    assert user.check_password("a rather long one")
    assert "ADMIN_PASSWORD has the password" in message.getvalue()
    assert "rather" not in message.getvalue()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("weak", ["x1y2z", "12345678901", "qwerty123"])
def test_a_weak_password_of_the_first_staff_user_is_refused(
    monkeypatch: pytest.MonkeyPatch, weak: str
):
    monkeypatch.setenv("ADMIN_PASSWORD", weak)
    with pytest.raises(CommandError, match=r"ADMIN_PASSWORD: This password is") as refused:
        call_command("prepare")
    assert f" {weak}" not in str(refused.value)


@pytest.mark.parametrize(
    ("group", "allowed", "refused"),
    [
        (VIEWERS, [READ, "objects.view_user"], [WRITE, "objects.delete_session", SCHEMA]),
        (EDITORS, [READ, WRITE, "objects.delete_storedfile", "objects.add_user"], [SCHEMA]),
        (ADMINISTRATORS, [READ, WRITE, SCHEMA], ["auth.change_user", "auth.add_group"]),
    ],
)
def test_what_the_members_of_each_group_may_do(group, allowed, refused):
    user = staff_user(group)
    assert [name for name in allowed if not user.has_perm(name)] == []
    assert [name for name in refused if user.has_perm(name)] == []


def test_models_of_an_application_that_are_classes_are_objects_like_others():
    viewer, editor = staff_user(VIEWERS), staff_user(EDITORS)
    assert viewer.has_perm("catalogue.view_book")
    assert not viewer.has_perm("catalogue.change_book")
    assert editor.has_perms(("catalogue.change_book", "catalogue.delete_book"))
    assert not editor.has_perm("functions.change_jobschedule")


def test_what_a_user_gave_a_group_besides_is_taken_back():
    staff_user(VIEWERS)
    viewers, editors = (Group.objects.get(name=name) for name in (VIEWERS, EDITORS))
    viewers.permissions.set(editors.permissions.all())
    make_groups(offered_models())
    assert not viewers.permissions.filter(codename="change_storedobject").exists()


def test_who_may_write_asks_with_the_master_key_and_others_with_the_read_only_one():
    assert principal_for(staff_user(VIEWERS)) is READ_ONLY_MASTER
    editor = staff_user(EDITORS)
    assert principal_for(editor) is MASTER
    assert principal_for(editor, SCHEMA) is READ_ONLY_MASTER
    assert principal_for(staff_user(ADMINISTRATORS), SCHEMA) is MASTER
    assert principal_for(User.objects.create_user("bare", is_staff=True)) is READ_ONLY_MASTER


def test_others_than_active_staff_are_refused():
    retired = User.objects.create_superuser("retired", is_active=False)
    for user in (AnonymousUser(), User.objects.create_user("customer"), retired):
        with pytest.raises(PermissionDenied):
            principal_for(user)


def test_the_sidebar_holds_what_one_may_see():
    page = logged_in(VIEWERS).get("/admin/").text
    assert "/admin/objects/objectclass/" in page
    assert "/admin/auth/user/" not in page
    assert "/admin/auth/user/" in logged_in().get("/admin/").text


def test_the_badge_names_the_deployment(settings):
    client = logged_in()
    settings.ENVIRONMENT = "production <eu>"
    assert "production &lt;eu&gt;" in client.get("/admin/").text


@pytest.mark.parametrize("page", ["https://evil.example/", "//evil.example", "javascript:alert(1)"])
def test_a_login_leads_to_the_start_if_the_next_page_is_elsewhere(page):
    User.objects.create_superuser("root", password="the right one")
    form = {"username": "root", "password": "the right one", "next": page}
    answer = Client().post("/admin/login/", form)
    assert (answer.status_code, answer.headers["Location"]) == (302, "/admin/")


def test_guessing_passwords_of_staff_is_limited_like_log_in(settings):
    rule = {"path": "/login", "per": "ip", "count": 2, "window": 60}
    settings.SERVICE = {**settings.SERVICE, "RATE_LIMITS": json.dumps([rule])}
    User.objects.create_superuser("root", password="the right one")
    client = Client()
    form = {"username": "root", "password": "wrong"}
    assert [client.post("/admin/login/", form).status_code for _ in range(3)] == [200, 200, 429]
    answer = client.post("/admin/login/", form)
    assert int(answer.headers["Retry-After"]) > 0
    assert client.get("/admin/login/").status_code == 200
