"""What the deployment under test has written: functions and triggers for tests in which another
process, an SDK or a browser calls them. Tests of functions themselves register their own."""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from typing import Annotated, Any

from functions import (
    FindRequest,
    JobRequest,
    Meta,
    Pointer,
    Request,
    ScriptFailed,
    TriggerRequest,
    after_find,
    before_delete,
    before_find,
    before_save,
    function,
    job,
)


@function("cloudHello")
def hello(request: Request, name: str = "world") -> str:
    """Say hello."""
    return f"Hello {name}!"


@function("cloudWho", require_user=True)
def who(request: Request) -> Any:
    """The caller's own account."""
    return request.user


@function("cloudLater")
def later(
    request: Request,
    when: Annotated[datetime, "The time to start from"],
    days: Annotated[int, Meta(ge=0, le=1000)] = 1,
) -> datetime:
    """A time some days later."""
    return when + timedelta(days=days)


@function("cloudOwner")
def owner(request: Request, of: Pointer) -> Any:
    """What a pointer leads to."""
    return request.objects(of.class_name).get(of.id)


@function("cloudFail")
def fail(request: Request, code: int | None = None) -> None:
    """Fail in one way or another."""
    if code is None:
        raise RuntimeError("internal detail")
    raise ScriptFailed("as asked", code=code)


@function("cloudContext")
def context(request: Request) -> Any:
    """The client's context."""
    return request.context


@function("cloudProcess")
def process(request: Request) -> int:
    """The process that answers."""
    return os.getpid()


@function("cloudHungry")
def hungry(request: Request, megabytes: int) -> int:
    """Take memory."""
    return len(b"x" * (megabytes * 1024 * 1024))


@before_save("CloudNote")
def check_note(request: TriggerRequest) -> None:
    if not request.object.get("text"):
        raise ScriptFailed("A note needs a text.")
    request.object["size"] = len(request.object["text"])
    if "from" in request.context:
        request.object["from"] = request.context["from"]


@before_delete("CloudNote")
def keep_note(request: TriggerRequest) -> None:
    if request.object.get("kept") and not request.master:
        raise ScriptFailed("It is to be kept.")


@before_find("CloudNote")
def hide_notes(request: FindRequest) -> None:
    if not request.master:
        request.query.where(hidden__ne=True)


@after_find("CloudNote")
def shout(request: FindRequest) -> None:
    for item in request.results or []:
        item["loud"] = str(item.get("text", "")).upper()


@job("cloudReport")
def report(request: JobRequest, since: datetime, title: str = "report") -> str:
    """Write a note, as the master key."""
    request.message("begun")
    note = request.objects("CloudNote").create(text=f"{title} since {since:%Y}")
    return f"written as {note.id}"
