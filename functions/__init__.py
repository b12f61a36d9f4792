"""Functions, triggers and jobs that run on the server.

What a deployment writes against is all here::

    from functions import Request, before_save, function, job

    @function()
    def hello(request: Request, name: str = "world") -> str:
        return f"Hello {name}!"

``docs/functions.md`` says all of it. Importing this package needs no Django that is set up; the
parts are imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from backend.errors import ScriptFailed as ScriptFailed
    from backend.errors import ServiceError as ServiceError
    from functions.jobs.request import JobRequest as JobRequest
    from functions.jobs.starting import start_job as start_job
    from functions.live_requests import ConnectRequest as ConnectRequest
    from functions.live_requests import LiveEventRequest as LiveEventRequest
    from functions.live_requests import SubscribeRequest as SubscribeRequest
    from functions.parameters import Meta as Meta
    from functions.querying import Query as Query
    from functions.registry import function as function
    from functions.registry import job as job
    from functions.request import FindRequest as FindRequest
    from functions.request import FunctionRequest as FunctionRequest
    from functions.request import Request as Request
    from functions.request import TriggerRequest as TriggerRequest
    from functions.requirements import RateLimit as RateLimit
    from functions.triggers import CONFIG as CONFIG
    from functions.triggers import FILE as FILE
    from functions.triggers import after_delete as after_delete
    from functions.triggers import after_event as after_event
    from functions.triggers import after_find as after_find
    from functions.triggers import after_login as after_login
    from functions.triggers import after_logout as after_logout
    from functions.triggers import after_save as after_save
    from functions.triggers import before_connect as before_connect
    from functions.triggers import before_delete as before_delete
    from functions.triggers import before_find as before_find
    from functions.triggers import before_login as before_login
    from functions.triggers import before_password_reset as before_password_reset
    from functions.triggers import before_save as before_save
    from functions.triggers import before_subscribe as before_subscribe
    from functions.values import UNSET as UNSET
    from functions.values import File as File
    from functions.values import GeoPoint as GeoPoint
    from functions.values import Object as Object
    from functions.values import Pointer as Pointer
    from functions.values import Polygon as Polygon
    from functions.values import Relation as Relation
    from functions.values import add as add
    from functions.values import add_relation as add_relation
    from functions.values import add_unique as add_unique
    from functions.values import increment as increment
    from functions.values import remove as remove
    from functions.values import remove_relation as remove_relation

_HOMES = {
    "backend.errors": "ScriptFailed ServiceError",
    "functions.jobs.request": "JobRequest",
    "functions.jobs.starting": "start_job",
    "functions.live_requests": "ConnectRequest LiveEventRequest SubscribeRequest",
    "functions.parameters": "Meta",
    "functions.querying": "Query",
    "functions.registry": "function job",
    "functions.request": "FindRequest FunctionRequest Request TriggerRequest",
    "functions.requirements": "RateLimit",
    "functions.triggers": (
        "CONFIG FILE after_delete after_event after_find after_login after_logout after_save"
        " before_connect before_delete before_find before_login before_password_reset before_save"
        " before_subscribe"
    ),
    "functions.values": (
        "UNSET File GeoPoint Object Pointer Polygon Relation add add_relation add_unique"
        " increment remove remove_relation"
    ),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names.split()}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"functions has no {name!r}")
    found = getattr(import_module(_HOME[name]), name)
    globals()[name] = found
    return found
