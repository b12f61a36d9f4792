"""A variable that is nearly that of a setting is named; others are nobody's business."""

from __future__ import annotations

import pytest

from backend import environment
from backend.doctor import settings as checks


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("WEB_WORKER", "WEB_WORKERS"),
        ("LOG_LEVLE", "LOG_LEVEL"),
        ("REDIS_URI", "REDIS_URL"),
        ("MAX_LIMITS", "MAX_LIMIT"),
        ("CLOUD_MODULE", "CLOUD_MODULES"),
    ],
)
def test_a_misspelt_setting_is_named(
    monkeypatch: pytest.MonkeyPatch, given: str, meant: str
) -> None:
    monkeypatch.delenv(meant, raising=False)
    monkeypatch.setenv(given, "s3cret")
    assert (given, meant) in environment.misspelt()
    said = [finding.said for finding in checks.names()]
    assert f"{given} is no setting: {meant} is." in said
    assert "s3cret" not in "".join(said)


@pytest.mark.parametrize(
    "name", ["PATH", "HOSTNAME", "LC_ALL", "MY_OWN_URL", "LISTEN_FDS", "HTTP_PROXY", "WEB", "TERM"]
)
def test_other_variables_are_not(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "1")
    assert name not in [given for given, _ in environment.misspelt()]


def test_settings_and_files_of_settings_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEB_WORKERS", "2")
    monkeypatch.setenv("MASTER_KEY_FILE", "/run/secrets/key")
    assert {"WEB_WORKERS", "MASTER_KEY_FILE"}.isdisjoint(
        given for given, _ in environment.misspelt()
    )
