"""How mail is sent, from the environment."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.test import override_settings

from backend.checks import deployment
from backend.settings.environment import BadSetting
from tests.other_process import database_url
from tests.setting_areas import mail

ROOT = Path(__file__).resolve().parents[3]
PUBLIC = "https://api.example.org"
SMTP = "django.core.mail.backends.smtp.EmailBackend"
CONSOLE = "django.core.mail.backends.console.EmailBackend"


def django_values() -> dict:
    return mail.django_values("My App", PUBLIC)


def test_without_settings_mail_is_printed():
    values = django_values()
    assert values["EMAIL_BACKEND"] == CONSOLE
    assert values["DEFAULT_FROM_EMAIL"] == "My App <noreply@api.example.org>"
    assert mail.service_values(PUBLIC)["APP_NAME"] == "api.example.org"


def test_printed_mail_is_warned_about():
    with override_settings(EMAIL_BACKEND=CONSOLE):
        assert "backend.W005" in [message.id for message in deployment(None)]


@pytest.mark.parametrize(
    ("url", "port", "tls", "ssl"),
    [
        ("smtp+tls://user:p%40ss@mail.example.org:587", 587, True, False),
        ("smtp+ssl://user:p%40ss@mail.example.org:465", 465, False, True),
        ("smtp://user:p%40ss@mail.example.org:25", 25, False, False),
    ],
)
def test_a_mail_server_is_one_address(monkeypatch, url, port, tls, ssl):
    monkeypatch.setenv("EMAIL_URL", url)
    values = django_values()
    assert (values["EMAIL_BACKEND"], values["EMAIL_HOST"]) == (SMTP, "mail.example.org")
    assert (values["EMAIL_HOST_USER"], values["EMAIL_HOST_PASSWORD"]) == ("user", "p@ss")
    assert values["EMAIL_PORT"] == port
    assert (values.get("EMAIL_USE_TLS", False), values.get("EMAIL_USE_SSL", False)) == (tls, ssl)


def test_a_mail_server_is_named_by_django_s_settings(monkeypatch):
    monkeypatch.setenv("EMAIL_HOST", "mail.example.org")
    monkeypatch.setenv("EMAIL_USE_TLS", "on")
    monkeypatch.setenv("DEFAULT_FROM_EMAIL", "Us <us@example.org>")
    values = django_values()
    assert (values["EMAIL_BACKEND"], values["EMAIL_PORT"]) == (SMTP, 587)
    assert values["DEFAULT_FROM_EMAIL"] == "Us <us@example.org>"


def test_a_name_of_several_lines_is_one(monkeypatch):
    monkeypatch.setenv("APP_NAME", "My\n App")
    assert mail.service_values(PUBLIC)["APP_NAME"] == "My App"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("EMAIL_URL", "ftp://user:secret@host"),
        ("EMAIL_URL", "smtp://user:secret@host:port"),
        ("DEFAULT_FROM_EMAIL", "nobody"),
        ("EMAIL_PORT", "0"),
        ("EMAIL_TIMEOUT", "soon"),
        ("VERIFY_EMAIL", "perhaps"),
        ("RESET_TOKEN_VALIDITY", "5"),
        ("TEMPLATES_DIR", "/nonexistent"),
    ],
)
def test_a_bad_value_ends_the_process_with_its_name(monkeypatch, tmp_path, name, value):
    monkeypatch.setenv(name, value)

    def read() -> None:
        mail.service_values(PUBLIC)
        django_values()
        mail.template_folders(tmp_path)

    with pytest.raises(BadSetting) as stopped:
        read()
    assert name in str(stopped.value)
    assert "secret" not in str(stopped.value)


def test_both_kinds_of_encryption_are_one_too_many(monkeypatch):
    monkeypatch.setenv("EMAIL_USE_TLS", "on")
    monkeypatch.setenv("EMAIL_USE_SSL", "on")
    with pytest.raises(BadSetting, match="EMAIL_USE_TLS and EMAIL_USE_SSL"):
        django_values()


def test_a_folder_of_templates_is_found_from_the_project(monkeypatch, tmp_path):
    assert mail.template_folders(tmp_path) == []
    (tmp_path / "mine").mkdir()
    monkeypatch.setenv("TEMPLATES_DIR", "mine")
    assert mail.template_folders(tmp_path) == [tmp_path / "mine"]


WITHOUT_BROKER = """
import django
django.setup()
from backend.kernel.errors import ServiceUnavailable
from objects.users.email import delivery as mail
try:
    mail.request_password_reset("ann@example.org")
except ServiceUnavailable:
    print("refused")
"""


@pytest.mark.slow
@pytest.mark.django_db
def test_without_redis_who_asks_for_mail_has_to_come_back():
    environment = {
        **os.environ,
        "DATABASE_URL": database_url(),
        "DJANGO_SETTINGS_MODULE": "backend.settings.django",
        "REDIS_URL": "redis://127.0.0.1:1/0",
    }
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT_BROKER],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.stdout == "refused\n", ran.stderr
