"""Objects in forms: typed fields, access lists, JSON, changes by others, new ones, removing."""

from __future__ import annotations

import html
import json
import re
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from backend.kernel.principal import MASTER
from backend.site.staff import EDITORS
from objects import service
from objects.core.query.tree import Everything, FindOptions
from objects.definitions import registry
from objects.service import classes
from tests.objects.admin.games import GAME, at, make, make_class, stored_object
from tests.objects.admin.staff import logged_in
from tests.objects.files.uploads import PNG, stored, stored_names
from tests.people import log_in, sign_up
from tests.threads import at_once

pytestmark = pytest.mark.django_db

POINT = {"__type": "GeoPoint", "latitude": 48.2, "longitude": 16}


@pytest.fixture
def staff() -> Client:
    make_class()
    return logged_in()


_TEXT = re.compile(r'<textarea[^>]*name="([^"]+)"[^>]*>\n(.*?)</textarea>', re.S)
_SELECT = re.compile(r'<select[^>]*name="([^"]+)"[^>]*>(.*?)</select>', re.S)


def filled(client: Client, address: str) -> dict[str, Any]:
    """The form of an object as a browser would send it back unchanged."""
    page = client.get(address).text
    form = page[page.index('name="updatedAt"') - 40 :]
    data: dict[str, Any] = {}
    for name, remaining in _TEXT.findall(form):
        data[name] = [html.unescape(remaining).replace("\n", "\r\n")]
    for tag in re.findall(r"<input[^>]*>", form):
        source = dict(re.findall(r'([\w-]+)="([^"]*)"', tag))
        is_box = source.get("type") in ("checkbox", "radio")
        if "name" not in source or source.get("type") == "file":
            continue
        if not is_box or "checked" in tag:
            value = source.get("value", "on" if is_box else "")
            data.setdefault(source["name"], []).append(html.unescape(value))
    for name, options in _SELECT.findall(form):
        every = re.findall(r'value="([^"]*)"( selected)?', options)
        data.setdefault(name, []).append(next((v for v, sel in every if sel), every[0][0]))
    return {name: values[0] if len(values) == 1 else values for name, values in data.items()}


FULL: dict[str, Any] = {
    "title": "two\nlines <b>",
    "score": 0.1,
    "won": False,
    "playedAt": {"__type": "Date", "iso": "2024-05-04T10:30:00.250Z"},
    "place": POINT,
    "tags": ["a", {"b": [1.5, None]}],
    "details": {"a": {"b": "é\"'<"}},
    "key": {"__type": "Bytes", "base64": "aGVsbG8="},
    "area": {"__type": "Polygon", "coordinates": [[0, 0], [0, 1], [1, 1], [0, 0]]},
    "ACL": {"*": {"read": True}, "role:Judges": {"read": True, "write": True}},
}


def test_a_form_that_is_sent_back_as_it_came_changes_nothing(staff):
    ann = sign_up("ann")
    picture = {"__type": "File", "name": stored("a.png")}
    object_id = make(**FULL, player=ann.pointer, picture=picture)
    before = stored_object(object_id)
    answer = staff.post(at(object_id), filled(staff, at(object_id)), follow=True)
    assert "Nothing is different" in answer.text
    assert stored_object(object_id) == before


def test_each_type_is_read_from_its_input(staff):
    object_id = make()
    form = filled(staff, at(object_id))
    form |= {
        "f.title": "one\r\ntwo",
        "f.score": " 123456789012345678901234567890 ",
        "f.won": "true",
        "f.playedAt": "2024-05-04T10:30",
        "f.player": "someone123",
        "f.place": "48.2",
        "f.place.second": "16",
        "f.tags": '["a", 1]',
        "f.details": '{"a": 1}',
        "f.key": "aGVs\r\nbG8=",
        "f.area": "[[0, 0], [0, 1], [1, 1]]",
        "f.picture": SimpleUploadedFile("my (board).png", PNG, "image/png"),
    }
    answer = staff.post(at(object_id), form, follow=True)
    assert answer.status_code == 200, answer.text
    stored_now = stored_object(object_id)
    picture = stored_now.pop("picture")
    assert picture["name"].endswith("_my _board_.png")
    assert picture["name"] in stored_names()
    assert {name: stored_now[name] for name in stored_now if name in FULL or name == "player"} == {
        "title": "one\ntwo",
        "score": 123456789012345678901234567890,
        "won": True,
        "playedAt": {"__type": "Date", "iso": "2024-05-04T10:30:00.000Z"},
        "player": {"__type": "Pointer", "className": "_User", "objectId": "someone123"},
        "place": POINT,
        "tags": ["a", 1],
        "details": {"a": 1},
        "key": {"__type": "Bytes", "base64": "aGVsbG8="},
        "area": {"__type": "Polygon", "coordinates": [[0, 0], [0, 1], [1, 1], [0, 0]]},
    }


def test_what_is_emptied_is_deleted_and_an_empty_text_is_a_text(staff):
    object_id = make(title="a", score=1, picture={"__type": "File", "name": stored("a.png")})
    form = filled(staff, at(object_id)) | {"f.title": "", "f.score": "", "f.picture.remove": "on"}
    staff.post(at(object_id), form)
    assert not {"title", "score", "picture"} & stored_object(object_id).keys()
    form = filled(staff, at(object_id)) | {"f.title": "", "f.title.empty": "on"}
    staff.post(at(object_id), form)
    assert stored_object(object_id)["title"] == ""


@pytest.mark.parametrize(
    ("name", "entered", "complaint"),
    [
        ("score", "many", "expected a number"),
        ("score", "1e999", "expected a"),
        ("playedAt", "yesterday", "not a valid Date"),
        ("player", "not an id", "not a valid Pointer"),
        ("place", "91", "not a valid GeoPoint"),
        ("tags", "{}", "expected an array"),
        ("tags", "[", "Input data was truncated"),
        ("details", "[]", "expected an object"),
        ("details", '{"$a": 1}', "Nested keys"),
        ("key", "***", "not a valid Bytes"),
        ("area", "[[0, 0]]", "not a valid Polygon"),
    ],
)
def test_what_isn_t_a_value_is_shown_at_its_input_and_stays_there(staff, name, entered, complaint):
    object_id = make(title="a")
    form = filled(staff, at(object_id)) | {f"f.{name}": entered, "f.title": "new"}
    if name == "place":
        form["f.place.second"] = "0"
    page = staff.post(at(object_id), form)
    assert page.status_code == 400
    row = page.text[page.text.index(f'id="f.{name}.error"') :][:600]
    assert complaint in row
    assert "new" in page.text
    assert stored_object(object_id)["title"] == "a"


def test_what_the_door_refuses_is_said_on_top(staff):
    classes.change(MASTER, "Game", {"fields": {"title": {"type": "String", "required": True}}})
    object_id = make(title="a")
    page = staff.post(at(object_id), filled(staff, at(object_id)) | {"f.title": ""})
    assert page.status_code == 400
    assert "error 142" in page.text


def test_files_of_refused_types_are_shown_at_their_input(staff):
    object_id = make()
    form = filled(staff, at(object_id))
    form["f.picture"] = SimpleUploadedFile("a.html", b"<script>alert(1)</script>", "text/html")
    page = staff.post(at(object_id), form)
    assert page.status_code == 400
    assert "f.picture.error" in page.text


def test_an_access_list_is_edited_by_rows(staff):
    object_id = make()
    form = filled(staff, at(object_id))
    form |= {
        "acl.kind": "list",
        "acl.who": ["public", "role", "user", "user"],
        "acl.name": ["", "Judges", "someone123", ""],
        "acl.read": ["0", "1"],
        "acl.write": ["1", "2"],
    }
    staff.post(at(object_id), form)
    assert stored_object(object_id)["ACL"] == {
        "*": {"read": True},
        "role:Judges": {"read": True, "write": True},
        "someone123": {"write": True},
    }
    staff.post(at(object_id), filled(staff, at(object_id)) | {"acl.kind": "open"})
    assert "ACL" not in stored_object(object_id)
    empty = {"acl.kind": "list", "acl.who": [], "acl.name": []}
    staff.post(at(object_id), filled(staff, at(object_id)) | empty)
    assert stored_object(object_id)["ACL"] == {}


@pytest.mark.parametrize(("who", "name"), [("user", "role:X"), ("user", "*"), ("role", "<b>")])
def test_an_odd_entry_of_an_access_list_is_refused(staff, who, name):
    object_id = make()
    entry = {"acl.kind": "list", "acl.who": [who], "acl.name": [name], "acl.read": ["0"]}
    page = staff.post(at(object_id), filled(staff, at(object_id)) | entry)
    assert page.status_code == 400
    assert "error 123" in page.text
    assert "<b>" not in page.text
    assert "ACL" not in stored_object(object_id)


@pytest.mark.parametrize("tail", ["", "json/"])
def test_who_saves_an_outdated_form_is_shown_both_and_overwrites_only_by_saving_again(staff, tail):
    object_id = make(title="first", score=1)
    form = filled(staff, at(object_id, tail))
    if tail:
        form["json"] = '{"title": "mine", "score": 1}'
    else:
        form["f.title"] = "mine"
    service.update(MASTER, "Game", object_id, {"title": "theirs"})
    page = staff.post(at(object_id, tail), form)
    assert page.status_code == 409
    assert "This object has changed" in page.text
    assert "theirs" in page.text
    assert "mine" in page.text
    assert stored_object(object_id)["title"] == "theirs"
    form["updatedAt"] = stored_object(object_id)["updatedAt"]
    assert f'value="{form["updatedAt"]}"' in page.text
    staff.post(at(object_id, tail), form)
    assert stored_object(object_id)["title"] == "mine"


def test_a_form_without_the_state_it_was_made_from_saves_nothing(staff):
    object_id = make(title="a")
    assert staff.post(at(object_id), {"f.title": "b"}).status_code == 409
    assert staff.post(at(object_id, "json/"), {"json": "{}"}).status_code == 409
    assert stored_object(object_id)["title"] == "a"


def test_an_object_is_edited_as_json(staff):
    object_id = make(title="a", score=1, ACL={"*": {"read": True}})
    form = filled(staff, at(object_id, "json/"))
    assert json.loads(form["json"]) == {"title": "a", "score": 1, "ACL": {"*": {"read": True}}}
    form["json"] = '{"score": 2, "extra": [1], "ACL": {"*": {"read": true}}}'
    staff.post(at(object_id, "json/"), form)
    now = stored_object(object_id)
    assert (now.get("title"), now["score"], now["extra"]) == (None, 2, [1])
    assert now["ACL"] == {"*": {"read": True}}


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"objectId": "x"}', '{"a b": 1}', '{"score": "x"}', '{"ACL": 1}']
)
def test_json_that_is_no_object_of_the_class_is_refused_and_stays(staff, text):
    object_id = make(score=1)
    form = filled(staff, at(object_id, "json/")) | {"json": text}
    page = staff.post(at(object_id, "json/"), form)
    assert page.status_code == 400
    assert 'role="alert"' in page.text
    assert stored_object(object_id)["score"] == 1


def test_a_new_object_takes_defaults_and_the_class_s_access_list(staff):
    classes.change(
        MASTER,
        "Game",
        {
            "fields": {"level": {"type": "Number", "defaultValue": 3}},
            "classLevelPermissions": {"ACL": {"*": {"read": True}}},
        },
    )
    assert 'value="3"' in staff.get(f"{GAME}add/").text
    form = {"f.title": "new", "f.level": "3", "acl.kind": "default"}
    answer = staff.post(f"{GAME}add/", form)
    made = stored_object(answer.headers["Location"].rstrip("/").rpartition("/")[2])
    assert (made["title"], made["level"], made["ACL"]) == ("new", 3, {"*": {"read": True}})
    answer = staff.post(f"{GAME}add/", form | {"acl.kind": "list"})
    made = stored_object(answer.headers["Location"].rstrip("/").rpartition("/")[2])
    assert made["ACL"] == {}
    page = staff.post(f"{GAME}add/", {"f.score": "x"})
    assert page.status_code == 400


def test_a_user_is_made_and_given_a_password(staff):
    registry.find("_User")
    path = "/admin/data/_User/"
    answer = staff.post(f"{path}add/", {"f.username": "zoe", "f.password": "a good long one"})
    assert answer.status_code == 302, answer.text
    assert log_in("zoe", "a good long one").status == 200
    address = answer.headers["Location"]
    staff.post(address, filled(staff, address) | {"f.password": "another long one"})
    assert log_in("zoe", "another long one").status == 200
    assert "another long one" not in staff.get(address).text


def test_an_object_names_the_fields_that_may_point_to_it_and_code_that_reads_it(staff):
    ann = sign_up("ann")
    page = staff.get(f"/admin/data/_User/o/{ann.user_id}/").text
    assert "Game.player" in page
    assert "/admin/data/Game/?where=%7B%22player%22%3A%7B%22__type%22%3A%22Pointer%22" in page
    assert f"/api/users/{ann.user_id}&quot;" in page
    game = make(title="a")
    page = staff.get(at(game)).text
    assert "Used by" not in page
    assert f"/api/classes/Game/{game}&quot;" in page


def test_fields_of_classes_that_the_staff_user_may_not_see_aren_t_named():
    make_class()
    ann = sign_up("ann")
    user = User.objects.create_user("limited", is_staff=True)
    user.user_permissions.add(
        Permission.objects.get(codename="view_user", content_type__app_label="objects")
    )
    client = Client()
    client.force_login(user)
    assert "Game.player" not in client.get(f"/admin/data/_User/o/{ann.user_id}/").text


def test_an_object_is_deleted_after_a_confirmation(staff):
    ids = [make(), make()]
    assert staff.get(at(ids[0], "delete/")).status_code == 200
    page = staff.post(at(ids[0], "delete/"))
    assert "Delete 1 object" in page.text
    assert stored_object(ids[0])
    answer = staff.post(at(ids[0], "delete/"), {"confirmed": "1"}, follow=True)
    assert "1 object deleted" in answer.text
    assert [row["objectId"] for row in _all()] == [ids[1]]
    answer = staff.post(at(ids[0], "delete/"), {"confirmed": "1"})
    assert answer.status_code == 404
    assert "Object not found" in answer.text


def _all():
    return service.find(MASTER, "Game", FindOptions(where=Everything(), limit=10)).objects()


def test_members_of_a_relation_are_shown_added_and_taken_out(staff):
    ann, bob = sign_up("ann"), sign_up("bob")
    object_id = make()
    path = at(object_id, "relation/fans/")
    assert "No members" in staff.get(path).text
    staff.post(path, {"add": f"{ann.user_id}, {bob.user_id}"})
    page = staff.get(path).text
    assert "ann" in page
    assert f"/admin/data/_User/o/{bob.user_id}/" in page
    staff.post(path, {"ids": [ann.user_id]})
    assert ann.user_id not in staff.get(path).text
    assert staff.post(path, {"add": "***"}).status_code == 400
    assert staff.get(at(object_id, "relation/score/")).status_code == 404
    assert staff.get(at("missing123", "relation/fans/")).status_code == 404


@pytest.mark.parametrize("tail", ["", "json/", "relation/fans/"])
def test_an_object_that_isn_t_there_is_404(staff, tail):
    for object_id in ("missing123", "<b>", "a b"):
        page = staff.get(at(object_id, tail))
        assert page.status_code == 404
        assert "<b>" not in page.text


@pytest.mark.django_db(transaction=True)
def test_of_two_who_save_at_the_same_moment_one_is_warned():
    make_class()
    object_id = make(title="first")
    clients = [logged_in(), logged_in(EDITORS)]
    form = filled(clients[0], at(object_id))

    def save(client: Client, title: str) -> int:
        return client.post(at(object_id), form | {"f.title": title}).status_code

    for turn in range(3):
        form["updatedAt"] = stored_object(object_id)["updatedAt"]
        codes = at_once(
            [partial(save, client, f"by {n}, {turn}") for n, client in enumerate(clients)]
        )
        assert sorted(codes) == [302, 409]
