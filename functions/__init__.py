"""Functions, triggers and jobs that run on the server.

This package exports the public API for deployments::

    from functions import Request, before_save, function, job

    @function()
    def hello(request: Request, name: str = "world") -> str:
        return f"Hello {name}!"

``docs/functions.md`` describes it. The package can be imported before Django is set up: submodules
are imported on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from backend.kernel.errors import ScriptFailed as ScriptFailed
    from backend.kernel.errors import ServiceError as ServiceError
    from functions.jobs.request import JobRequest as JobRequest
    from functions.jobs.start import start_job as start_job
    from functions.runtime.parameters import Meta as Meta
    from functions.runtime.pushes import send_push as send_push
    from functions.runtime.queries import Query as Query
    from functions.runtime.registry import function as function
    from functions.runtime.registry import job as job
    from functions.runtime.request import FindRequest as FindRequest
    from functions.runtime.request import FunctionRequest as FunctionRequest
    from functions.runtime.request import Request as Request
    from functions.runtime.request import TriggerRequest as TriggerRequest
    from functions.runtime.requirements import RateLimit as RateLimit
    from functions.runtime.values import UNSET as UNSET
    from functions.runtime.values import File as File
    from functions.runtime.values import GeoPoint as GeoPoint
    from functions.runtime.values import Object as Object
    from functions.runtime.values import Pointer as Pointer
    from functions.runtime.values import Polygon as Polygon
    from functions.runtime.values import Relation as Relation
    from functions.runtime.values import add as add
    from functions.runtime.values import add_relation as add_relation
    from functions.runtime.values import add_unique as add_unique
    from functions.runtime.values import increment as increment
    from functions.runtime.values import remove as remove
    from functions.runtime.values import remove_relation as remove_relation
    from functions.triggers.decorators import CONFIG as CONFIG
    from functions.triggers.decorators import FILE as FILE
    from functions.triggers.decorators import after_delete as after_delete
    from functions.triggers.decorators import after_event as after_event
    from functions.triggers.decorators import after_find as after_find
    from functions.triggers.decorators import after_login as after_login
    from functions.triggers.decorators import after_logout as after_logout
    from functions.triggers.decorators import after_save as after_save
    from functions.triggers.decorators import before_connect as before_connect
    from functions.triggers.decorators import before_delete as before_delete
    from functions.triggers.decorators import before_find as before_find
    from functions.triggers.decorators import before_login as before_login
    from functions.triggers.decorators import before_password_reset as before_password_reset
    from functions.triggers.decorators import before_save as before_save
    from functions.triggers.decorators import before_subscribe as before_subscribe
    from functions.triggers.live_requests import ConnectRequest as ConnectRequest
    from functions.triggers.live_requests import LiveEventRequest as LiveEventRequest
    from functions.triggers.live_requests import SubscribeRequest as SubscribeRequest

_HOMES = {
    "backend.kernel.errors": "ScriptFailed ServiceError",
    "functions.jobs.request": "JobRequest",
    "functions.jobs.start": "start_job",
    "functions.triggers.live_requests": "ConnectRequest LiveEventRequest SubscribeRequest",
    "functions.runtime.parameters": "Meta",
    "functions.runtime.pushes": "send_push",
    "functions.runtime.queries": "Query",
    "functions.runtime.registry": "function job",
    "functions.runtime.request": "FindRequest FunctionRequest Request TriggerRequest",
    "functions.runtime.requirements": "RateLimit",
    "functions.triggers.decorators": (
        "CONFIG FILE after_delete after_event after_find after_login after_logout after_save"
        " before_connect before_delete before_find before_login before_password_reset before_save"
        " before_subscribe"
    ),
    "functions.runtime.values": (
        "UNSET File GeoPoint Object Pointer Polygon Relation add add_relation add_unique"
        " increment remove remove_relation"
    ),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names.split()}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"functions has no {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value
