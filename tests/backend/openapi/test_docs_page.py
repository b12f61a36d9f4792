"""The page that shows the document: what it is made of, and what a person does with it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from playwright.sync_api import Page, Request, expect

from tests.backend.openapi.document import document
from tests.chromium import NEEDS_CHROMIUM
from tests.people import sign_up
from tests.rest import MASTER, Api

in_browser = NEEDS_CHROMIUM
stored = pytest.mark.django_db(transaction=True)
committed = pytest.mark.usefixtures("emptied")
SECRETS = ("test-rest-key", "test-master-key", "wrong-key")


@pytest.mark.django_db
def test_the_page_needs_no_key_and_holds_no_data():
    Api(MASTER).make("Project", name="a")
    response = Client().get("/api/docs")
    assert response.status_code == 200
    text = response.content.decode()
    assert "Project" not in text
    assert "test-" not in text


@pytest.mark.django_db
def test_nothing_of_the_page_runs_or_comes_from_elsewhere():
    response = Client().get("/api/docs")
    policy = response.headers["Content-Security-Policy"]
    static = "http://localhost:8000/static/ testserver/static/"
    assert f"default-src 'none'; script-src {static};" in policy
    assert "unsafe-eval" not in policy
    text = response.content.decode()
    assert text.count("<script") == text.count('<script src="/static/')
    assert "http://" not in text
    assert "https://" not in text


@pytest.mark.django_db
def test_the_page_can_be_switched_off(settings, client):
    settings.SERVICE = {**settings.SERVICE, "API_DOCS": False}
    assert client.get("/docs").error == (404, 108)
    assert "/docs" not in document(client)["paths"]


@pytest.mark.django_db
def test_the_page_is_read_only(client):
    reply = client.post("/docs")
    assert reply.error == (405, 108)
    assert reply.headers["Allow"] == "GET, HEAD"


@pytest.fixture
def requests() -> list[Request]:
    """What the page has asked for."""
    return []


@pytest.fixture
def page(chromium: Any, live_server: Any, settings: Any, requests: list[Request]) -> Iterator[Page]:
    # The document's own address is another one: a request of the page still goes to its origin.
    settings.SERVICE = {**settings.SERVICE, "PUBLIC_URL": "https://api.example.org"}
    context = chromium.new_context(
        base_url=live_server.url, viewport={"width": 1280, "height": 900}
    )
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
    page.on("request", lambda request: requests.append(request))
    yield page
    assert all(item.url.startswith((live_server.url, "data:")) for item in requests)
    assert not any(secret in item.url for item in requests for secret in SECRETS)
    assert context.cookies() == []
    context.close()
    wrong = [text for text in complaints if text.startswith(("error", "warning"))]
    assert [text for text in wrong if "Failed to load resource" not in text] == []


def look(page: Page, name: str) -> None:
    """Keep a picture of the page, in the folder that PAGE_PICTURES names."""
    folder = os.environ.get("PAGE_PICTURES")
    if folder:
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)


def show(page: Page, **keys: str) -> None:
    for label, value in keys.items():
        page.get_by_label(label.replace("_", " ")).fill(value)
    page.get_by_role("button", name="Show the API").click()


def operation(page: Page, summary: str) -> Any:
    return page.locator(".opblock").filter(has_text=summary).first


@in_browser
@stored
@committed
def test_a_request_is_tried(page, requests):
    master = Api(MASTER)
    for number in range(3):
        master.make("Project", name=f"project {number}", stars=number)
    page.goto("/api/docs")
    look(page, "docs_empty")
    show(page, Application_id="test-app", Client_key="test-rest-key")
    tag = page.locator(".opblock-tag[data-tag=Project]")
    expect(tag).to_be_visible()
    look(page, "docs_closed")

    tag.click()
    find = operation(page, "Find objects of Project")
    find.locator(".opblock-summary-control").click()
    find.get_by_role("button", name="Try it out").click()
    find.locator("tr[data-param-name=where] input").fill('{"stars": {"$gte": 1}}')
    find.locator("tr[data-param-name=order] input").fill("-stars")
    find.get_by_role("button", name="Execute").click()
    answer = find.locator(".live-responses-table")
    expect(answer.locator(".response .response-col_status").first).to_contain_text("200")
    expect(answer.locator(".response .response-col_description").first).to_contain_text("project 2")
    look(page, "docs_tried")
    sent = next(request for request in requests if "/classes/Project?" in request.url)
    assert sent.headers["x-svc-rest-api-key"] == "test-rest-key"
    assert "x-svc-master-key" not in sent.headers


@in_browser
@stored
@committed
def test_an_object_is_made_with_a_session(page, requests):
    Api(MASTER).make("Project", name="a")
    ann = sign_up("ann")
    page.goto("/api/docs")
    show(page, Application_id="test-app", Client_key="test-rest-key", Session_token=ann.token)
    page.locator(".opblock-tag[data-tag=Project]").click()
    create = operation(page, "Create an object of Project")
    create.locator(".opblock-summary-control").click()
    look(page, "docs_create")
    create.get_by_role("button", name="Try it out").click()
    create.locator("textarea").fill('{"name": "by ann"}')
    create.get_by_role("button", name="Execute").click()
    status = create.locator(".live-responses-table .response .response-col_status").first
    expect(status).to_contain_text("201")
    assert [result["name"] for result in ann.results("Project", order="createdAt")] == [
        "a",
        "by ann",
    ]
    sent = next(result for result in requests if result.method == "POST")
    assert sent.headers["x-svc-session-token"] == ann.token


@in_browser
@stored
@committed
def test_wrong_keys_are_reported(page):
    page.goto("/api/docs")
    show(page, Application_id="test-app", Client_key="wrong-key")
    expect(page.get_by_role("status")).to_contain_text("unauthorized (code 262)")
    look(page, "docs_refused")
    assert page.evaluate("sessionStorage.length") == 0
    show(page, Client_key="test-rest-key")
    expect(page.locator(".opblock-tag").first).to_be_visible()
    expect(page.get_by_role("status")).to_be_empty()


@in_browser
@stored
@committed
def test_keys_stay_in_the_tab_until_they_are_to_be_forgotten(page):
    page.goto("/api/docs")
    show(page, Application_id="test-app", Client_key="test-rest-key")
    expect(page.locator(".opblock-tag").first).to_be_visible()
    page.reload()
    expect(page.locator(".opblock-tag").first).to_be_visible()
    assert page.evaluate("localStorage.length") == 0

    other = page.context.new_page()
    other.goto("/api/docs")
    expect(other.get_by_label("Application id")).to_have_value("")
    other.close()

    page.get_by_role("button", name="Forget the keys").click()
    expect(page.locator(".opblock-tag")).to_have_count(0)
    assert page.evaluate("sessionStorage.length") == 0
    expect(page.get_by_label("Client key")).to_have_value("")
    page.reload()
    expect(page.get_by_label("Application id")).to_have_value("")


@in_browser
@stored
@committed
def test_the_page_fits_a_narrow_screen(page):
    Api(MASTER).make("Project", name="a")
    page.set_viewport_size({"width": 360, "height": 740})
    page.goto("/api/docs")
    show(page, Application_id="test-app", Client_key="test-rest-key")
    expect(page.locator(".opblock-tag").first).to_be_visible()
    look(page, "docs_narrow")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
