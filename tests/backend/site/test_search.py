"""The search of the admin: what it finds, for whom, and in which order."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils import timezone

from backend.kernel.errors import Timeout
from backend.kernel.principal import MASTER
from backend.site import search
from backend.site.search import Result
from backend.site.staff import ADMINISTRATORS, VIEWERS
from chain.models import Blockchain, SmartContract, Wallet
from functions.models import FeatureFlag
from functions.webhooks.models import Hook
from objects import service
from objects.service import classes
from tests.objects.admin.games import make, make_class
from tests.objects.admin.staff import logged_in
from tests.people import sign_up

pytestmark = pytest.mark.django_db
ADDRESS = "0x52908400098527886E0F7030069857D2E4169EE7"


def results(client: Client, text: str, **options: str) -> dict[str, list[str]]:
    """The titles of what is found, by the titles of the groups, in their order."""
    response = client.get("/admin/search/results/", {"q": text, **options})
    assert response.status_code == 200, response.json()
    return {
        group["title"]: [result["title"] for result in group["results"]]
        for group in response.json()["groups"]
    }


def links(client: Client, text: str) -> list[str]:
    groups = client.get("/admin/search/results/", {"q": text}).json()["groups"]
    return [result["link"] for group in groups for result in group["results"]]


def with_permissions(username: str, *names: str) -> Client:
    user = User.objects.create_user(username, is_staff=True)
    for name in names:
        app_label, codename = name.split(".")
        user.user_permissions.add(
            Permission.objects.get(codename=codename, content_type__app_label=app_label)
        )
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def world() -> dict[str, str]:
    """Something of each kind. Its ids by name."""
    make_class(indexes={"by_title": {"title": 1}})
    classes.create(MASTER, "Tournament", {"fields": {"name": {"type": "String"}}})
    ann = sign_up("ann", email="ann@example.org")
    service.create(MASTER, "_Role", {"name": "Referees", "ACL": {}})
    for model, fields in (
        (Blockchain, {"network_id": 137, "name": "Polygon"}),
        (SmartContract, {"network_id": 137, "name": "Cup", "address": ADDRESS}),
    ):
        now = timezone.now()
        model.objects.create(object_id=model.__name__, created_at=now, updated_at=now, **fields)
    Wallet.objects.create(
        wallet_id="w", user_id=ann.user_id, network="137", address=ADDRESS, custodian="local"
    )
    Hook.objects.create(function_name="grantCup", url="https://example.org/hook?key=quetzal")
    FeatureFlag.objects.create(name="brackets", description="Show the bracket")
    return {
        "game": make(title="The final"),
        "tournament": service.create(MASTER, "Tournament", {"name": "Open"}).object_id,
        "ann": ann.user_id,
    }


def test_everything_is_found_by_what_staff_call_it(world):
    client = logged_in()
    found = {
        "game": ("Classes", "Game"),
        "tourn": ("Classes", "Tournament"),
        world["game"]: ("Objects", world["game"]),
        f"Game {world['game']}": ("Objects", world["game"]),
        f"game/{world['game']}": ("Objects", world["game"]),
        "The fi": ("Objects", "The final"),
        "Game The": ("Objects", "The final"),
        "Open": ("Objects", "Open"),
        "ANN": ("Users", "ann"),
        "ann@example": ("Users", "ann"),
        world["ann"]: ("Users", "ann"),
        ADDRESS: ("Wallets", "ann"),
        ADDRESS.lower(): ("Contracts", "Cup"),
        "refer": ("Roles", "Referees"),
        "grantcup": ("Webhooks", "grantCup"),
        "bracket": ("Feature flags", "brackets"),
        "polyg": ("Networks", "Polygon"),
        "137": ("Networks", "Polygon"),
        "monitor": ("Functions", "monitorTransaction"),
        "rate lim": ("Pages", "Rate limits"),
        "WS_send": ("Settings", "WS_SEND_QUEUE"),
        "BACKUP_TO": ("Settings", "BACKUP_TO"),
        "live queries": ("Documentation", "Live queries"),
    }
    for text, (group, title) in found.items():
        titles = results(client, text).get(group, [])
        assert any(title in each for each in titles), (text, results(client, text))


def test_each_link_leads_to_a_page(world):
    client = logged_in()
    texts = ("game", world["game"], "ann", ADDRESS, "grantCup", "brackets", "Polygon", "monitor")
    for text in (*texts, "Referees", "backup", "Rate limits"):
        for link in links(client, text):
            assert client.get(link).status_code == 200, (text, link)


VISIBLE: dict[tuple[str, ...], set[str]] = {
    (): set(),
    ("objects.view_storedobject",): {"Classes", "Objects"},
    ("objects.view_user",): {"Classes", "Objects", "Users", "Pages"},
    ("objects.view_role",): {"Classes", "Objects", "Roles", "Pages"},
    ("chain.view_wallet", "objects.view_user"): {"Users", "Wallets", "Classes", "Pages"},
    ("chain.view_wallet",): set(),
    ("functions.view_hook",): {"Webhooks", "Pages"},
    ("backend.view_setting",): {"Settings", "Pages"},
    ("chain.view_blockchain",): {"Networks", "Classes", "Objects", "Pages"},
}


def test_nothing_is_found_that_staff_may_not_see(world):
    texts = (
        *("game", "_user", "ann", "refer", "grantcup", "bracket", "polyg", "cup"),
        *("monitor", "users", "settings", "webhooks", "WS_", "The fi", ADDRESS, *world.values()),
    )
    for number, (permissions, visible) in enumerate(VISIBLE.items()):
        client = with_permissions(f"custom{number}", *permissions)
        found: dict[str, list[str]] = {}
        for text in texts:
            found |= results(client, text)
        assert found.keys() <= visible, (permissions, found.keys() - visible)
        if "objects.view_user" not in permissions:
            assert "ann" not in [title for titles in found.values() for title in titles]
        if permissions == ("objects.view_storedobject",):
            assert found.keys() == visible


def test_no_value_of_a_setting_and_no_secret_of_a_webhook_is_found(world, monkeypatch):
    monkeypatch.setenv("METRICS_TOKEN", "hush-hush-9")
    monkeypatch.setenv("BACKUP_TO", "/places/xylophone")
    client = logged_in()
    for text in ("hush", "xylophone", "quetzal"):
        assert results(client, text) == {}
    assert "quetzal" not in client.get("/admin/search/results/", {"q": "grantCup"}).text


def test_who_may_search():
    for client in (logged_in(None), logged_in(VIEWERS), logged_in(ADMINISTRATORS)):
        assert "Pages" in results(client, "users")
    customer = Client()
    customer.force_login(User.objects.create_user("customer"))
    for client in (customer, Client()):
        assert client.get("/admin/search/results/", {"q": "users"}).status_code == 403


def test_any_text_may_be_searched_for(world):
    client = logged_in()
    for text in ("", " ", "%", "_", "\\", "'", '"', "{", "🎲" * 100, "ß", "É", "\u200b", "Game %"):
        response = client.get("/admin/search/results/", {"q": text})
        assert response.status_code == 200, text
        assert set(response.json()) == {"groups", "notes"}
    assert client.get("/admin/search/results/", {"q": "a\0"}).status_code == 400


def test_a_text_that_is_too_long_or_missing_is_refused():
    client = logged_in()
    response = client.get("/admin/search/results/", {"q": "a" * 201})
    assert (response.status_code, response.json()["error"][:2]) == (400, "q:")
    assert client.get("/admin/search/results/").status_code == 400


def test_the_best_match_comes_first(rf):
    titles = ["my game", "endgame", "Game", "GameScore", "other"]
    source = [Result(title, "/", "a game" if title == "other" else "") for title in titles]
    ranked = [result.title for _, result in sorted(search._ranked("game", source))]
    assert ranked == ["Game", "GameScore", "my game", "endgame", "other"]


def test_words_may_be_given_in_any_order_and_across_title_and_detail():
    result = Result("WS_MAX_CONNECTIONS", "/", "connections of one address")
    for text in ("max ws", "connections max", "max address", "ws_max"):
        assert search._closeness(text, result) is not None, text
    assert search._closeness("max zebra", result) is None


def test_a_source_that_fails_leaves_the_others(monkeypatch):
    def failing(request, text):
        raise Timeout("It took too long.")

    client = logged_in()
    broken = search._Source("Broken", "bolt", 1, None, failing)
    monkeypatch.setattr(search, "_sources", [broken, *search._sources])
    response = client.get("/admin/search/results/", {"q": "users"}).json()
    assert "Pages" in [group["title"] for group in response["groups"]]
    assert response["notes"][0].startswith("Broken couldn't be searched: ")


def test_objects_are_not_searched_while_browsing_as_a_user(world):
    client = logged_in()
    client.post("/admin/browse-as/", {"public": "1"})
    assert "Objects" not in results(client, world["game"])


def test_one_group_can_be_searched(world):
    assert [*results(logged_in(), "game", group="Classes")] == ["Classes"]
