"""Feature flags and feature lists, without a service."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.feature_flags.features import (
    LEGACY_FEATURES,
    NEW_FEATURES,
    Flag,
    Override,
    features_for,
    has_access,
    is_within_rollout,
    overridden,
    variable,
)

names = st.text(min_size=1, max_size=20)
percentages = st.integers(0, 100)


@given(names, names, percentages, percentages)
def test_a_higher_percentage_only_adds_users(flag, user, one, other):
    low, high = sorted((one, other))
    if is_within_rollout(Flag(flag, True, low), user):
        assert is_within_rollout(Flag(flag, True, high), user)


@given(names, names)
def test_no_one_is_within_none_and_everyone_within_all(flag, user):
    assert not is_within_rollout(Flag(flag, True, 0), user)
    assert is_within_rollout(Flag(flag, True, 100), user)


@given(names, names, percentages, st.booleans())
def test_a_decision_is_the_same_each_time_and_a_flag_that_is_off_is_off(flag, user, rollout, beta):
    on = Flag(flag, True, rollout)
    decisions = {has_access(on, user, is_beta_tester=beta) for _ in range(3)}
    assert decisions == {beta or is_within_rollout(on, user)}
    assert not has_access(Flag(flag, False, rollout), user, is_beta_tester=beta)


@pytest.mark.parametrize("rollout", [1, 5, 25, 50, 75, 99])
@pytest.mark.parametrize("flag", ["newMarketplace", "carbonCredits"])
def test_the_share_of_users_is_near_the_percentage(flag, rollout):
    users = 20_000
    within = sum(is_within_rollout(Flag(flag, True, rollout), f"user{n}") for n in range(users))
    share = rollout / 100
    # Five standard deviations of so many draws.
    assert abs(within / users - share) < 5 * (share * (1 - share) / users) ** 0.5


def test_flags_of_the_same_percentage_reach_different_users():
    users = [f"user{n}" for n in range(10_000)]
    both = sum(
        is_within_rollout(Flag("carbonCredits", True, 50), user)
        and is_within_rollout(Flag("newMarketplace", True, 50), user)
        for user in users
    )
    assert 2_250 < both < 2_750


def test_the_decision_for_a_user_never_changes_between_releases():
    """A change here would switch features for users in the middle of a rollout."""
    within = [n for n in range(12) if is_within_rollout(Flag("newMarketplace", True, 50), f"u{n}")]
    assert within == [1, 5, 6, 7, 9, 10]


@pytest.mark.parametrize(
    ("flag", "expected"),
    [
        ("newMarketplace", "ENABLE_NEW_MARKETPLACE"),
        ("carbonCredits", "ENABLE_CARBON_CREDITS"),
        ("nftFractionalization", "ENABLE_NFT_FRACTIONALIZATION"),
        ("dark_mode", "ENABLE_DARK_MODE"),
        ("step2Login", "ENABLE_STEP2_LOGIN"),
        ("useNFTs", "ENABLE_USE_NFTS"),
    ],
)
def test_a_flag_has_a_name_in_the_environment(flag, expected):
    assert variable(flag) == expected


def test_the_environment_comes_before_the_flag():
    flag = Flag("newMarketplace", False, 30)
    name = "ENABLE_NEW_MARKETPLACE"
    assert overridden(flag, {"ENABLE_OTHER": Override(True)}) == flag
    assert overridden(flag, {name: Override(True)}) == Flag("newMarketplace", True, 30)
    assert overridden(flag, {name: Override(True, 70)}) == Flag("newMarketplace", True, 70)
    assert overridden(Flag("newMarketplace", True), {name: Override(False)}).on is False


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("0.0.1", LEGACY_FEATURES),
        ("1.99.99", LEGACY_FEATURES),
        ("2.0.0-alpha", LEGACY_FEATURES),
        ("2.0.0-rc.1+build.5", LEGACY_FEATURES),
        ("2.0.0", NEW_FEATURES),
        ("2.0.0+build.5", NEW_FEATURES),
        ("2.0.1-alpha", NEW_FEATURES),
        ("10.0.0", NEW_FEATURES),
    ],
)
def test_clients_below_2_0_0_get_the_legacy_list(version, expected):
    assert features_for(version) == expected


@pytest.mark.parametrize(
    "version",
    [
        *("", "2", "2.0", "v2.0.0", "02.0.0", "2.0.0.0", "2.0.0-", "2.0.0-01", " 2.0.0", "2.0.0\n"),
        *("two", "2.0.0-ä", "\u0662.0.0", "1." * 500, f"{'9' * 5000}.0.0"),
    ],
)
def test_what_is_no_semantic_version_is_refused(version):
    with pytest.raises(ValueError, match=r"semantic|SemVer"):
        features_for(version)


def test_the_new_list_goes_on_where_the_legacy_one_ends():
    assert NEW_FEATURES[: len(LEGACY_FEATURES)] == LEGACY_FEATURES
    assert len(set(NEW_FEATURES)) == len(NEW_FEATURES) > len(LEGACY_FEATURES)
