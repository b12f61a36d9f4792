"""The settings of ``/metrics``, from the environment."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_network
from typing import Any, Final

from backend.settings import environment
from backend.settings.environment import BadSetting

_SHORTEST: Final = 16


def service_values(networks: Sequence[str]) -> dict[str, Any]:
    """The part of ``settings.SERVICE`` that is about metrics. Switched on they are for those who
    have the token, or who are in one of the networks; open to everybody is no choice."""
    on = environment.flag("METRICS", False)
    token = environment.text("METRICS_TOKEN")
    if token and len(token) < _SHORTEST:
        raise BadSetting(f"METRICS_TOKEN must have {_SHORTEST} characters or more.")
    if on and not token and not networks:
        raise BadSetting("METRICS needs METRICS_TOKEN or METRICS_NETWORKS: who may read them?")
    if any(ip_network(one, strict=False).prefixlen == 0 for one in networks):
        raise BadSetting("METRICS_NETWORKS must not be everybody: METRICS_TOKEN is for that.")
    return {"METRICS": on, "METRICS_TOKEN": token, "METRICS_NETWORKS": tuple(networks)}
