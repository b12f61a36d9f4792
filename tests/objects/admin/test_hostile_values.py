"""What clients have stored is text on every page, never markup."""

from __future__ import annotations

import json

import pytest
from django.db import connection
from django.test import Client

from backend.kernel.principal import MASTER
from objects.definitions import registry
from objects.service import classes
from objects.users.models import User
from tests.objects.admin.games import GAME, at, grid_rows, make, make_class, query
from tests.objects.admin.staff import logged_in
from tests.people import make_role, sign_up
from tests.rest import MASTER as MASTER_KEYS
from tests.rest import Api

pytestmark = pytest.mark.django_db

TAG = "<img src=x onerror=alert(1)>"
ATTRIBUTE = "\" autofocus onfocus=alert(1) x=\"' onfocus='alert(1)"
END = "</textarea></script><script>alert(1)</script>"
ALPINE = '{{ 7*7 }}{% now %} x-data="alert(1)" javascript:alert(1)'
EVIL = [TAG, ATTRIBUTE, END, ALPINE, f"=cmd()|{TAG}", "a\u202eb\u2028"]
UNSTORABLE = "a\x00b"
MARKUP = ("<img src=x", '" autofocus onfocus', "' onfocus='", "<script>alert", 'x-data="alert')


@pytest.fixture
def staff() -> Client:
    make_class()
    return logged_in()


def hostile(text: str) -> str:
    """An object with the text wherever text can be."""
    ann = sign_up("ann")
    # An account from before new names were checked.
    User.objects.filter(object_id=ann.user_id).update(username=f"u{text}"[:60])
    return make(
        title=text,
        tags=[text, {text.replace("$", "").replace(".", ""): text}],
        details={"a": text, text.replace("$", "").replace(".", ""): 1},
        player=ann.pointer,
        fans={"__op": "AddRelation", "objects": [ann.pointer]},
        picture={"__type": "File", "name": text},
    )


def assert_text_only(page) -> None:
    text = page.text if not page.streaming else ""
    for markup in MARKUP:
        assert markup not in text, text[max(0, text.index(markup) - 300) :][:600]


@pytest.mark.parametrize("text", EVIL)
def test_values_are_text(staff, text):
    object_id = hostile(text)
    pages = [
        GAME,
        at(object_id),
        at(object_id, "json/"),
        at(object_id, "relation/fans/"),
        query(GAME, where=json.dumps({"title": text})),
        query(GAME, where=json.dumps({"title": {"$in": [text]}, "$and": [{"tags": text}]})),
        query(f"{GAME}lookup/", of="x", x=text),
        query("/admin/acl-names/", **{"acl.name": f"u{text[:5]}"}),
    ]
    for address in pages:
        assert_text_only(staff.get(address, follow=True))
    viewer = logged_in("Viewers")
    for address in pages:
        assert_text_only(viewer.get(address, follow=True))


@pytest.mark.parametrize("text", [*EVIL, UNSTORABLE])
def test_what_a_link_says_is_text(staff, text):
    for name in (
        "where",
        "order",
        "after",
        "field",
        "operator",
        "value",
        "add",
    ):
        assert_text_only(staff.get(query(GAME, **{name: text, "x": text}), follow=True))
    for address in (
        query("/admin/browse-as/", next=text),
        query(f"{GAME}operators/", field=text),
        query(f"{GAME}lookup/", of=text),
        query("/admin/objects/objectclass/", q=text),
        query("/admin/acl-names/", **{"acl.name": text}),
        query(f"{GAME}lookup/", of="x", x=text),
    ):
        assert_text_only(staff.get(address, follow=True))


@pytest.mark.parametrize("text", [*EVIL, UNSTORABLE])
def test_what_a_form_says_is_text(staff, text):
    object_id = make(title="a")
    for address, form in {
        at(object_id): {"f.score": text, "f.tags": text, "f.title": text, "acl.name": text},
        at(object_id, "json/"): {"json": text},
        f"{GAME}add/": {"f.score": text, "f.place": text, "acl.kind": "list", "acl.name": text},
        f"{GAME}fields/": {"name": text, "type": text, "target": text, "default": text},
        f"{GAME}fields/score/": {"default": text},
        f"{GAME}permissions/": {"find.others": text, "protected.group": text, "defaultACL": text},
        f"{GAME}indexes/": {"name": text, "field": text, "direction": text},
        f"{GAME}remove/": {"what": text, "typed": text},
        "/admin/browse-as/": {"user": text},
        "/admin/objects/objectclass/add/": {"name": text},
    }.items():
        assert_text_only(staff.post(address, form, follow=True))


def test_names_of_users_and_roles_are_text(staff):
    ann = sign_up(TAG)
    make_role(Api(MASTER_KEYS), "a-b c", [ann])
    make(ACL={"role:a-b c": {"read": True}, ann.user_id: {"write": True}})
    staff.post("/admin/browse-as/", {"user": ann.user_id})
    page = staff.get(GAME)
    assert "You browse as &lt;img" in page.text
    assert_text_only(page)
    assert_text_only(staff.get(query("/admin/acl-names/", **{"acl.name": "<img"})))


def test_a_file_s_address_that_was_stored_past_the_door_is_no_script(staff):
    make(picture={"__type": "File", "name": "old.png"})
    table = registry.find("Game")
    assert table is not None
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE {table.relation} SET data = jsonb_set(data, '{{picture,url}}',"
            " '\"javascript:alert(1)\"')"
        )
    cells = grid_rows(staff, columns="picture").json()["rows"][0]["cells"]
    assert "href" not in cells["picture"]


@pytest.mark.parametrize("text", EVIL)
def test_rows_are_json_that_no_browser_takes_for_a_page(staff, text):
    hostile(text)
    for response in (
        grid_rows(staff),
        grid_rows(staff, where=text),
        staff.get(f"{GAME}names/", {"text": text}),
    ):
        assert response.headers["Content-Type"] == "application/json"
        assert response.headers["X-Content-Type-Options"] == "nosniff"


def test_defaults_of_fields_are_text(staff):
    fields = {"motto": {"type": "String", "defaultValue": END}}
    classes.change(MASTER, "Game", {"fields": fields})
    for tail in ("fields/", "fields/motto/", "add/"):
        assert_text_only(staff.get(GAME + tail))


def test_the_policy_lets_no_script_of_a_page_run(staff):
    policy = staff.get(GAME).headers["Content-Security-Policy"]
    static = "http://localhost:8000/static/ testserver/static/"
    words = static.replace("/static/", "/admin/jsi18n/")
    assert f"script-src {static} {words} 'unsafe-eval';" in policy
    assert "frame-ancestors 'none'" in policy
    assert "form-action 'self'" in policy
