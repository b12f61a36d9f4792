"""The pages of settings and of the documentation."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from backend.admin import documentation
from backend.settings import environment
from backend.settings.documentation import SETTINGS
from backend.site.staff import VIEWERS
from tests.objects.admin.staff import logged_in

pytestmark = pytest.mark.django_db


def row_of(client: Client, name: str) -> str:
    """What the page shows of a setting, without marks."""
    text = client.get("/admin/settings/", {"all": "1"}).text
    match = re.search(rf'<div id="{name}">(.*?)</dd>', text, re.DOTALL)
    assert match is not None, name
    return " ".join(re.sub("<[^>]*>", " ", match[1]).split())


def test_what_is_set_is_shown_with_its_origin_and_default(monkeypatch, tmp_path):
    file = tmp_path / ".env"
    file.write_text('WS_PING_INTERVAL=77\nLOG_LEVEL="debug"\n')
    for name in ("WS_PING_INTERVAL", "LOG_LEVEL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(environment, "_file_values", {})
    environment.read_file(file)
    monkeypatch.setenv("PARSE_HEADERS", "off")
    (tmp_path / "limit").write_text("99")
    monkeypatch.setenv("MAX_LIMIT_FILE", str(tmp_path / "limit"))
    # What is read from files is read once, in the whole process.
    monkeypatch.setattr(environment._variables, "files_cache", {})
    client = logged_in(VIEWERS)
    assert f"77 from {file}; default:" in row_of(client, "WS_PING_INTERVAL")
    assert "off from the environment variable PARSE_HEADERS; default: on" in row_of(
        client, "PARSE_HEADERS"
    )
    assert "99 from the file that MAX_LIMIT_FILE names" in row_of(client, "MAX_LIMIT")
    assert row_of(client, "PORT").startswith("PORT restart ")
    set_here = client.get("/admin/settings/").text
    assert "WS_PING_INTERVAL" in set_here
    assert "WS_PING_TIMEOUT" not in set_here
    monkeypatch.delenv("WS_PING_INTERVAL")
    monkeypatch.delenv("LOG_LEVEL")


def test_the_environment_takes_precedence_over_a_file(monkeypatch, tmp_path):
    file = tmp_path / ".env"
    file.write_text("WS_PING_INTERVAL=77\n")
    monkeypatch.setenv("WS_PING_INTERVAL", "78")
    monkeypatch.setattr(environment, "_file_values", {})
    environment.read_file(file)
    assert environment.origin("WS_PING_INTERVAL") == "the environment variable WS_PING_INTERVAL"


def test_no_secret_is_shown(monkeypatch):
    client = logged_in()
    for name, setting in SETTINGS.items():
        if setting.secret:
            monkeypatch.setenv(name, f"hush-{name}")
    monkeypatch.setenv("BACKUP_TO", "s3://ann:hush-user@example.org/bucket?token=hush-query")
    monkeypatch.setenv("WALLET_API_URL", "https://ann:hush@example.org/api?key=hush-key")
    for query in ({"all": "1"}, {}, {"q": "key"}):
        text = client.get("/admin/settings/", query).text
        assert "hush" not in text
        assert "set; its value is never shown" in text
    assert client.get("/admin/settings/", {"q": "hush"}).text.count("its value is never") == 0


def test_a_value_that_cannot_be_read_is_named_and_breaks_nothing(monkeypatch):
    monkeypatch.setenv("WS_PING_INTERVAL", "often")
    assert "must be a whole number" in row_of(logged_in(), "WS_PING_INTERVAL")


def test_each_page_of_the_documentation_opens_and_its_links_lead_to_pages():
    client = logged_in(VIEWERS)
    contents = client.get("/admin/docs/").text
    names = documentation.headings()
    assert {"admin", "configuration", "rest"} <= names.keys()
    targets, anchors = set(), set()
    for name in names:
        assert f'href="/admin/docs/{name}/"' in contents
        content = documentation.content(name)
        targets |= set(re.findall(r'(?:href|src)="(/admin/docs/[^"]*)"', content))
        ids = re.findall(r'<\w+ id="([^"]*)"', content)
        assert {heading.anchor for heading in names[name][1:]} <= set(ids)
        anchors |= {documentation.link_to(name, anchor) for anchor in ids}
    pages = {documentation.link_to(name) for name in names}
    pictures = {target for target in targets if "/images/" in target}
    assert {target.partition("#")[0] for target in targets} <= pages | pictures
    for address in (*pictures, documentation.link_to("operating")):
        assert client.get(address).status_code == 200
    assert {target for target in targets if "#" in target} - anchors == set()
    for address in ("/admin/docs/nothing/", "/admin/docs/images/nothing.png"):
        assert client.get(address).status_code == 404
