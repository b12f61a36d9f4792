"""What the benchmark calls on the server; ``peer.js`` has the same for Parse Server."""

from __future__ import annotations

from functions import Request, TriggerRequest, after_save, before_save, function


@function("benchAdd")
def add(request: Request, a: int, b: int) -> int:
    """The sum."""
    return a + b


@before_save("BenchChecked")
def check(request: TriggerRequest) -> None:
    request.object["visits"] = 1


@after_save("SoakWatched", background=True)
def remove(request: TriggerRequest) -> None:
    """Delete the object, in a worker: what is stored is what still waits for one."""
    request.objects("SoakWatched").delete(request.object)
