"""The data browser in a real browser: what staff see and do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from backend.principal import MASTER
from objects import classes, registry, service
from tests.admin.browser import NEEDS_CHROMIUM, browser, look, staff_page
from tests.admin.staff import staff_user
from tests.files.uploads import PNG, stored
from tests.people import sign_up

pytestmark = [NEEDS_CHROMIUM, pytest.mark.django_db(transaction=True)]


@pytest.fixture(scope="module")
def chromium(django_db_setup: None) -> Iterator[Browser]:
    with browser() as launched:
        yield launched


@pytest.fixture
def page(chromium: Browser, live_server: Any, settings: Any) -> Iterator[Page]:
    settings.SERVICE = {**settings.SERVICE, "PUBLIC_URL": live_server.url}
    registry.forget_all()
    with staff_page(
        chromium, live_server.url, staff_user(None), viewport={"width": 1440, "height": 900}
    ) as page:
        yield page


@pytest.fixture
def game(page: Page) -> str:
    """A class with a field of every type, and the id of a full object in it."""
    ann = sign_up("ann")
    classes.change(
        MASTER,
        "_User",
        {"fields": {"nick": {"type": "String"}}},
    )
    classes.create(
        MASTER,
        "Game",
        {
            "fields": {
                "title": {"type": "String", "required": True},
                "score": {"type": "Number"},
                "won": {"type": "Boolean"},
                "playedAt": {"type": "Date"},
                "player": {"type": "Pointer", "targetClass": "_User"},
                "picture": {"type": "File"},
                "place": {"type": "GeoPoint"},
                "tags": {"type": "Array"},
                "details": {"type": "Object"},
                "key": {"type": "Bytes"},
                "area": {"type": "Polygon"},
                "fans": {"type": "Relation", "targetClass": "_User"},
            },
            "indexes": {"by_score": {"score": 1}},
        },
    )
    name = stored("board.png", PNG)
    full = service.create(
        MASTER,
        "Game",
        {
            "title": "The final",
            "score": 12.5,
            "won": True,
            "playedAt": {"__type": "Date", "iso": "2024-05-04T10:30:00.250Z"},
            "player": ann.pointer,
            "picture": {"__type": "File", "name": name},
            "place": {"__type": "GeoPoint", "latitude": 48.2, "longitude": 16.37},
            "tags": ["chess", "blitz", {"round": 7}],
            "details": {"opening": "Caro-Kann", "moves": 41},
            "key": {"__type": "Bytes", "base64": "aGVsbG8="},
            "area": {"__type": "Polygon", "coordinates": [[0, 0], [0, 1], [1, 1]]},
            "fans": {"__op": "AddRelation", "objects": [ann.pointer]},
            "ACL": {"*": {"read": True}, ann.user_id: {"read": True, "write": True}},
        },
    ).object_id
    for number in range(60):
        service.create(
            MASTER, "Game", {"title": f"Game {number}", "score": number, "won": number % 2 == 0}
        )
    return full


def test_pictures(page: Page, game: str) -> None:
    for width, tag in ((1440, "_dark"), (390, "_narrow")):
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme="dark" if tag == "_dark" else "light")
        for name, path in {
            "index": "/admin/",
            "classes": "/admin/objects/objectclass/",
            "create_class": "/admin/objects/objectclass/add/",
            "objects": "/admin/data/Game/",
            "filtered": '/admin/data/Game/?where={"score":{"$gt":50}}&order=-score',
            "bad": '/admin/data/Game/?where={"score":{"$x":50}}',
            "object": f"/admin/data/Game/o/{game}/",
            "json": f"/admin/data/Game/o/{game}/json/",
            "relation": f"/admin/data/Game/o/{game}/relation/fans/",
            "delete": f"/admin/data/Game/o/{game}/delete/",
            "fields": "/admin/data/Game/fields/",
            "field": "/admin/data/Game/fields/score/",
            "permissions": "/admin/data/Game/permissions/",
            "indexes": "/admin/data/Game/indexes/",
            "remove": "/admin/data/Game/remove/",
            "act": "/admin/browse-as/",
        }.items():
            page.goto(path)
            page.wait_for_load_state("networkidle")
            look(page, name + tag)
