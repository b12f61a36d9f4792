"""Browsing and changing data in Parse Dashboard."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("emptied")]


def _new_class(served, name: str, **fields: Any) -> None:
    served.call("DELETE", f"/purge/{name}")
    served.call("DELETE", f"/schemas/{name}")
    served.do("POST", f"/schemas/{name}", {"fields": fields})


def _rows(served, name: str) -> list[dict[str, Any]]:
    return list(served.do("GET", f"/classes/{name}?order=createdAt")["results"])


def _open_cell(dashboard, served, kind: str, value: Any = None, **options: Any) -> None:
    """Open a new class with one row, whose field ``value`` has this type and value."""
    _new_class(served, "Cell", value={"type": kind, **options})
    served.do("POST", "/classes/Cell", {} if value is None else {"value": value})
    dashboard.open("browser/Cell")


def _cell(served) -> Any:
    """The value of that row."""
    (row,) = _rows(served, "Cell")
    return row.get("value")


def test_a_class_is_created_and_deleted(dashboard, served):
    dashboard.open("browser/_User")
    dashboard.click("Create a class")
    dashboard.fill("What should we call it?", "Garden")
    dashboard.confirm("Create")
    assert served.do("GET", "/schemas/Garden")["className"] == "Garden"
    dashboard.open("browser/Garden")
    dashboard.click("Edit")
    dashboard.click("Delete this class")
    dashboard.fill("Confirm this action", "Garden")
    dashboard.confirm("Delete")
    assert served.call("GET", "/schemas/Garden")[0] == 400


def test_a_column_is_added_and_deleted(dashboard, served):
    _new_class(served, "Game", title={"type": "String"})
    dashboard.open("browser/Game")
    dashboard.click("Add a new column")
    dashboard.fill("What should we call it?", "publisher")
    dashboard.confirm("Add")
    assert served.do("GET", "/schemas/Game")["fields"]["publisher"]["type"] == "String"
    dashboard.open("browser/Game")
    dashboard.click("Edit")
    dashboard.click("Delete a column")
    dashboard.choose("Which column?", "publisher")
    dashboard.confirm("Remove")
    assert "publisher" not in served.do("GET", "/schemas/Game")["fields"]


def test_a_row_is_added_and_deleted(dashboard, served):
    _new_class(served, "Game", title={"type": "String"})
    dashboard.open("browser/Game")
    dashboard.click("Add Row")
    # The cells before it are those of the object's id and times.
    dashboard.edit("(undefined)", to="chess", number=3)
    dashboard.confirm("Add")
    assert [row["title"] for row in _rows(served, "Game")] == ["chess"]
    dashboard.open("browser/Game")
    dashboard.page.locator("input[type=checkbox]").nth(1).check()
    dashboard.click("Edit")
    dashboard.click("Delete this row")
    dashboard.confirm("Delete")
    assert _rows(served, "Game") == []


@pytest.mark.parametrize(
    ("kind", "typed", "stored"),
    [
        ("String", "chess", "chess"),
        ("Number", "42", 42),
        ("Object", '{"a": 1}', {"a": 1}),
        ("Array", '[1, "b"]', [1, "b"]),
    ],
)
def test_a_cell_is_edited(dashboard, served, kind, typed, stored):
    _open_cell(dashboard, served, kind)
    key = "Control+Enter" if kind in ("Object", "Array") else "Enter"
    dashboard.edit("(undefined)", to=typed, key=key)
    assert _cell(served) == stored


def test_a_boolean_is_edited(dashboard, served):
    _open_cell(dashboard, served, "Boolean", True)
    dashboard.text("True").dblclick()
    dashboard.click("False")
    dashboard.page.keyboard.press("Enter")
    dashboard.settle()
    assert _cell(served) is False


def test_a_date_is_edited(dashboard, served):
    _open_cell(dashboard, served, "Date")
    dashboard.edit("(undefined)", to="2026-01-02T03:04:05.000Z")
    date = {"__type": "Date", "iso": "2026-01-02T03:04:05.000Z"}
    assert _cell(served) == date


def test_a_geo_point_is_edited(dashboard, served):
    _open_cell(dashboard, served, "GeoPoint")
    dashboard.text("(undefined)").dblclick()
    dashboard.page.keyboard.type("12.5")
    dashboard.page.keyboard.press("Tab")
    dashboard.page.keyboard.type("13.5")
    dashboard.page.keyboard.press("Enter")
    dashboard.settle()
    point = {"__type": "GeoPoint", "latitude": 12.5, "longitude": 13.5}
    assert _cell(served) == point


def test_a_pointer_is_edited(dashboard, served):
    _new_class(served, "Game", title={"type": "String"})
    game = served.do("POST", "/classes/Game", {"title": "chess"})["objectId"]
    _open_cell(dashboard, served, "Pointer", targetClass="Game")
    dashboard.edit("(undefined)", to=game)
    pointer = {"__type": "Pointer", "className": "Game", "objectId": game}
    assert _cell(served) == pointer


def test_a_file_is_uploaded(dashboard, served):
    _open_cell(dashboard, served, "File")
    dashboard.text("(undefined)").dblclick()
    content = {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"hello"}
    dashboard.page.locator("input[type=file]").set_input_files(content)
    dashboard.settle()
    dashboard.shows("notes.txt")
    assert urllib.request.urlopen(_cell(served)["url"]).read() == b"hello"


def test_rows_are_sorted_and_filtered(dashboard, served):
    _new_class(served, "Game", title={"type": "String"}, year={"type": "Number"})
    for title, year in (("chess", 600), ("go", -500), ("catan", 1995)):
        served.do("POST", "/classes/Game", {"title": title, "year": year})
    dashboard.open("browser/Game?order=year")
    dashboard.shows("catan")
    dashboard.click("Filter")
    dashboard.confirm("Apply")
    dashboard.shows("catan")
    where = '%5B%7B"field"%3A"title"%2C"constraint"%3A"eq"%2C"compareTo"%3A"go"%7D%5D'
    dashboard.open(f"browser/Game?filters={where}")
    dashboard.shows("go")
    assert dashboard.page.get_by_text("catan", exact=True).count() == 0


def test_permissions_of_a_class_are_edited(dashboard, served):
    _new_class(served, "Game", title={"type": "String"})
    dashboard.open("browser/Game")
    dashboard.click("Security")
    dashboard.click("Class Level Permissions")
    dashboard.tick("Write")
    dashboard.confirm("Save CLP")
    permissions = served.do("GET", "/schemas/Game")["classLevelPermissions"]
    assert permissions["find"] == {"*": True}
    assert permissions["create"] == {}


def test_protected_fields_are_saved(dashboard, served):
    _new_class(served, "Game", title={"type": "String"})
    dashboard.open("browser/Game")
    dashboard.click("Security")
    dashboard.click("Protected Fields")
    dashboard.confirm("Save")
    permissions = served.do("GET", "/schemas/Game")["classLevelPermissions"]
    assert permissions["protectedFields"] == {"*": []}


def test_the_access_list_of_a_row_is_edited(dashboard, served):
    _new_class(served, "Game", title={"type": "String"})
    served.do("POST", "/classes/Game", {"title": "chess"})
    dashboard.open("browser/Game")
    dashboard.text("Public Read + Write").dblclick()
    dashboard.tick("Write")
    dashboard.confirm("Save ACL")
    assert _rows(served, "Game")[0]["ACL"] == {"*": {"read": True}}


def test_a_user_is_given_another_password(dashboard, served):
    served.do("POST", "/users", {"username": "bea", "password": "a good password"})
    dashboard.open("browser/_User")
    dashboard.shows("bea")
    dashboard.edit("(hidden)", to="another password")
    assert served.call("GET", "/login?username=bea&password=another+password")[0] == 200
    assert served.call("GET", "/login?username=bea&password=a+good+password")[0] == 404
    dashboard.open("browser/_Session")
    dashboard.shows("1 object")


def test_a_user_is_added(dashboard, served):
    dashboard.open("browser/_User")
    dashboard.click("Add Row")
    # The first is the cell of ``authData``.
    dashboard.edit("(required)", to="zoe", number=1)
    dashboard.edit("(required)", to="a good password", number=1)
    dashboard.confirm("Add")
    assert served.call("GET", "/login?username=zoe&password=a+good+password")[0] == 200


def test_a_session_is_ended(dashboard, served):
    served.do("POST", "/users", {"username": "eve", "password": "a good password"})
    sessions = served.do("GET", "/classes/_Session?order=-createdAt")["results"]
    dashboard.open("browser/_Session")
    dashboard.page.locator("input[type=checkbox]").nth(1).check()
    dashboard.click("Edit")
    dashboard.click("Delete this row")
    dashboard.confirm("Delete")
    assert served.do("GET", "/classes/_Session?order=-createdAt")["results"] == sessions[1:]


def test_a_user_becomes_a_member_of_a_role(dashboard, served):
    user = served.do("POST", "/users", {"username": "mia", "password": "a good password"})
    role = served.do("POST", "/roles", {"name": "Editors", "ACL": {"*": {"read": True}}})
    dashboard.open("browser/_Role")
    dashboard.shows("Editors")
    dashboard.open(f"browser/_Role/{role['objectId']}/users")
    dashboard.click("Attach existing rows from _User")
    dashboard.page.locator("input:visible, textarea:visible").last.fill(user["objectId"])
    dashboard.confirm("Attach")
    dashboard.shows("mia")
    role_pointer = {"__type": "Pointer", "className": "_Role", "objectId": role["objectId"]}
    where = json.dumps({"$relatedTo": {"object": role_pointer, "key": "users"}})
    members = served.do("GET", f"/users?{urlencode({'where': where})}")["results"]
    assert [member["username"] for member in members] == ["mia"]


def test_a_class_is_exported(dashboard, served):
    _new_class(served, "Game", title={"type": "String"})
    served.do("POST", "/classes/Game", {"title": "chess"})
    dashboard.open("browser/Game")
    dashboard.click("Data")
    dashboard.click("Export all rows")
    dashboard.fill("Confirm this action", "export all")
    with dashboard.page.expect_download() as download:
        dashboard.confirm("Export")
    assert "chess" in Path(download.value.path()).read_text()
