"""Uploads in a real browser: none of them runs in the origin of the admin and the API."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib import admin
from django.urls import reverse
from playwright.sync_api import Browser, Page, Route

from objects.definitions import registry
from tests.chromium import NEEDS_CHROMIUM
from tests.objects.admin.browser import look, staff_page
from tests.objects.admin.games import GAME, make, make_class
from tests.objects.admin.staff import staff_user
from tests.objects.files.conftest import empty_storage  # noqa: F401
from tests.objects.files.uploads import file_path, stored
from tests.rest import MASTER, Api

pytestmark = [NEEDS_CHROMIUM, pytest.mark.django_db(transaction=True)]

RUNS = b"window.ran = true; self.ran = true; document.title = 'ran'"
# A page of the same origin that has no policy of its own: what the file's headers prevent.
BARE = "/health"
LOADS = """url => new Promise(done => {
  const script = document.createElement('script');
  script.onload = () => done('loaded');
  script.onerror = () => done('refused');
  script.src = url;
  document.documentElement.append(script);
})"""
IMPORTS = "url => import(url).then(() => 'loaded', () => 'refused')"
STYLES = """url => new Promise(done => {
  const link = document.createElement('link');
  link.rel = 'stylesheet';
  link.onload = () => done('loaded');
  link.onerror = () => done('refused');
  link.href = url;
  document.documentElement.append(link);
})"""
WORKS = """url => new Promise(done => {
  const worker = new Worker(url);
  worker.onerror = () => done('refused');
  worker.onmessage = () => done('loaded');
})"""
# A tenth of a second at 8,000 samples a second.
SILENCE = (
    struct.pack("<4sI4s4sIHHIIHH", b"RIFF", 836, b"WAVE", b"fmt ", 16, 1, 1, 8000, 8000, 1, 8)
    + struct.pack("<4sI", b"data", 800)
    + b"\x80" * 800
)
SERVES = "url => navigator.serviceWorker.register(url).then(() => 'loaded', () => 'refused')"


@pytest.fixture
def address(live_server: Any, settings: Any) -> str:
    settings.SERVICE = {
        **settings.SERVICE,
        "PUBLIC_URL": live_server.url,
        "FILE_EXTENSIONS_ALLOWED": ("*",),
    }
    registry.forget_all()
    url: str = live_server.url
    return url


@pytest.fixture
def page(chromium: Browser, address: str) -> Iterator[Page]:
    context = chromium.new_context(base_url=address)
    yield context.new_page()
    context.close()


def served(name: str, content: bytes, content_type: str = "") -> str:
    return f"/api{file_path(stored(name, content, content_type))}"


def without_metadata(page: Page) -> None:
    """Let requests for files come without ``Sec-Fetch-Dest``, as from a browser without it."""

    def answer(route: Route) -> None:
        response = page.request.get(route.request.url)
        route.fulfill(status=response.status, headers=response.headers, body=response.body())

    page.route("**/api/files/**", answer)


@pytest.mark.parametrize("names_destination", [True, False], ids=["current", "without metadata"])
@pytest.mark.parametrize(
    ("name", "content_type"),
    [("a.js", ""), ("a.mjs", "text/javascript"), ("a.png", ""), ("a", "text/javascript")],
)
def test_no_file_runs_as_a_script(page, name, content_type, names_destination):
    url = served(name, RUNS, content_type)
    page.goto(BARE)
    if not names_destination:
        without_metadata(page)
    assert page.evaluate(LOADS, url) == "refused"
    assert page.evaluate(IMPORTS, url) == "refused"
    assert page.evaluate(WORKS, url) == "refused"
    assert page.evaluate("window.ran") is None


@pytest.mark.parametrize("names_destination", [True, False], ids=["current", "without metadata"])
def test_no_file_becomes_a_service_worker(page, names_destination):
    url = served("sw.js", b"self.addEventListener('fetch', () => {})", "text/javascript")
    page.goto(BARE)
    if not names_destination:
        without_metadata(page)
    assert page.evaluate(SERVES, url) == "refused"
    registrations = "navigator.serviceWorker.getRegistrations().then(all => all.length)"
    assert page.evaluate(registrations) == 0


def test_no_file_is_a_style_sheet(page):
    url = served("a.css", b"html { display: none }", "text/css")
    page.goto(BARE)
    without_metadata(page)
    assert page.evaluate(STYLES, url) == "refused"


@pytest.mark.parametrize(
    ("name", "content_type", "content"),
    [
        ("a.html", "text/html", b"<script>%s</script>"),
        ("a.xhtml", "", b"<html xmlns='http://www.w3.org/1999/xhtml'><script>%s</script></html>"),
        ("a.svg", "", b"<svg xmlns='http://www.w3.org/2000/svg'><script>%s</script></svg>"),
        ("a.xml", "", b"<a xmlns:h='http://www.w3.org/1999/xhtml'><h:script>%s</h:script></a>"),
        (
            "a",
            "video/x+xml",
            b"<a><h:script xmlns:h='http://www.w3.org/1999/xhtml'>%s</h:script></a>",
        ),
        ("a.txt", "", b"<script>%s</script>"),
        ("a.png", "", b"<script>%s</script>"),
    ],
)
def test_a_document_runs_no_script(page, name, content_type, content):
    """Neither opened nor in a frame of a page of the origin."""
    url = served(name, content % b"top.name = 'ran'; fetch('/ran')", content_type)
    observed: list[str] = []
    page.on("request", lambda request: observed.append(request.url))
    page.goto(BARE)
    page.evaluate("url => { location = url }", url)
    page.wait_for_timeout(300)
    page.wait_for_function("window.name === ''")  # also where the navigation isn't over yet
    page.goto(BARE)
    for tag in ("iframe", "object", "embed"):
        page.evaluate(
            "([tag, url]) => { const e = document.createElement(tag); e.src = e.data = url;"
            " document.documentElement.append(e) }",
            [tag, url],
        )
    page.wait_for_timeout(300)
    assert page.evaluate("window.name") == ""
    assert not any(url.endswith("/ran") for url in observed)


def test_the_sandbox_holds_where_a_browser_shows_a_file_nevertheless(page):
    """The policy alone: the same response without ``Content-Disposition`` and as HTML."""
    url = served("a.html", b"<script>name = 'ran'</script><p id=p>text</p>", "text/html")

    def shown(route: Route) -> None:
        response = page.request.get(route.request.url)
        headers = response.headers | {"content-type": "text/html"}
        del headers["content-disposition"]
        route.fulfill(status=200, headers=headers, body=response.body())

    page.route("**/api/files/**", shown)
    page.goto(url)
    assert page.evaluate("document.getElementById('p').textContent") == "text"
    assert page.evaluate("window.name") == ""
    assert page.evaluate("self.origin") == "null"


def test_what_apps_show_is_shown(page, address):
    from tests.objects.admin.test_in_browser import picture

    image = served("a.png", picture(200, 30, 30))
    vector = served("a.svg", b"<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'/>")
    other = address.replace("localhost", "127.0.0.1")
    for origin in (address, other):
        page.goto(f"{origin}{BARE}")
        for url, width in ((image, 32), (vector, 9)):
            size = page.evaluate(
                "url => new Promise(done => { const i = new Image(); i.onload = () =>"
                " done(i.naturalWidth); i.onerror = () => done('refused'); i.src = url })",
                f"{address}{url}",
            )
            assert size == width, (origin, url)
    page.goto(image)
    assert page.evaluate("document.images[0].naturalWidth") == 32
    page.goto(served("a.txt", b"<b>plain</b>"))
    assert page.inner_text("body") == "<b>plain</b>"
    page.goto(served("a.wav", SILENCE))
    page.wait_for_function("document.querySelector('video, audio').readyState > 0")


ADMIN_PAGES = [
    *("/admin/", "/admin/objects/objectclass/", "/admin/objects/objectclass/add/", GAME),
    *(f"{GAME}add/", f"{GAME}fields/", f"{GAME}permissions/", f"{GAME}indexes/"),
    *("/admin/objects/storedfile/", "/admin/people/users/", "/admin/people/sessions/"),
    *("/admin/people/roles/", "/admin/people/installations/", "/admin/logs/", "/admin/limits/"),
    *("/admin/maintenance/", "/admin/access/", "/admin/config/", "/admin/config/parameter/"),
    *("/admin/live/", "/admin/code/functions/", "/admin/jobs/", "/admin/networks/"),
    *("/admin/auth/user/", "/admin/auth/user/add/", "/admin/auth/group/", "/admin/browse-as/"),
]


def test_an_upload_runs_on_no_page_of_the_admin(chromium, address):
    """The admin's policy alone: its pages load scripts from the path of static files."""
    url = served("a.js", RUNS, "text/javascript")

    def scripted(route: Route) -> None:
        route.fulfill(status=200, content_type="text/javascript", body=RUNS)

    with staff_page(chromium, address, staff_user(None), complaints_matter=False) as page:
        page.route(f"{address}{url}", scripted)
        page.goto("/admin/")
        assert page.evaluate(LOADS, url) == "refused"
        assert page.evaluate(LOADS, f"{address}{url}") == "refused"
        assert page.evaluate(LOADS, f"/static/..%2f..{url}") == "refused"
        assert page.evaluate(WORKS, url) == "refused"
        assert page.evaluate(SERVES, url) == "refused"
        assert page.evaluate("window.ran") is None
        # The page's own scripts are there.
        assert page.evaluate("typeof Alpine") == "object"


@pytest.mark.slow
def test_no_page_of_the_admin_violates_its_policy(chromium, address):
    make_class()
    object_id = make(title="a", tags=["b"])
    user = Api(MASTER).post("/users", {"username": "ann", "password": "p"}).json["objectId"]
    lists = [
        reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
        for model in admin.site._registry
    ]
    forms = [f"{GAME}o/{object_id}/", f"/admin/people/users/{user}/"]
    complaints: list[str] = []
    with staff_page(chromium, address, staff_user(None), complaints_matter=False) as page:
        page.on("pageerror", lambda error: complaints.append(f"{page.url}: {error}"))
        page.on(
            "console",
            lambda line: (
                complaints.append(f"{page.url}: {line.text}") if line.type == "error" else None
            ),
        )
        for path in sorted({*ADMIN_PAGES, *lists, *forms}):
            response = page.goto(path)
            page.wait_for_load_state("networkidle")
            assert response is not None
            assert response.status == 200, path
            assert page.evaluate("typeof Alpine") == "object", path
            look(page, f"policy_{path.strip('/').replace('/', '_')}")
    # The service's sockets are another process, which doesn't run here.
    assert [line for line in complaints if "WebSocket" not in line] == []
