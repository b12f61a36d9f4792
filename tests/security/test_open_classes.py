"""Classes that the public may write: the default of new ones, where they are named, closing."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils.module_loading import autodiscover_modules

from backend.kernel import doctor
from backend.kernel.principal import MASTER, READ_ONLY_MASTER
from backend.site.staff import ADMINISTRATORS, EDITORS, VIEWERS
from objects import service
from objects.core.access.class_permissions import ACTIONS
from objects.database import maintenance
from objects.definitions import registry
from objects.service import public_access
from tests.objects.admin.staff import logged_in, staff_user
from tests.people import User, make_role, sign_up
from tests.rest import Api

pytestmark = pytest.mark.django_db

OPEN = {action: {"*": True} for action in ACTIONS}
AUTHENTICATED = {action: {"requiresAuthentication": True} for action in ACTIONS}
CLOSED: dict[str, Any] = {action: {} for action in ACTIONS}
EXPECTED = {"open": OPEN, "authenticated": AUTHENTICATED, "closed": CLOSED}
WRITES = ("create", "update", "delete")


def default(settings: Any, value: str, **extra: Any) -> None:
    settings.SERVICE = {**settings.SERVICE, "CLASS_PERMISSIONS_DEFAULT": value, **extra}


def permissions(class_name: str) -> dict[str, Any]:
    wire = registry.current(class_name)
    assert wire is not None
    encoded: dict[str, Any] = wire.schema.permissions.to_wire()
    assert encoded.pop("protectedFields") in ({}, {"*": []})
    return encoded


@pytest.fixture
def ann() -> User:
    return sign_up("ann")


# -- New classes ----------------------------------------------------------------------------------


def by_schema(master: Api, path: Path) -> None:
    assert master.post("/schemas/Game", {"fields": {"a": {"type": "String"}}}).status == 200


def by_object(master: Api, path: Path) -> None:
    master.make("Game", a=1)


def by_batch(master: Api, path: Path) -> None:
    items = [{"method": "POST", "path": "/api/classes/Game", "body": {"a": n}} for n in range(3)]
    assert master.post("/batch", {"requests": items}).status == 200


def by_transaction(master: Api, path: Path) -> None:
    items = [{"method": "POST", "path": "/api/classes/Game", "body": {"a": n}} for n in range(3)]
    assert master.post("/batch", {"requests": items, "transaction": True}).status == 200


def by_command(master: Api, path: Path) -> None:
    call_command("create_class", "Game", "--field", "a:Number", stderr=io.StringIO())


def by_import(master: Api, path: Path) -> None:
    file = path / "games.ndjson"
    file.write_text('{"a": 1}\n')
    call_command("import_objects", "Game", str(file))


def by_code(master: Api, path: Path) -> None:
    service.create(MASTER, "Game", {"a": 1})


WAYS = [by_schema, by_object, by_batch, by_transaction, by_command, by_import, by_code]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("value", EXPECTED)
def test_a_new_class_has_the_permissions_of_the_setting(way, value, settings, master, tmp_path):
    default(settings, value)
    way(master, tmp_path)
    assert permissions("Game") == EXPECTED[value]
    registry.forget_all()
    assert permissions("Game") == EXPECTED[value]


@pytest.mark.parametrize("value", EXPECTED)
def test_permissions_that_are_named_come_before_the_setting(value, settings, master):
    default(settings, value)
    body = {"classLevelPermissions": {"find": {"*": True}}}
    assert master.post("/schemas/Game", body).status == 200
    assert permissions("Game") == {**CLOSED, "find": {"*": True}}


def test_the_default_is_that_of_parse(master):
    master.make("Game", a=1)
    assert permissions("Game") == OPEN


@pytest.mark.parametrize(
    ("value", "stranger", "user"),
    [("open", 201, 201), ("authenticated", 404, 201), ("closed", 400, 400)],
)
def test_a_class_that_a_client_makes(value, stranger, user, settings, client, ann, master):
    default(settings, value, ALLOW_CLIENT_CLASS_CREATION=True)
    for caller, class_name, status in ((client, "Chess", stranger), (ann, "Go", user)):
        answer = caller.post(f"/classes/{class_name}", {"a": 1})
        assert answer.status == status, answer.json
        # A refused create leaves no class behind.
        exists = master.get(f"/schemas/{class_name}").status == 200
        assert exists is (status == 201)
        if exists:
            assert permissions(class_name) == EXPECTED[value]


@pytest.mark.parametrize("value", EXPECTED)
def test_people_and_devices_are_not_concerned(value, settings, client, master):
    default(settings, value)
    ann = sign_up("ann")
    assert ann.put(f"/users/{ann.user_id}", {"colour": "red"}).status == 200
    assert (
        client.post("/installations", {"deviceType": "ios", "deviceToken": "a" * 64}).status == 201
    )
    for name in ("_User", "_Role", "_Session", "_Installation"):
        assert master.get(f"/schemas/{name}").json["classLevelPermissions"]["find"] == {"*": True}


def test_another_setting_leaves_existing_classes_as_they_are(settings, master, client):
    master.make("Game", a=1)
    default(settings, "closed")
    registry.forget_all()
    assert permissions("Game") == OPEN
    assert client.post("/classes/Game", {"a": 2}).status == 201
    default(settings, "open")
    master.make("Chess", a=1)
    default(settings, "authenticated")
    master.put("/schemas/Chess", {"fields": {"b": {"type": "String"}}})
    assert permissions("Chess") == OPEN


# -- Which are open -------------------------------------------------------------------------------


def listed() -> dict[str, tuple[str, ...]]:
    """The open classes, without those that the test project's models make."""
    ours = {"Book"}
    return {
        open_class.class_name: open_class.actions
        for open_class in public_access.open_classes()
        if open_class.class_name not in ours
    }


def test_every_class_that_the_public_may_write_is_listed(master):
    assert listed() == {}
    for name, rules in {
        "All": OPEN,
        "Guestbook": {"find": {"*": True}, "create": {"*": True}},
        "Bin": {"delete": {"*": True, "role:a": True}},
        "Read": {"find": {"*": True}, "get": {"*": True}, "count": {"*": True}},
        "Fields": {"addField": {"*": True}},
        "Users": AUTHENTICATED,
        "Roles": {"update": {"role:Staff": True}},
    }.items():
        assert master.post(f"/schemas/{name}", {"classLevelPermissions": rules}).status == 200
    master.make("Silent", a=1)
    assert listed() == {
        "All": WRITES,
        "Bin": ("delete",),
        "Guestbook": ("create",),
        "Silent": WRITES,
    }


def test_a_guarded_class_is_listed_where_it_was_opened_further(master, ann):
    make_role(master, "Staff", [ann])
    assert listed() == {}
    opened = {**OPEN, "create": {"*": True}}
    assert master.put("/schemas/_Role", {"classLevelPermissions": opened}).status == 200
    assert listed() == {"_Role": ("create",)}


# -- Closing --------------------------------------------------------------------------------------


def answers(caller: Api, object_id: str) -> list[bool]:
    """Whether a caller may create, update, find and delete."""
    created = caller.post("/classes/Game", {"a": 1}).status == 201
    updated = caller.put(f"/classes/Game/{object_id}", {"a": 2}).status == 200
    results = caller.get("/classes/Game").status == 200
    extra = service.create(MASTER, "Game", {"a": 1}).object_id
    deleted = caller.delete(f"/classes/Game/{extra}").status == 200
    return [created, updated, results, deleted]


def test_who_may_write_a_closed_class(master, client, ann):
    bob = sign_up("bob")
    make_role(master, "Staff", [bob])
    rules = {**OPEN, "update": {"*": True, "role:Staff": True}}
    master.post(
        "/schemas/Game", {"fields": {"a": {"type": "Number"}}, "classLevelPermissions": rules}
    )
    game = master.make("Game", a=1)
    for caller in (client, ann, bob, master):
        assert answers(caller, game) == [True] * 4
    assert public_access.close_to_public(MASTER, "Game", to_users=True) == WRITES
    assert answers(client, game) == [False, False, True, False]
    for caller in (ann, bob, master):
        assert answers(caller, game) == [True] * 4
    master.put("/schemas/Game", {"classLevelPermissions": rules})
    public_access.close_to_public(MASTER, "Game", to_users=False)
    for caller in (client, ann):
        assert answers(caller, game) == [False, False, True, False]
    assert answers(bob, game) == [False, True, True, False]
    assert answers(master, game) == [True] * 4
    assert client.post("/classes/Game", {"new": 1}).status == 400


def test_closing_changes_nothing_else(master):
    body = {
        "fields": {
            "owner": {"type": "Pointer", "targetClass": "_User"},
            "secret": {"type": "String"},
        },
        "classLevelPermissions": {
            **OPEN,
            "delete": {"pointerFields": ["owner"]},
            "readUserFields": ["owner"],
            "protectedFields": {"*": ["secret"]},
            "ACL": {"currentUser": {"read": True}},
        },
    }
    assert master.post("/schemas/Game", body).status == 200
    before = master.get("/schemas/Game").json
    assert public_access.close_to_public(MASTER, "Game", to_users=True) == ("create", "update")
    after = master.get("/schemas/Game").json
    needs = {"requiresAuthentication": True}
    expected = {
        **before["classLevelPermissions"],
        "create": needs,
        "update": needs,
        "addField": needs,
    }
    assert after == {**before, "classLevelPermissions": expected}
    version = registry.current("Game").version
    assert public_access.close_to_public(MASTER, "Game", to_users=True) == ()
    assert registry.current("Game").version == version


def command(*arguments: str) -> str:
    out = io.StringIO()
    call_command("close_class", *arguments, stdout=out)
    return out.getvalue()


def test_the_command_lists_and_closes(master):
    for name in ("A", "B", "C"):
        master.make(name, a=1)
    assert "A: everybody may create, update, delete\n" in command()
    assert (
        command("A", "B")
        == "closed: A (create, update, delete)\nclosed: B (create, update, delete)\n"
    )
    assert permissions("A")["create"] == {"requiresAuthentication": True}
    assert permissions("A")["find"] == {"*": True}
    assert command("A") == "not open: A\n"
    assert "closed: C" in command("--all", "--to", "closed")
    assert permissions("C")["create"] == {}
    assert command() == "no class is open: the public writes no objects\n"


def test_the_command_closes_reading_alone(master):
    master.make("A", a=1)
    assert command("A", "--reading") == "closed: A (get, find, count)\n"
    assert permissions("A")["find"] == {"requiresAuthentication": True}
    assert permissions("A")["create"] == {"*": True}
    assert command("A", "--reading") == "not open: A\n"
    with pytest.raises(CommandError, match="--reading"):
        command("--all", "--reading")


@pytest.fixture
def customer(master) -> None:
    fields = {"eMail": "a@example.org", "homeAddress": "x", "apiToken": "t", "name": "Ann"}
    master.make("Customer", **fields, walletAddress="0x1")


EXPOSED = public_access.ExposedFields("Customer", ("eMail", "homeAddress", "apiToken"))


def test_public_reading_of_system_classes_is_shown_as_it_is(master):
    from objects.definitions import registry

    reads = {
        name: public_access.public_actions(table, "read")
        for name in ("_User", "_Role", "_Session", "_Installation", "_JobStatus")
        if (table := registry.find(name))
    }
    assert reads == {
        "_User": ("get", "find", "count"),
        "_Role": ("get", "find", "count"),
        "_Session": (),
        "_Installation": ("get",),
        "_JobStatus": (),
    }


@pytest.mark.usefixtures("customer")
def test_fields_that_look_personal_and_that_everybody_reads_are_named():
    assert public_access.exposed_fields() == [EXPOSED]
    line = "Customer: everybody reads eMail, homeAddress, apiToken\n"
    assert line in command()
    assert "eMail, homeAddress, apiToken" in logged_in(ADMINISTRATORS).get("/admin/").text


@pytest.mark.usefixtures("customer")
@pytest.mark.parametrize("close", ["reading", "fields", "some"])
def test_closed_reading_and_hidden_fields_are_not_named(master, close):
    hidden = {"fields": ["eMail", "homeAddress", "apiToken"], "some": ["eMail", "homeAddress"]}
    if close == "reading":
        command("Customer", "--reading")
    else:
        rules = {**permissions("Customer"), "protectedFields": {"*": hidden[close]}}
        assert master.put("/schemas/Customer", {"classLevelPermissions": rules}).status == 200
    remaining = [("apiToken",)] if close == "some" else []
    assert [exposed.fields for exposed in public_access.exposed_fields()] == remaining


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("customer")
def test_doctor_names_readable_personal_fields():
    autodiscover_modules("doctor")

    def finding() -> doctor.Finding:
        checks = {each.check: each.findings for each in doctor.run_all()}
        return checks["readable personal fields"][0]

    assert finding().level == "warn"
    assert "Customer (eMail, homeAddress, apiToken)" in finding().text
    command("Customer", "--reading", "--to", "closed")
    assert finding().level == "ok"


@pytest.mark.parametrize("names", [["A", "Nothing"], ["A", "no name"], ["A", "A\0"]])
def test_the_command_changes_nothing_if_a_name_is_wrong(names, master):
    master.make("A", a=1)
    with pytest.raises(CommandError):
        command(*names)
    with pytest.raises(CommandError, match="--all"):
        command("A", "--all")
    assert permissions("A") == OPEN


@pytest.mark.django_db(transaction=True)
def test_nothing_is_closed_in_maintenance_mode(master):
    master.make("A", a=1)
    maintenance.on()
    try:
        with pytest.raises(CommandError, match="read-only"):
            command("A")
    finally:
        maintenance.off()
    assert permissions("A") == OPEN


def test_only_the_master_key_closes(master):
    from backend.kernel.errors import OperationForbidden
    from backend.kernel.principal import CLIENT

    master.make("A", a=1)
    for principal in (CLIENT, READ_ONLY_MASTER):
        with pytest.raises(OperationForbidden):
            public_access.close_to_public(principal, "A", to_users=True)


def test_create_class_says_that_the_class_is_open(settings):
    for value, is_said in (("open", True), ("authenticated", False)):
        default(settings, value)
        errors = io.StringIO()
        call_command("create_class", f"Game{value}", stdout=io.StringIO(), stderr=errors)
        assert ("script/manage close_class" in errors.getvalue()) is is_said


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_doctor_names_every_open_class(master):
    autodiscover_modules("doctor")

    def findings() -> list[doctor.Finding]:
        return next(each for each in doctor.run_all() if each.check == "open classes").findings

    command("--all")
    assert [finding.level for finding in findings()] == ["ok"]
    master.make("Single", a=1)
    assert "objects of 1 class: Single" in findings()[0].text
    for n in range(40):
        master.make(f"Open{n}", a=1)
    (finding,) = findings()
    assert finding.level == "warn"
    assert all(f"Open{n} (create, update, delete)" in finding.text for n in range(40))
    assert "close_class" in finding.advice


# -- The admin ------------------------------------------------------------------------------------

CLOSE = "/admin/data/Game/close/"


def test_the_admin_names_open_classes_and_closes_one(master):
    master.make("Game", a=1)
    staff = logged_in(ADMINISTRATORS)
    for page in ("/admin/", "/admin/objects/objectclass/", "/admin/data/Game/permissions/"):
        text = staff.get(page).text
        assert CLOSE in text, page
        assert "create, update, delete" in text
    assert "Let only logged-in users write" in staff.get(CLOSE).text
    assert permissions("Game") == OPEN
    assert staff.post(CLOSE, {"to": "nonsense"}).status_code == 400
    assert staff.post(CLOSE).status_code == 400
    assert permissions("Game") == OPEN
    page = staff.post(CLOSE, {"to": "authenticated"}, follow=True)
    assert "Only logged-in users may write objects of Game now." in page.text
    assert permissions("Game")["delete"] == {"requiresAuthentication": True}
    assert CLOSE not in staff.get("/admin/").text
    assert "Let only logged-in users write" not in staff.get(CLOSE).text
    assert "Let only logged-in users read" in staff.get(CLOSE).text


def test_staff_close_reading_and_writing_apart(master):
    master.make("Game", a=1)
    staff = logged_in(ADMINISTRATORS)
    page = staff.post(CLOSE, {"access": "read", "to": "authenticated"}, follow=True)
    assert "Only logged-in users may read objects of Game now." in page.text
    rules = permissions("Game")
    assert [rules[action] for action in ("get", "find", "count")] == [
        {"requiresAuthentication": True}
    ] * 3
    assert rules["create"] == rules["addField"] == {"*": True}
    assert staff.post(CLOSE, {"access": "all", "to": "closed"}).status_code == 400
    staff.post(CLOSE, {"access": "write", "to": "closed"})
    assert "neither read nor write" in staff.get(CLOSE).text


def test_the_list_of_classes_shows_reading_and_writing(master):
    master.make("Game", a=1)
    staff = logged_in(ADMINISTRATORS)
    path = "/admin/objects/objectclass/?q=Game"
    text = staff.get(path).text
    assert "public may read" in text
    assert "public may write" in text
    assert "get, find, count" in text
    staff.post(CLOSE, {"access": "read", "to": "closed"})
    text = staff.get(path).text
    assert "get, find, count" not in text
    assert "create, update, delete" in text


def test_staff_close_a_class_to_all_clients(master):
    master.make("Game", a=1)
    assert logged_in(ADMINISTRATORS).post(CLOSE, {"to": "closed"}).status_code == 302
    assert permissions("Game")["update"] == {}


@pytest.mark.parametrize("group", [VIEWERS, EDITORS])
def test_other_staff_see_open_classes_and_close_none(group, master):
    master.make("Game", a=1)
    staff = logged_in(group)
    assert "Game" in staff.get("/admin/").text
    for page in ("/admin/", "/admin/objects/objectclass/", "/admin/data/Game/permissions/"):
        text = staff.get(page).text
        assert "create, update, delete" in text, page
        assert CLOSE not in text, page
    assert staff.get(CLOSE).status_code == 403
    assert staff.post(CLOSE, {"to": "closed"}).status_code == 403
    assert permissions("Game") == OPEN


def test_a_form_of_another_site_closes_nothing(master):
    master.make("Game", a=1)
    staff = Client(enforce_csrf_checks=True)
    staff.force_login(staff_user(None))
    assert staff.post(CLOSE, {"to": "closed"}).status_code == 403
    assert permissions("Game") == OPEN


def test_strangers_see_nothing_of_it(master):
    master.make("Game", a=1)
    assert Client().get(CLOSE).status_code == 302
    assert Client().get("/admin/").status_code == 302
