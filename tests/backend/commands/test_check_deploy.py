"""``manage.py check --deploy`` warns about settings that are unfit for production."""

from __future__ import annotations

from django.test import override_settings

from backend.checks import deployment

FIT = {
    "MASTER_KEY": "k" * 32,
    "READ_ONLY_MASTER_KEY": "",
    "MASTER_KEY_IPS": ("10.0.0.5",),
}


def warned(public_url: str = "https://api.example.org", **service: object) -> list[str]:
    with override_settings(PUBLIC_URL=public_url, SERVICE=FIT | service):
        return [str(message.id) for message in deployment(None)]


def test_fit_settings_give_no_warning():
    assert warned() == []


def test_a_master_key_from_anywhere_is_warned_about():
    assert warned(MASTER_KEY_IPS=("0.0.0.0/0",)) == ["backend.W001"]


def test_a_public_address_without_encryption_is_warned_about():
    assert warned("http://api.example.org") == ["backend.W002"]
    assert warned("http://localhost:8000") == ["backend.W002"]


def test_log_in_without_limits_is_warned_about():
    assert warned(RATE_LIMITS="off") == ["backend.W004"]
    assert warned(RATE_LIMITS=["floods"]) == ["backend.W004"]
    assert warned(RATE_LIMITS=["guesses"]) == []
    functions = {"path": "/functions/*", "per": "ip", "count": 5, "window": 1}
    assert warned(RATE_LIMITS=[functions]) == ["backend.W004"]
    assert warned(RATE_LIMITS=["defaults", functions]) == []


def test_a_short_master_key_is_warned_about():
    assert warned(MASTER_KEY="secret") == ["backend.W003"]


def test_wallets_without_keys_are_warned_about():
    assert warned(WALLET_CUSTODIAN="mock") == ["backend.W006"]
    assert warned(WALLET_CUSTODIAN="none") == []


def test_a_maintenance_key_from_anywhere_is_warned_about():
    anywhere = {"MAINTENANCE_KEY_IPS": ("10.0.0.5", "::/0")}
    assert warned(MAINTENANCE_KEY="k" * 32, **anywhere) == ["backend.W007"]
    assert warned(MAINTENANCE_KEY="", **anywhere) == []
    assert warned(MAINTENANCE_KEY="k" * 32, MAINTENANCE_KEY_IPS=("10.0.0.5",)) == []
    assert warned(MAINTENANCE_KEY="k" * 13, MAINTENANCE_KEY_IPS=()) == ["backend.W003"]
