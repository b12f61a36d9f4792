"""What operators learn of pushes: ``doctor`` and metrics."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import override_settings

from backend.endpoints.process_metrics import of_pushes
from backend.settings.areas.push import Push as PushSettings
from backend.settings.environment import BadSetting
from objects import doctor
from objects.push import expansion
from tests.objects.push.pushing import install, pass_time, push

pytestmark = pytest.mark.django_db


def findings() -> list[tuple[str, str]]:
    return [(finding.level, finding.text) for finding in doctor.push_notifications()]


def test_doctor_names_what_services_lack(settings: Any) -> None:
    assert findings() == [
        ("ok", "pushes are written to the log and not sent: PUSH_ADAPTERS names no service")
    ]
    adapters = {"ios": "apns", "android": "fcm"}
    with override_settings(SERVICE={**settings.SERVICE, "PUSH_ADAPTERS": adapters}):
        texts = [text for level, text in findings() if level == "fail"]
    assert texts == [
        f"Pushes can't be sent: {name} isn't set."
        for name in (
            *("APNS_KEY", "APNS_KEY_ID", "APNS_TEAM_ID", "APNS_TOPICS"),
            "FCM_SERVICE_ACCOUNT",
        )
    ]
    with override_settings(SERVICE={**settings.SERVICE, "PUSH_ADAPTERS": {}}):
        assert findings() == [("ok", "pushes are switched off")]


def test_doctor_reports_targets_that_nobody_sends() -> None:
    install(1)
    expansion.expand(push())
    assert [level for level, _ in findings()] == ["ok"]
    pass_time(1200)
    assert [level for level, _ in findings()] == ["warn", "ok"]


def test_metrics_show_what_is_due() -> None:
    assert [metric.samples for metric in of_pushes()] == [[], []]
    install(1)
    push()
    expansion.expand(push())
    pass_time(60)
    pushes, age = of_pushes()
    states = {sample.labels["state"]: sample.value for sample in pushes.samples}
    assert states == {"waiting": 1, "sending": 1}
    assert 59 < age.samples[0].value < 120


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PUSH_ADAPTERS", "ios"),
        ("PUSH_ADAPTERS", "ios=mail"),
        ("PUSH_ADAPTERS", "i os=log"),
        ("FCM_URL", "http://fcm.example.org"),
        ("APNS_URL", "http://127.0.0.1:1"),
        ("PUSH_CA_FILE", "/nothing/here.pem"),
        ("PUSH_CA_FILE", __file__),
    ],
)
def test_bad_settings_end_the_process(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(BadSetting, match=name):
        PushSettings.read()


def test_adapters_are_read_by_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PUSH_ADAPTERS", "ios=apns, *=log")
    assert PushSettings.read()["PUSH_ADAPTERS"] == {"ios": "apns", "*": "log"}
    monkeypatch.setenv("PUSH_ADAPTERS", "off")
    assert PushSettings.read()["PUSH_ADAPTERS"] == {}
