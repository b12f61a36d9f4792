"""``manage.py explain_access``."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from backend.kernel.principal import MASTER
from objects import service
from objects.service import classes
from tests.callers import *  # noqa: F403
from tests.people import make_role, sign_up

pytestmark = pytest.mark.django_db


def explained(*arguments: str) -> list[str]:
    out = StringIO()
    call_command("explain_access", *arguments, stdout=out)
    return out.getvalue().splitlines()


def test_a_member_of_a_role_and_a_stranger(master):
    ann, eve = sign_up("ann"), sign_up("eve")
    inner = make_role(master, "Inner", [ann])
    make_role(master, "Team", roles=[inner])
    note = service.create(MASTER, "Note", {"ACL": {"role:Team": {"read": True}}}).object_id
    lines = explained("Note", "get", "--object", note, "--user", ann.user_id)
    assert lines[1:3] == ["Yes, the caller may.", "Decided by: access list"]
    assert "  + access list: The access list lets role:Team read." in lines
    assert any("held through Inner → Team" in line for line in lines)
    lines = explained("Note", "get", "--object", note, "--user", eve.user_id)
    assert lines[1:4] == [
        "No, the caller may not.",
        "Decided by: access list",
        "Error: 101 Object not found.",
    ]


def test_the_keys_and_no_one(master):
    classes.create(MASTER, "Note", {"classLevelPermissions": {"find": {"*": True}}})
    assert "Decided by: class permissions" in explained("Note", "create")
    assert "Yes, the caller may." in explained("Note", "create", "--master")
    assert "Decided by: read-only master key" in explained("Note", "create", "--read-only")
    assert any(
        line.startswith("The caller may do this with objects") for line in explained("Note", "find")
    )


def test_a_hidden_field_and_who_hides_it(master):
    protected = {"classLevelPermissions": {"get": {"*": True}, "protectedFields": {"*": ["a"]}}}
    classes.create(MASTER, "Note", {"fields": {"a": {"type": "String"}}, **protected})
    note = service.create(MASTER, "Note", {"a": "x"}).object_id
    assert "  hidden: a (by *)" in explained("Note", "get", "--object", note)


def test_what_is_not_there_is_said(master):
    with pytest.raises(CommandError, match="no user with the id nobody"):
        explained("Note", "get", "--user", "nobody")
    with pytest.raises(CommandError, match="invalid choice"):
        explained("Note", "dance")
