"""Who may call the endpoints of the grid: by staff permission, by class, and with CSRF's token."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from backend.site.staff import ADMINISTRATORS, EDITORS, VIEWERS
from tests.objects.admin.games import GAME, make, make_class, send, stored_object
from tests.objects.admin.staff import logged_in
from tests.people import sign_up

pytestmark = pytest.mark.django_db

LAYOUT = {"columns": [{"name": "score", "width": 90}], "size": 100}
CALLS: dict[str, tuple[str, str, str]] = {
    "rows": ("GET", "rows/", "view"),
    "names": ("GET", "names/?text=a", "view"),
    "count": ("GET", "count/", "view"),
    "layout": ("PUT", "layout/", "view"),
    "reset": ("DELETE", "layout/", "view"),
    "cells": ("POST", "cells/", "change"),
    "deletions": ("POST", "deletions/", "delete"),
}


def without_rights() -> Client:
    client = Client()
    client.force_login(User.objects.create_user("none", is_staff=True))
    return client


CALLERS: dict[str, tuple[Any, set[str]]] = {
    "superuser": (logged_in, {"view", "change", "delete"}),
    "administrators": (lambda: logged_in(ADMINISTRATORS), {"view", "change", "delete"}),
    "editors": (lambda: logged_in(EDITORS), {"view", "change", "delete"}),
    "viewers": (lambda: logged_in(VIEWERS), {"view"}),
    "staff without rights": (without_rights, set()),
    "anonymous": (Client, set()),
}


@pytest.fixture
def game() -> str:
    make_class()
    return make(title="a", score=1)


def call(client: Client, name: str, game: str, **headers: str) -> Any:
    method, path, _ = CALLS[name]
    if method == "GET":
        return client.get(GAME + path)
    change = {"id": game, "version": stored_object(game)["updatedAt"]}
    edits = {"changes": [{**change, "cells": {"title": {"text": "b"}}}]}
    bodies = {"cells": edits, "deletions": {"ids": [make()]}}
    return send(client, method, GAME + path, bodies.get(name, LAYOUT), **headers)


@pytest.mark.parametrize("caller", CALLERS)
def test_staff_call_what_their_permissions_allow(game, caller):
    make_client, rights = CALLERS[caller]
    client = make_client()
    for name, (_, _, needed) in CALLS.items():
        response = call(client, name, game)
        assert response.status_code == (200 if needed in rights else 403), name
        if response.status_code == 403:
            assert set(response.json()) == {"code", "error"}
    assert stored_object(game)["title"] == ("b" if "change" in rights else "a")


@pytest.mark.parametrize("name", ["layout", "reset", "cells", "deletions"])
def test_writes_need_the_token_of_the_page(game, name):
    client = Client(enforce_csrf_checks=True)
    client.force_login(User.objects.create_superuser("root"))
    response = call(client, name, game)
    assert response.status_code == 403
    assert "CSRF" in response.json()["error"]
    page = client.get(GAME)
    token = page.context["csrf_token"]
    assert call(client, name, game, **{"X-CSRFToken": str(token)}).status_code == 200


@pytest.mark.parametrize(("method", "path"), [("POST", "rows/"), ("GET", "cells/")])
def test_other_methods_are_refused(game, method, path):
    assert send(logged_in(), method, GAME + path, {}).status_code == 403


def test_a_class_of_people_needs_the_permission_for_people():
    sign_up("ann")
    user = User.objects.create_user("limited", is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="view_storedobject"))
    client = Client()
    client.force_login(user)
    for path in ("rows/", "names/", "count/"):
        assert client.get(f"/admin/data/_User/{path}").status_code == 403


@pytest.mark.parametrize("name", ["Nope", "1", "<b>", "a b"])
def test_a_class_that_isn_t_there_is_404(name):
    client = logged_in()
    for path in ("rows/", "names/", "count/"):
        assert client.get(f"/admin/data/{name}/{path}").status_code == 404


def test_a_viewer_in_the_place_of_a_user_reads_with_their_rights_and_writes_nothing(game):
    ann = sign_up("ann")
    hidden = make(title="hidden", ACL={})
    editor = logged_in(EDITORS)
    editor.post("/admin/browse-as/", {"user": ann.user_id, "next": GAME})
    ids = [row["id"] for row in editor.get(f"{GAME}rows/").json()["rows"]]
    assert ids == [game]
    assert editor.get(f"{GAME}count/").json() == {"count": 1}
    assert editor.get(f"{GAME}names/?text=hid").json() == {"names": []}
    assert call(editor, "cells", game).status_code == 403
    editor.post("/admin/browse-as/", {"user": ann.user_id, "next": GAME, "writes": "1"})
    version = stored_object(hidden)["updatedAt"]
    change = {"id": hidden, "version": version, "cells": {"title": {"text": "b"}}}
    response = send(editor, "POST", f"{GAME}cells/", {"changes": [change]})
    assert response.json()["results"][0]["status"] == "error"
    assert stored_object(hidden)["title"] == "hidden"
