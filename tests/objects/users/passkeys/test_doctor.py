"""``manage.py doctor`` on the settings of passkeys."""

from __future__ import annotations

import pytest
from django.utils.module_loading import autodiscover_modules

from objects.users.passkeys import relying_party
from tests.objects.users.passkeys.calls import register


def findings() -> list[tuple[str, str]]:
    autodiscover_modules("doctor")
    from objects.doctor import passkeys

    return [(finding.level, finding.text) for finding in passkeys()]


@pytest.mark.parametrize(
    ("public_url", "origin", "domain"),
    [
        ("http://localhost:8000", "http://localhost:8000", "localhost"),
        ("https://api.example.org", "https://api.example.org", "api.example.org"),
        ("https://api.example.org:443", "https://api.example.org", "api.example.org"),
        ("http://[::1]:80/x", "http://[::1]", "::1"),
    ],
)
def test_domain_and_origin_are_the_public_addresss(settings, public_url, origin, domain):
    settings.SERVICE = {**settings.SERVICE, "PUBLIC_URL": public_url}
    assert (relying_party.origins(), relying_party.domain()) == ([origin], domain)


def test_settings_that_work_are_fine(db, settings):
    assert findings() == [("ok", "of localhost, used at http://localhost:8000")]
    origins = ("https://app.example.org", "android:apk-key-hash:x")
    service = {"WEBAUTHN_RP_ID": "example.org", "WEBAUTHN_ORIGINS": origins}
    settings.SERVICE = {**settings.SERVICE, **service}
    assert [level for level, _ in findings()] == ["ok"]


@pytest.mark.parametrize(
    ("service", "message"),
    [
        ({"WEBAUTHN_ORIGINS": ("https://evil.org",)}, "isn't of the domain localhost"),
        ({"WEBAUTHN_RP_ID": "example.org"}, "http://localhost:8000 isn't of the domain"),
        ({"WEBAUTHN_RP_ID": "ample.org", "WEBAUTHN_ORIGINS": ("https://example.org",)}, "domain"),
        ({"WEBAUTHN_RP_ID": "a.org", "WEBAUTHN_ORIGINS": ("http://a.org",)}, "isn't https"),
        ({"WEBAUTHN_RP_ID": "127.0.0.1"}, "belong to names"),
    ],
)
def test_settings_that_can_not_work_are_reported(db, settings, service, message):
    settings.SERVICE = {**settings.SERVICE, **service}
    ((level, text),) = findings()
    assert level == "warn"
    assert message in text


def test_no_one_is_bothered_who_does_not_use_them(db, settings):
    register("ann")
    settings.SERVICE = {**settings.SERVICE, "PUBLIC_URL": "http://10.0.0.1"}
    assert [level for level, _ in findings()] == ["warn"]
    from objects.users.passkeys.models import Passkey

    Passkey.objects.all().delete()
    assert [level for level, _ in findings()] == ["ok"]
