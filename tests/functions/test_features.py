"""``getFeatures``, ``checkFeatureAccess`` and the flags behind them."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module

import pytest
from django.apps import apps

from functions.feature_flags.features import DEPLOYMENT_FLAGS, LEGACY_FEATURES, NEW_FEATURES
from functions.models import FeatureFlag
from tests.people import User, sign_up
from tests.rest import APPLICATION, MASTER, Api


def set_flag(name: str, **values: object) -> None:
    FeatureFlag.objects.update_or_create(name=name, defaults=values)


def made(name: str, **fields: object) -> User:
    """A user with fields that only the master key sets."""
    user = sign_up(name)
    assert Api(MASTER).put(f"/users/{user.user_id}", fields or {"betaTester": True}).status == 200
    return user


def access(feature: str, user_id: str) -> bool:
    reply = Api(APPLICATION).post(
        "/functions/checkFeatureAccess", {"feature": feature, "userId": user_id}
    )
    assert reply.status == 200, reply.json
    assert set(reply.json["result"]) == {"hasAccess"}
    has: bool = reply.json["result"]["hasAccess"]
    return has


@pytest.mark.parametrize(
    ("version", "expected"),
    [("1.9.9", LEGACY_FEATURES), ("2.0.0-alpha", LEGACY_FEATURES), ("2.0.0", NEW_FEATURES)],
)
def test_a_client_learns_what_it_can_use(application, version, expected):
    reply = application.post("/functions/getFeatures", {"clientVersion": version})
    assert (reply.status, reply.json) == (200, {"result": list(expected)})


@pytest.mark.parametrize("value", [{}, {"clientVersion": 2}, {"clientVersion": "2.0"}])
def test_a_version_that_is_none_is_refused_by_name(application, value):
    reply = application.post("/functions/getFeatures", value)
    assert reply.error == (400, 141)
    assert "clientVersion" in reply.json["error"]


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ({}, "feature"),
        ({"feature": "newMarketplace"}, "userId"),
        ({"userId": "x"}, "feature"),
        ({"feature": 1, "userId": "x"}, "feature"),
        ({"feature": "newMarketplace", "userId": {"$ne": "x"}}, "userId"),
    ],
)
def test_parameters_come_before_everything_else(application, value, named):
    reply = application.post("/functions/checkFeatureAccess", value)
    assert reply.error == (400, 141)
    assert named in reply.json["error"]


def test_the_deployments_flags_are_there_and_off(db):
    import_module("functions.migrations.0001_feature_flags").make_flags(apps, None)
    results = FeatureFlag.objects.filter(name__in=DEPLOYMENT_FLAGS)
    assert {flag.name for flag in results} == {
        "newMarketplace",
        "carbonCredits",
        "nftFractionalization",
    }
    assert not any(flag.on for flag in results)


def test_no_one_has_what_is_off_or_unknown_and_users_are_not_looked_at(client):
    ann = made("ann")
    set_flag("carbonCredits", on=False)
    FeatureFlag.objects.filter(name="newMarketplace").delete()
    for feature in ("carbonCredits", "newMarketplace", "never heard of", "", "a\u0000b"):
        for user_id in (ann.user_id, "nobody", "", "not an id!"):
            assert not access(feature, user_id)


def test_an_unknown_user_of_a_flag_that_is_on_is_an_error(application):
    set_flag("newMarketplace", on=True)
    for user_id in ("nobody", "", "not an id!"):
        params = {"feature": "newMarketplace", "userId": user_id}
        assert application.post("/functions/checkFeatureAccess", params).error == (404, 101)


def test_beta_testers_have_what_is_on_and_others_as_far_as_the_rollout_goes(client):
    ann, bob = made("ann"), sign_up("bob")
    cy = made("cy", betaTester=False)
    set_flag("newMarketplace", on=True, rollout=0)
    assert [access("newMarketplace", u.user_id) for u in (ann, bob, cy)] == [True, False, False]
    set_flag("newMarketplace", on=True, rollout=100)
    assert [access("newMarketplace", u.user_id) for u in (ann, bob, cy)] == [True, True, True]


def test_flags_of_ones_own_work_the_same(client):
    bob = sign_up("bob")
    set_flag("darkMode", on=True)
    assert access("darkMode", bob.user_id)


def test_the_environment_switches_flags(client, settings):
    ann, bob = made("ann"), sign_up("bob")
    FeatureFlag.objects.filter(name="newMarketplace").delete()
    set_flag("carbonCredits", on=True)
    settings.FEATURE_OVERRIDES = {
        "ENABLE_NEW_MARKETPLACE": (True, None),
        "ENABLE_CARBON_CREDITS": (False, None),
        "ENABLE_NFT_FRACTIONALIZATION": (True, 0),
        "ENABLE_UNKNOWN": (True, None),
    }
    assert access("newMarketplace", bob.user_id)
    assert not access("carbonCredits", ann.user_id)
    assert access("nftFractionalization", ann.user_id)
    assert not access("nftFractionalization", bob.user_id)
    assert not access("unknown", ann.user_id)


def start(**environment: str) -> subprocess.CompletedProcess[str]:
    """What a process of the service reads from this environment."""
    code = "from backend.settings import django as settings; print(settings.FEATURE_OVERRIDES)"
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_environment_says_on_off_or_a_percentage():
    done = start(ENABLE_A="true", ENABLE_B="off", ENABLE_C=" 25 %", ENABLE_D="1", ENABLE_E="1%")
    assert done.stdout.strip() == str(
        {
            "ENABLE_A": (True, None),
            "ENABLE_B": (False, None),
            "ENABLE_C": (True, 25),
            "ENABLE_D": (True, None),
            "ENABLE_E": (True, 1),
        }
    )


@pytest.mark.parametrize("value", ["25", "101%", "-1%", "maybe", "1.5%"])
def test_anything_else_in_the_environment_ends_the_process(value):
    done = start(ENABLE_CARBON_CREDITS=value)
    assert done.returncode == 1
    assert "ENABLE_CARBON_CREDITS must be on, off or a percentage" in done.stderr


def test_the_admin_switches_flags_and_shows_the_environments_word(admin_client, settings):
    settings.FEATURE_OVERRIDES = {"ENABLE_DARK_MODE": (True, 25)}
    form = {"name": "darkMode", "on": "on", "rollout": "30", "description": "Easier on the eyes"}
    page = admin_client.post("/admin/functions/featureflag/add/", form)
    assert page.status_code == 302
    assert "ENABLE_DARK_MODE=25%" in admin_client.get("/admin/functions/featureflag/").text
    flag = FeatureFlag.objects.get(name="darkMode")
    assert (flag.on, flag.rollout) == (True, 30)
    for wrong in ({"rollout": "101"}, {"rollout": "-1"}, {"name": "dark mode"}, {"name": ""}):
        page = admin_client.post("/admin/functions/featureflag/add/", form | wrong)
        assert page.status_code == 200
        assert FeatureFlag.objects.filter(name__icontains="dark").count() == 1


def test_a_function_with_an_id_is_run_once(application):
    set_flag("newMarketplace", on=True)
    bob = sign_up("bob")
    api = Api({**application.headers, "X-Svc-Request-Id": "an-id-of-its-own"})
    params = {"feature": "newMarketplace", "userId": bob.user_id}
    assert api.post("/functions/checkFeatureAccess", params).json["result"]["hasAccess"]
    set_flag("newMarketplace", on=False)
    again = api.post("/functions/checkFeatureAccess", params)
    assert again.json["result"]["hasAccess"]
    assert again.headers["Idempotent-Replayed"] == "true"
