"""Browsing and changing data in Parse Dashboard."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("emptied")]


def _new_class(served, name: str, **fields: Any) -> None:
    served.call("DELETE", f"/purge/{name}")
    served.call("DELETE", f"/schemas/{name}")
    served.do("POST", f"/schemas/{name}", {"fields": fields})


def _rows(served, name: str) -> list[dict[str, Any]]:
    return list(served.do("GET", f"/classes/{name}?order=createdAt")["results"])


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
    _new_class(served, "Cell", value={"type": kind})
    served.do("POST", "/classes/Cell", {})
    dashboard.open("browser/Cell")
    key = "Control+Enter" if kind in ("Object", "Array") else "Enter"
    dashboard.edit("(undefined)", to=typed, key=key)
    assert [row.get("value") for row in _rows(served, "Cell")] == [stored]


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


def test_roles_and_their_members(dashboard, served):
    acl = {"*": {"read": True}}
    role = served.do("POST", "/roles", {"name": "Editors", "ACL": acl})["objectId"]
    dashboard.open("browser/_Role")
    dashboard.shows("Editors")
    dashboard.open(f"browser/_Role/{role}/users")
    dashboard.shows("_Role")


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
