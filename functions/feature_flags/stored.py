"""The feature flags of this deployment, as the admin and the environment have set them."""

from __future__ import annotations

from django.conf import settings

from functions.feature_flags.features import DEPLOYMENT_FLAGS, Flag, Override, overridden
from functions.models import FeatureFlag


def find(name: str) -> Flag | None:
    """Return the flag in its current state, or None for an unknown flag."""
    if "\x00" in name:
        return None
    row = FeatureFlag.objects.filter(name=name).values_list("on", "rollout").first()
    if row is None:
        # A flag that the deployment declares exists even if its row was deleted.
        return overridden(Flag(name), _overrides()) if name in DEPLOYMENT_FLAGS else None
    return overridden(Flag(name, *row), _overrides())


def _overrides() -> dict[str, Override]:
    return {name: Override(*override) for name, override in settings.FEATURE_OVERRIDES.items()}
