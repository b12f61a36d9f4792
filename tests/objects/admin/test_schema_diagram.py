"""The schema as a diagram."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from django.test import Client
from playwright.sync_api import expect

from backend.kernel.principal import MASTER
from backend.site.staff import VIEWERS
from objects.admin.classes import diagram
from objects.definitions import registry
from objects.service import classes
from tests.chromium import NEEDS_CHROMIUM
from tests.objects.admin.browser import look, staff_page
from tests.objects.admin.staff import logged_in, staff_user

pytestmark = pytest.mark.django_db

SCHEMA = "/admin/schema/"


def pointer(target: str) -> dict[str, Any]:
    return {"type": "Pointer", "targetClass": target}


CLASSES: dict[str, dict[str, Any]] = {
    "Writer": {
        "name": {"type": "String", "required": True},
        "email": {"type": "String", "unique": True},
        "account": pointer("_User"),
    },
    "House": {"title": {"type": "String"}, "owner": pointer("Writer")},
    "Novel": {
        "title": {"type": "String", "required": True},
        "author": pointer("Writer"),
        "publisher": pointer("House"),
        "sequelOf": pointer("Novel"),
        "readers": {"type": "Relation", "targetClass": "_User"},
        "tags": {"type": "Array"},
        "pages": {"type": "Number"},
        "missing": pointer("Gone"),
    },
    "Loan": {"book": pointer("Novel"), "user": pointer("_User"), "due": {"type": "Date"}},
    "Setting": {"value": {"type": "Object"}},
}


@pytest.fixture
def library(db: None) -> None:
    registry.forget_all()
    for name, fields in CLASSES.items():
        classes.create(MASTER, name, {"fields": deepcopy(fields)})


@pytest.mark.parametrize(
    ("client", "status"),
    [(lambda: logged_in(None), 200), (lambda: logged_in(VIEWERS), 200), (lambda: Client(), 302)],
)
def test_who_sees_classes_sees_the_diagram(library, client, status):
    caller = client()
    assert caller.get(SCHEMA).status_code == status
    assert caller.post(SCHEMA).status_code in (302, 405)


def test_staff_without_the_permission_do_not(library, django_user_model):
    caller = Client()
    caller.force_login(django_user_model.objects.create_user("plain", is_staff=True))
    assert caller.get(SCHEMA).status_code == 403


def test_all_classes_are_drawn_with_their_links(library):
    page = logged_in().get(SCHEMA)
    drawn = {entry["name"]: entry for entry in page.context["drawn"]["classes"]}
    assert sorted(CLASSES.keys() - drawn.keys()) == []
    fields = {field["name"]: field for field in drawn["Novel"]["fields"]}
    assert fields["author"]["target"] == "Writer"
    assert fields["title"]["is_required"]
    assert ("Novel", "readers", "Relation<_User>", "_User") in page.context["links"]


def test_one_class_is_drawn_with_its_neighbours(library):
    page = logged_in().get(SCHEMA, {"class": "Writer"})
    names = [entry["name"] for entry in page.context["drawn"]["classes"]]
    assert names == ["House", "Novel", "Writer", "_User"]
    nowhere = page.client.get(SCHEMA, {"class": "No\x00class"})
    assert "There is no such class." in nowhere.content.decode()


def test_of_many_classes_those_with_links_are_drawn(library):
    names = [f"Many{number}" for number in range(diagram.MOST)]
    for name in names:
        classes.create(MASTER, name, {"fields": {}})
    page = logged_in().get(SCHEMA)
    drawn = {entry["name"] for entry in page.context["drawn"]["classes"]}
    assert len(drawn) == diagram.MOST
    assert {"Writer", "Novel", "Loan", "House"} <= drawn


@NEEDS_CHROMIUM
@pytest.mark.django_db(transaction=True)
def test_the_diagram_is_drawn_moved_and_saved(chromium, transactional_db, live_server, library):
    wide = {"width": 1400, "height": 900}
    with staff_page(chromium, live_server.url, staff_user(VIEWERS), viewport=wide) as page:
        page.goto(SCHEMA)
        novel = page.get_by_role("link", name="Novel, 8 fields")
        expect(novel).to_be_visible()
        look(page, "schema")
        drawing = page.get_by_role("group", name="Classes and their pointers")
        page.get_by_role("button", name="Fit").click()
        before = drawing.get_attribute("viewBox")
        page.get_by_role("button", name="Larger").click()
        assert drawing.get_attribute("viewBox") != before
        page.get_by_role("button", name="Fit").click()
        assert drawing.get_attribute("viewBox") == before
        with page.expect_download() as download:
            page.get_by_role("button", name="Save as SVG").click()
        saved = download.value.path().read_text()
        assert "sequelOf" in saved
        assert "<script" not in saved
        page.emulate_media(color_scheme="dark")
        page.goto(f"{SCHEMA}?class=Writer")
        expect(page.get_by_text("Writer and 3 neighbours")).to_be_visible()
        look(page, "schema_dark")
        page.set_viewport_size({"width": 390, "height": 844})
        page.goto(SCHEMA)
        expect(novel).to_be_visible()
        look(page, "schema_narrow")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        novel.click()
        expect(page.get_by_role("heading", name="Novel: fields")).to_be_visible()
