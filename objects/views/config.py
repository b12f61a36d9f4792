"""``/config``: the parameters of the app."""

from __future__ import annotations

from typing import Any, TypedDict

from backend.http.call import Call
from backend.http.permissions import Requires
from backend.http.renderers import Answer
from backend.http.views import ServiceView
from backend.openapi import answer, describes, optional
from objects.app_config import service


class ConfigParameters(TypedDict, total=False):
    params: dict[str, Any] | None
    masterKeyOnly: dict[str, bool | None] | None


class _Saved(TypedDict, total=False):
    result: bool


class ConfigView(ServiceView):
    """Read the parameters; change some, for the master key."""

    tag = "Config"

    @describes(
        "readConfig",
        "The parameters of the app",
        response=answer("The parameters that the caller may read.", ConfigParameters),
    )
    def get(self, call: Call) -> Answer:
        return Answer(service.read(call.principal).wire())

    @describes(
        "changeConfig",
        "Set and remove parameters of the app",
        request=optional(ConfigParameters),
        response=answer("The parameters were saved.", _Saved),
        requires=Requires.MASTER_KEY,
    )
    def put(self, call: Call) -> Answer:
        service.save(call.principal, call.body)
        return Answer({"result": True})
