"""Staff permissions hold on every page of the data browser and on everything that it can do."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from backend.kernel.principal import MASTER
from backend.site import model_admin
from backend.site.staff import ADMINISTRATORS, EDITORS, VIEWERS
from objects import service
from objects.admin import staff_access
from objects.core.query.tree import Everything
from objects.definitions import registry
from objects.service import classes
from tests.objects.admin.games import GAME, at, make, make_class, stored_object
from tests.objects.admin.staff import logged_in
from tests.people import sign_up

pytestmark = pytest.mark.django_db

READ = {
    "objects": "",
    "operators": "operators/?field=score",
    "lookup": "lookup/?of=x&x=a",
    "export": "export.csv",
    "object": "o/{id}/",
    "json": "o/{id}/json/",
    "relation": "o/{id}/relation/fans/",
}
FORMS = {
    "add": ("add/", "add"),
    "delete": ("o/{id}/delete/", "delete"),
}
CLASS_READ = {"fields": "fields/", "permissions": "permissions/", "indexes": "indexes/"}
CLASS_FORMS = {
    "field": ("fields/score/", "change"),
    "close": ("close/", "change"),
    "remove": ("remove/", "delete"),
}
# What a POST needs, and a body that would do something.
WRITES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "object": ("o/{id}/", "change", {"f.title": "new", "updatedAt": "{updatedAt}"}),
    "json": ("o/{id}/json/", "change", {"json": '{"title": "new"}', "updatedAt": "{updatedAt}"}),
    "relation": ("o/{id}/relation/fans/", "change", {"add": "someone123"}),
    "add": ("add/", "add", {"f.title": "new"}),
    "delete": ("o/{id}/delete/", "delete", {"confirmed": "1"}),
}
CLASS_WRITES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "fields": ("fields/", "change", {"name": "fresh", "type": "String"}),
    "field": ("fields/score/", "change", {"delete": "1", "typed": "score"}),
    "close": ("close/", "change", {"to": "closed"}),
    "permissions": ("permissions/", "change", {"kind": "json", "json": "{}"}),
    "indexes": ("indexes/", "change", {"field": "score", "direction": "1"}),
    "remove": ("remove/", "delete", {"what": "objects", "typed": "Game"}),
}


@pytest.fixture
def game() -> str:
    make_class()
    return make(title="a", score=1)


def named(codename: str) -> Permission:
    return Permission.objects.get(codename=codename, content_type__app_label="objects")


def with_permissions(*names: str) -> Client:
    user = User.objects.create_user("custom", is_staff=True)
    for name in names:
        user.user_permissions.add(named(name))
    client = Client()
    client.force_login(user)
    return client


def body(values: dict[str, Any], object_id: str) -> dict[str, Any]:
    state = {"id": object_id, "updatedAt": stored_object(object_id)["updatedAt"]}
    return {
        name: value.format(**state) if value.startswith("{id") or value == "{updatedAt}" else value
        for name, value in values.items()
    }


def state(object_id: str) -> tuple[Any, Any, Any]:
    table = registry.find("Game")
    return table and table.version, stored_object(object_id), _count()


def _count() -> int:
    return service.count(MASTER, "Game", Everything())


def test_this_file_knows_every_page_of_a_class():
    existing = {*READ, *FORMS, *CLASS_READ, *CLASS_FORMS, *WRITES, *CLASS_WRITES}
    pages = {name for name, page in model_admin._pages.items() if page.route.startswith("data/")}
    assert pages == {f"data_{name}" for name in existing}


def test_a_viewer_reads_everything_and_finds_no_forms_that_write(game):
    viewer = logged_in(VIEWERS)
    for path in (*READ.values(), *CLASS_READ.values()):
        page = viewer.get(GAME + path.format(id=game))
        assert page.status_code == 200, path
        if not page.streaming:
            assert "sv-primary" not in page.text, path
            assert "sv-danger" not in page.text, path
            assert 'name="updatedAt"' not in page.text, path
    for path, _ in (*FORMS.values(), *CLASS_FORMS.values()):
        assert viewer.get(GAME + path.format(id=game)).status_code == 403, path


@pytest.mark.parametrize("name", WRITES)
def test_a_viewer_s_writes_of_objects_are_refused(game, name):
    path, _, values = WRITES[name]
    before = state(game)
    answer = logged_in(VIEWERS).post(GAME + path.format(id=game), body(values, game))
    assert answer.status_code == 403
    assert state(game) == before


@pytest.mark.parametrize("name", CLASS_WRITES)
@pytest.mark.parametrize("group", [VIEWERS, EDITORS])
def test_classes_are_changed_by_administrators_only(game, name, group):
    path, _, values = CLASS_WRITES[name]
    before = state(game)
    values = {**values, "version": str(before[0])}
    assert logged_in(group).post(GAME + path.format(id=game), values).status_code == 403
    assert state(game) == before
    logged_in(ADMINISTRATORS).post(GAME + path.format(id=game), values)
    registry.forget_all()
    assert _count() == 0 if name == "remove" else state(game) != before


@pytest.mark.parametrize("name", WRITES)
def test_each_write_of_an_object_takes_its_own_permission(game, name):
    path, action, values = WRITES[name]
    other_permissions = [
        f"{item}_storedobject" for item in ("add", "change", "delete") if item != action
    ]
    client = with_permissions("view_storedobject", *other_permissions)
    before = state(game)
    assert client.post(GAME + path.format(id=game), body(values, game)).status_code == 403
    assert state(game) == before
    User.objects.get(username="custom").user_permissions.add(named(f"{action}_storedobject"))
    assert client.post(GAME + path.format(id=game), body(values, game)).status_code in (200, 302)


def test_an_editor_writes_objects(game):
    editor = logged_in(EDITORS)
    for path, _, values in WRITES.values():
        if "delete" not in path:
            answer = editor.post(GAME + path.format(id=game), body(values, game))
            assert answer.status_code == 302, path
    assert editor.post(at(game, "delete/"), {"confirmed": "1"}).status_code == 302
    assert _count() == 1


def test_people_take_the_permissions_of_their_own_classes(game):
    ann = sign_up("ann")
    path = f"/admin/data/_User/o/{ann.user_id}/"
    client = with_permissions("view_storedobject", "change_storedobject", "view_objectclass")
    for tail in ("", "json/", "delete/"):
        assert client.get(path + tail).status_code == 403
    assert client.get("/admin/data/_User/").status_code == 403
    assert client.get("/admin/data/_User/export.csv").status_code == 403
    assert client.get("/admin/data/_User/lookup/?of=x&x=a").status_code == 403
    names = client.get("/admin/acl-names/", {"acl.name": "an"})
    assert names.text.strip() == ""
    assert client.get("/admin/browse-as/").status_code == 403
    # Members are objects of the other class.
    assert "You don't have permission to view" in client.get(at(game, "relation/fans/")).text
    User.objects.get(username="custom").user_permissions.add(named("view_user"))
    assert client.get(path).status_code == 200
    assert client.post(path, {"f.username": "other"}).status_code == 403


@pytest.mark.parametrize(
    "where",
    [
        {"player": {"$inQuery": {"className": "_User", "where": {"email": {"$exists": True}}}}},
        {"$or": [{"player": {"$notInQuery": {"className": "_User", "where": {}}}}, {"a": 1}]},
        {"title": {"$select": {"query": {"className": "_User", "where": {}}, "key": "email"}}},
        {
            "$relatedTo": {
                "object": {"__type": "Pointer", "className": "_Role", "objectId": "abc"},
                "key": "users",
            }
        },
    ],
)
def test_a_filter_tells_nothing_of_classes_that_one_may_not_see(game, where):
    client = with_permissions("view_storedobject")
    for tail in ("", "export.csv"):
        page = client.get(GAME + tail, {"where": json.dumps(where)})
        assert page.status_code == 400
        assert "You have no permission to see objects of _" in page.text
    assert logged_in(VIEWERS).get(GAME, {"where": json.dumps(where)}).status_code == 200


def test_classes_that_are_models_take_the_permissions_of_the_model(game):
    registry.find("Book")
    client = with_permissions("view_storedobject", "change_storedobject")
    assert client.get("/admin/data/Book/").status_code == 403
    assert staff_access.permission("change", "Book") == "catalogue.change_book"


def test_files_are_uploaded_with_the_permission_to_add_files_only(game):
    client = with_permissions("view_storedobject", "change_storedobject")
    form = {
        "f.picture": SimpleUploadedFile("a.png", b"\x89PNG\r\n\x1a\n", "image/png"),
        "updatedAt": stored_object(game)["updatedAt"],
    }
    page = client.post(at(game), form)
    assert page.status_code == 400
    assert "no permission to add files" in page.text
    assert client.get("/admin/file/nothing").status_code == 403


def test_purging_takes_the_permission_to_delete_objects_as_well(game):
    client = with_permissions("view_objectclass", "delete_objectclass", "view_storedobject")
    answer = client.post(f"{GAME}remove/", {"what": "objects", "typed": "Game"})
    assert answer.status_code == 403
    assert _count() == 1


def test_customers_and_strangers_get_nowhere(game):
    customer = Client()
    customer.force_login(User.objects.create_user("customer"))
    for client in (customer, Client()):
        for path in (*READ.values(), *CLASS_READ.values()):
            answer = client.get(GAME + path.format(id=game))
            assert answer.status_code == 302
            assert "/admin/login/" in answer.headers["Location"]
        for path, _, values in (*WRITES.values(), *CLASS_WRITES.values()):
            assert client.post(GAME + path.format(id=game), values).status_code == 302
    assert _count() == 1


def test_a_write_without_a_token_of_the_form_is_refused(game):
    client = Client(enforce_csrf_checks=True)
    client.force_login(User.objects.create_superuser("root"))
    for path, _, values in (*WRITES.values(), *CLASS_WRITES.values()):
        assert client.post(GAME + path.format(id=game), values).status_code == 403
    assert client.post("/admin/browse-as/", {"public": "1"}).status_code == 403


@pytest.mark.parametrize("method", ["put", "delete", "patch", "options"])
def test_other_methods_are_refused(game, method):
    answer = getattr(logged_in(), method)(at(game))
    assert answer.status_code == 405


def test_a_page_without_a_form_takes_no_post(game):
    assert logged_in().post(GAME).status_code == 405
    assert staff_access.permission("view", "_User") == "objects.view_user"


def test_maintenance_and_the_like_are_said_by_the_page(game):
    classes.change(MASTER, "Game", {"fields": {"code": {"type": "String", "unique": True}}})
    make(code="taken")
    form = {"f.code": "taken", "updatedAt": stored_object(game)["updatedAt"]}
    page = logged_in().post(at(game), form)
    assert page.status_code == 400
    assert "error 137" in page.text
