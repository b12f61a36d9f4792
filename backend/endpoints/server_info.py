"""``/serverInfo``: what this service can do, as Parse's dashboard and SDKs ask for it."""

from __future__ import annotations

from typing import Any, TypedDict

from backend import __version__
from backend.http.call import Call
from backend.http.edge.routing import resolve
from backend.http.permissions import Requires
from backend.http.renderers import Answer
from backend.http.views import ServiceView
from backend.logs import store
from backend.openapi import answer, describes
from backend.settings.conf import service_settings

PARSE_VERSION = "9.10.0"
"""The version of Parse Server whose REST surface is followed. Dashboards choose by it."""


class _ServerInfo(TypedDict):
    features: dict[str, Any]
    parseServerVersion: str
    serviceVersion: str


class ServerInfoView(ServiceView):
    """Features and versions, for the master key; the read-only one as well."""

    tag = "Service"
    requires = Requires.MASTER_KEY

    @describes(
        "serverInfo",
        "Versions and features, for dashboards",
        response=answer("The version of the service and its features.", _ServerInfo),
    )
    def get(self, call: Call) -> Answer:
        return Answer(
            {
                "features": features(),
                "parseServerVersion": PARSE_VERSION,
                "serviceVersion": __version__,
            }
        )


def features() -> dict[str, dict[str, bool]]:
    """The features that Parse's dashboard knows, by whether their routes are here."""
    config, hooks = _answers("/config"), _answers("/hooks/functions")
    push, logs = _answers("/push"), store.is_on()
    return {
        "globalConfig": dict.fromkeys(("create", "read", "update", "delete"), config),
        "hooks": dict.fromkeys(("create", "read", "update", "delete"), hooks),
        "cloudCode": {"jobs": _answers("/jobs/name")},
        "logs": dict.fromkeys(("level", "size", "order", "until", "from"), logs),
        "push": {
            **dict.fromkeys(("immediatePush", "scheduledPush", "storedPushData"), push),
            "pushAudiences": _answers("/push_audiences"),
            "localization": push,
        },
        "schemas": {
            "addField": True,
            "removeField": True,
            "addClass": True,
            "removeClass": True,
            "clearAllDataFromClass": True,
            # The dashboard would ask for an export by mail; here a command does it.
            "exportClass": False,
            "editClassLevelPermissions": True,
            "editPointerPermissions": True,
        },
        "settings": {"securityCheck": service_settings.SECURITY_CHECK},
    }


def _answers(path: str) -> bool:
    return resolve(path) is not None
