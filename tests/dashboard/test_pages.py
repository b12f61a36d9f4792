"""Every page of Parse Dashboard's menus loads, and none of its requests fails."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("emptied")]
PAGES = {
    "browser/_User": "_User",
    "browser/_Role": "_Role",
    "browser/_Session": "_Session",
    "browser/_Installation": "_Installation",
    "browser/_JobStatus": "_JobStatus",
    "views": "Views",
    "webhooks": "Webhooks",
    "jobs/all": "cloudReport",
    "jobs/scheduled": "Scheduled Jobs",
    "jobs/status": "Job Status",
    "jobs/new": "Pick a Job",
    "logs/info": "Logs",
    "logs/error": "Logs",
    "config": "Config",
    "api_console/rest": "Send a test query",
    "api_console/js_console": "JS Console",
    "settings/dashboard": "Dashboard",
    "settings/security": "Overall status",
}
PUSH_PAGES = {
    "push/new": "Push",
    "push/activity/all": "Past Pushes",
    "push/audiences": "Audiences",
}


@pytest.mark.parametrize("path", PAGES)
def test_a_page_loads(dashboard, path):
    dashboard.open(path)
    dashboard.shows(PAGES[path])


@pytest.mark.parametrize("path", PUSH_PAGES)
def test_a_page_about_pushes_loads(dashboard, path):
    dashboard.open(path)
    dashboard.shows(PUSH_PAGES[path])


def test_the_menu_shows_what_the_service_can_do(dashboard, served):
    dashboard.open("browser/_User")
    for entry in ("Browser", "Webhooks", "Jobs", "Logs", "Config", "API Console"):
        dashboard.shows(entry)
    push = served.do("GET", "/serverInfo")["features"]["push"]["immediatePush"]
    assert (dashboard.page.get_by_text("Push", exact=True).count() > 0) == push


def test_the_log_shows_requests(dashboard, served):
    served.do("GET", "/classes/_User")
    dashboard.open("logs/info")
    dashboard.shows("GET /api/classes/_User")


def test_a_query_is_sent_from_the_console(dashboard, served):
    served.do("POST", "/users", {"username": "ann", "password": "a good password"})
    dashboard.open("api_console/rest")
    dashboard.fill("Which endpoint?", "classes/_User")
    dashboard.switch("Use Master Key?")
    dashboard.confirm("Send Query")
    dashboard.shows('"ann"')
