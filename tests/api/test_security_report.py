"""``/security``: what ``doctor`` finds, in Parse's form."""

from __future__ import annotations

import pytest
from django.conf import settings
from django.test import override_settings

from backend.endpoints import security
from backend.kernel import doctor
from backend.kernel.doctor import Outcome, fail, ok, warn
from backend.operations.checks import load_checks
from tests.people import sign_up


def test_a_report_has_the_form_of_parse():
    outcomes = [
        Outcome("keys", [ok("7 keys")]),
        Outcome("mail", [warn("No mail server.", "Set EMAIL_HOST."), ok("2 addresses")]),
        Outcome("disk", [fail("The disk is full.", "Delete something.")]),
        Outcome("clock", [doctor.Finding("skipped", "not looked at")]),
    ]
    load_checks()
    report = security.report_of(outcomes)
    assert (report["version"], report["state"]) == ("1.0.0", "fail")
    assert [(group["name"], group["state"]) for group in report["groups"]] == [
        ("Settings", "success"),
        ("Machine", "fail"),
    ]
    assert report["groups"][0]["checks"] == [{"title": "Keys", "state": "success"}]
    assert report["groups"][1]["checks"][0] == {
        "title": "Mail",
        "state": "fail",
        "warning": "No mail server.",
        "solution": "Set EMAIL_HOST.",
    }


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_the_checks_of_doctor_run(master, reader):
    doctor.load_with(load_checks)
    reply = master.get("/security")
    assert reply.status == 200
    report = reply.json["report"]
    names = {group["name"] for group in report["groups"]}
    assert {"Settings", "Engines", "Machine", "Objects"} <= names
    # Keys of the test run can be guessed, and are not shown.
    assert report["state"] == "fail"
    assert settings.SECRET_KEY not in str(report)
    assert reader.get("/security").json == reply.json  # the same report for a while


def test_it_can_be_switched_off(master):
    assert master.get("/serverInfo").json["features"]["settings"]["securityCheck"] is True
    with override_settings(SERVICE={**settings.SERVICE, "SECURITY_CHECK": False}):
        reply = master.get("/security")
        assert reply.error == (409, 119)
        assert "security.enableCheck" in reply.json["error"]
        assert master.get("/serverInfo").json["features"]["settings"]["securityCheck"] is False


def test_only_master_keys_read_it(client, application):
    for api in (client, application, sign_up("ann")):
        assert api.get("/security").error == (403, 119)


def test_checks_end_in_time():
    outcomes = list(doctor.run_all(seconds=0))
    assert outcomes
    assert {finding.level for each in outcomes for finding in each.findings} == {"skipped"}
