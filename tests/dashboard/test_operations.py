"""Config, webhooks and jobs in Parse Dashboard."""

from __future__ import annotations

import json

import pytest

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("emptied")]


def test_a_parameter_is_added_changed_and_deleted(dashboard, served):
    dashboard.open("config")
    dashboard.click("Create a parameter")
    dashboard.fill("Parameter Name", "greeting")
    dashboard.fill("Value", "hello")
    dashboard.switch("Requires master key?")
    dashboard.confirm("Create")
    config = served.do("GET", "/config")
    assert (config["params"], config["masterKeyOnly"]) == (
        {"greeting": "hello"},
        {"greeting": True},
    )
    dashboard.text("greeting").click()
    dashboard.fill("Value", "good morning")
    dashboard.confirm("Save")
    assert served.do("GET", "/config")["params"] == {"greeting": "good morning"}
    dashboard.page.locator("tr", has_text="greeting").locator("svg").last.click()
    dashboard.dialog.locator("input").fill("greeting")
    dashboard.confirm("Delete")
    assert served.do("GET", "/config")["params"] == {}


def test_a_webhook_of_a_function_is_added_changed_and_deleted(dashboard, served):
    dashboard.open("webhooks")
    dashboard.click("Create a Webhook")
    dashboard.fill("Function name", "greet")
    dashboard.fill("Webhook URL", "https://example.com/greet")
    dashboard.confirm("Create")
    assert [hook["url"] for hook in served.do("GET", "/hooks/functions")] == [
        "https://example.com/greet"
    ]
    dashboard.text("greet").click()
    dashboard.fill("Webhook URL", "https://example.com/hello")
    dashboard.confirm("Save")
    assert [hook["url"] for hook in served.do("GET", "/hooks/functions")] == [
        "https://example.com/hello"
    ]
    dashboard.page.locator("tr", has_text="greet").locator("svg").last.click()
    dashboard.confirm("Delete")
    assert served.do("GET", "/hooks/functions") == []


def test_a_webhook_of_a_trigger_is_added(dashboard, served):
    served.do("POST", "/schemas/Game", {"fields": {}})
    dashboard.open("webhooks")
    dashboard.click("Create a Webhook")
    dashboard.choose("Webhook type", "beforeSave")
    dashboard.choose("Choose a Class", "Game")
    dashboard.fill("Webhook URL", "https://example.com/save")
    dashboard.confirm("Create")
    (hook,) = served.do("GET", "/hooks/triggers")
    assert (hook["className"], hook["triggerName"]) == ("Game", "beforeSave")


def test_a_job_is_run_and_scheduled(dashboard, served):
    dashboard.open("jobs/all")
    dashboard.click("Run...")
    dashboard.page.locator("textarea").last.fill('{"since": "2026-01-01T00:00:00Z"}')
    dashboard.confirm("Run")
    dashboard.open("jobs/status")
    dashboard.shows("cloudReport")
    dashboard.open("jobs/new")
    dashboard.fill("Description", "Each night")
    dashboard.choose("Cloud job", "cloudReport")
    dashboard.page.locator("textarea").last.fill('{"since": "2026-01-01T00:00:00Z"}')
    dashboard.confirm("Schedule")
    (schedule,) = served.do("GET", "/cloud_code/jobs")
    assert (schedule["jobName"], schedule["description"]) == ("cloudReport", "Each night")
    dashboard.open("jobs/scheduled")
    dashboard.shows("Each night")


def test_a_push_is_sent(dashboard, served):
    served.do("POST", "/installations", {"deviceType": "ios", "deviceToken": "a" * 64})
    dashboard.open("push/new")
    dashboard.page.get_by_text("Everyone", exact=True).first.click()
    dashboard.page.locator("textarea:visible").first.fill("good morning")
    dashboard.confirm("Send push")
    (status,) = served.do("GET", "/classes/_PushStatus")["results"]
    assert json.loads(status["payload"]) == {"alert": "good morning"}
    dashboard.open("push/activity/all")
    dashboard.shows("good morning")


def test_an_audience_and_a_push(dashboard, served):
    audience = {"name": "Everybody", "query": "{}"}
    served.do("POST", "/push_audiences", audience)
    dashboard.open("push/audiences")
    dashboard.shows("Everybody")
    body = {"where": {}, "data": {"alert": "good morning"}}
    served.do("POST", "/push", body)
    dashboard.open("push/activity/all")
    dashboard.shows("good morning")
