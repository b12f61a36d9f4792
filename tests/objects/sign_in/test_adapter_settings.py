"""Which providers there are: anonymous users, adapters of a deployment, the environment."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from django.core.checks import run_checks
from django.core.exceptions import ImproperlyConfigured

from backend.kernel.errors import ObjectNotFound, UnsupportedService
from backend.settings.environment import BadSetting
from objects.users import adapters
from objects.users.adapters import Adapter, ProviderIdentity, Unproven
from tests.setting_areas import providers

DEVICE = "3f1c9b0e-6c1f-4e55-9d3a-0d5ad1f1c0de"


class Badge(Adapter):
    """A deployment's own: accepts those who know the word."""

    def verify(self, data):
        if data.get("word") != self.text("word"):
            raise Unproven("another word")
        return ProviderIdentity(str(data["number"]), {"id": str(data["number"]), "floor": 2})


def test_no_one_signs_in_by_others_unless_it_is_set():
    assert adapters.providers() == frozenset()
    with pytest.raises(UnsupportedService):
        adapters.verify("anonymous", {"id": DEVICE})


def test_anonymous_users_can_be_allowed(settings):
    settings.SERVICE = {**settings.SERVICE, "ALLOW_ANONYMOUS_USERS": True}
    assert adapters.verify("anonymous", {"id": DEVICE}).id == DEVICE


@pytest.mark.parametrize("data", [{}, {"id": ""}, {"id": "1"}, {"id": 7}, {"id": None}])
@pytest.mark.parametrize("extra", [{}, {"other": "x"}])
def test_an_anonymous_user_needs_an_id_that_is_hard_to_guess(settings, data, extra):
    settings.SERVICE = {**settings.SERVICE, "ALLOW_ANONYMOUS_USERS": True}
    with pytest.raises(ObjectNotFound):
        adapters.verify("anonymous", {**data, **extra})


@pytest.mark.parametrize(
    "claimed", ["a" * 256, "a" * 20 + "\x00", "a" * 20 + "\n", "a" * 20 + "\ud800"]
)
def test_an_anonymous_id_can_be_kept(settings, claimed):
    settings.SERVICE = {**settings.SERVICE, "ALLOW_ANONYMOUS_USERS": True}
    with pytest.raises(ObjectNotFound):
        adapters.verify("anonymous", {"id": claimed})


def test_a_deployment_adds_a_class_of_its_own(sign_in_by):
    sign_in_by(badge={"adapter": f"{__name__}.Badge", "word": "sesame"})
    identity = adapters.verify("badge", {"word": "sesame", "number": 12, "id": "12"})
    assert (identity.id, identity.data) == ("12", {"id": "12", "floor": 2})
    for data in ({"word": "no", "number": 12}, {"word": "sesame", "number": 12, "id": "13"}):
        with pytest.raises(ObjectNotFound):
            adapters.verify("badge", data)


def test_a_provider_can_be_switched_off(sign_in_by):
    sign_in_by(google=None, wallet=False)
    assert adapters.providers() == frozenset()


@pytest.mark.parametrize(
    "wrong",
    [
        {"badge": {"adapter": "nowhere.Nothing"}},
        {"badge": {"adapter": "pathlib.Path"}},
        {"badge": {"adapter": "json.loads"}},
        {"badge": {"adapter": 7}},
        {"badge": {}},
        {"badge": "sesame"},
        {"badge": ["sesame"]},
        {"mfa": {"adapter": "anonymous"}},
        {"a.b": {"adapter": "oidc"}},
        {"__op": {"adapter": "oidc"}},
        {"anonymous": {}},
        {"google": {}},
        {"google": {"clientIds": [""]}},
        {"github": {"clientId": "a"}},
        {"facebook": {"appSecret": "a"}},
        {"facebook": {"appId": "1", "graphUrl": "http://example.org"}},
        {"microsoft": {"clientIds": ["a"], "tenants": ["common"]}},
        {"microsoft": {"clientIds": ["a"], "tenants": "common"}},
    ],
    ids=str,
)
def test_a_wrong_setting_is_found_by_the_check(sign_in_by, wrong):
    sign_in_by(**wrong)
    with pytest.raises(ImproperlyConfigured):
        adapters.providers()
    assert [warning.id for warning in run_checks() if warning.id == "objects.E001"] == [
        "objects.E001"
    ]


def test_the_environment_sets_well_known_providers_up(monkeypatch):
    values = {
        "GOOGLE_CLIENT_IDS": "a, b",
        "APPLE_CLIENT_IDS": "org.example.app",
        "MICROSOFT_CLIENT_IDS": "c",
        "MICROSOFT_TENANTS": "",
        "FACEBOOK_APP_ID": "1",
        "FACEBOOK_APP_SECRET": "s",
        "GITHUB_CLIENT_ID": "g",
        "GITHUB_CLIENT_SECRET": "s",
        "WALLET_SIGN_IN": "on",
        "WALLET_RPC_URLS": '{"1": "https://node.example.org"}',
        "AUTH_ADAPTERS": '{"idp": {"adapter": "oidc"}, "apple": {"clientIds": ["other"]}}',
    }
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    assert providers.read() == {
        "google": {"clientIds": ["a", "b"]},
        "apple": {"clientIds": ["other"]},
        "microsoft": {"clientIds": ["c"], "tenants": []},
        "facebook": {"appId": "1", "appSecret": "s"},
        "github": {"clientId": "g", "clientSecret": "s"},
        "wallet": {"rpcUrls": {"1": "https://node.example.org"}},
        "idp": {"adapter": "oidc"},
    }


@pytest.mark.parametrize("value", ["secret", "[1]", "7", '{"a":', "null"])
def test_settings_that_are_no_json_are_refused_without_repeating_them(monkeypatch, value):
    monkeypatch.setenv("AUTH_ADAPTERS", value)
    with pytest.raises(BadSetting) as caught:
        providers.read()
    assert str(caught.value) == "AUTH_ADAPTERS must be a JSON object."


def test_a_github_app_needs_its_secret(monkeypatch):
    monkeypatch.setenv("GITHUB_CLIENT_ID", "g")
    with pytest.raises(BadSetting, match="GITHUB_CLIENT_SECRET"):
        providers.read()


@pytest.mark.slow
def test_adapters_leave_the_recursion_limit_alone():
    """With a higher one, deeply nested JSON ends the process; py_ecc, of web3, sets it."""
    program = (
        "import sys; before = sys.getrecursionlimit();"
        "import objects.users.adapters.siwe, objects.users.adapters.wallet;"
        "assert sys.getrecursionlimit() == before, 'py_ecc' in sys.modules"
    )
    done = subprocess.run(
        [sys.executable, "-c", f"import django; django.setup(); {program}"],
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
