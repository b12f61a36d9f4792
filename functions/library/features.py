"""``getFeatures`` and ``checkFeatureAccess``: what a client and a user may use."""

from __future__ import annotations

from backend.kernel.errors import ScriptFailed
from functions import FunctionRequest
from functions.feature_flags import stored
from functions.feature_flags.features import features_for, has_access
from functions.runtime.registry import function
from objects.users.accounts.master_fields import BETA_TESTER


@function("getFeatures")
def get_features(request: FunctionRequest, clientVersion: str) -> list[str]:
    """Return the names of the features that a client of this version can use.

    A client below 2.0.0 gets the legacy list. The version is a semantic one (semver.org).
    """
    try:
        return list(features_for(clientVersion))
    except ValueError:
        raise ScriptFailed(
            "clientVersion: expected a semantic version such as 2.0.0 (MAJOR.MINOR.PATCH)"
        ) from None


@function("checkFeatureAccess")
def check_feature_access(request: FunctionRequest, feature: str, userId: str) -> dict[str, bool]:
    """Whether a user has a feature: ``{"hasAccess": bool}``.

    False for a feature that is off or unknown. A feature that is on is available to beta testers
    (``betaTester`` is true on the user; only the master key sets it) and to the users within the
    flag's rollout. An unknown user is error 101.
    """
    flag = stored.find(feature)
    if flag is None or not flag.on:
        return {"hasAccess": False}
    user = request.objects.as_master("_User").keys(BETA_TESTER).get(userId)
    tests = user.get(BETA_TESTER) is True
    return {"hasAccess": has_access(flag, userId, is_beta_tester=tests)}
