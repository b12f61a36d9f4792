"""Installations, pushes, and the work of workers, in the process of the test."""

from __future__ import annotations

from typing import Any

from objects.push import delivery, expansion, statuses
from objects.push.adapters import setup
from objects.push.models import Push, PushTarget
from tests.rest import MASTER, Api
from tests.stored_times import move_back

api = Api(MASTER)


def install(count: int = 1, **fields: Any) -> list[str]:
    """Register installations and return their ids."""
    begin = len(api.results("_Installation", limit=1000, keys="objectId"))
    ids = []
    for number in range(begin, begin + count):
        body = {
            "deviceType": "android",
            "deviceToken": f"token-{number}",
            "installationId": f"installation-{number}",
        } | fields
        reply = api.post("/installations", {k: v for k, v in body.items() if v is not None})
        assert reply.status == 201, reply.json
        ids.append(reply.json["objectId"])
    return ids


def push(**body: Any) -> str:
    """Send a push and return the id of its status."""
    reply = api.post("/push", {"where": {}, "data": {"alert": "Hello"}} | body)
    assert (reply.status, reply.json) == (200, {"result": True})
    return str(reply.headers["X-Svc-Push-Status-Id"])


def cancel(push_id: str) -> None:
    """Delete the status of a push."""
    assert api.delete(f"/classes/_PushStatus/{push_id}").status == 200


def sweep(**options: Any) -> tuple[list[str], list[str]]:
    """Return the pushes that workers get to read, and those to send."""
    to_read: list[str] = []
    to_send: list[str] = []
    delivery.start_due(to_read.append, to_send.append, **options)
    return to_read, to_send


def send(push_id: str) -> bool:
    """Do what a worker does with a push for each service; return whether there may be more."""
    has_more = [delivery.send(push_id, service) for service in setup.services()]
    return any(has_more)


def work(push_id: str) -> dict[str, Any]:
    """Do what workers do with a push that is due, and return its status."""
    while expansion.expand(push_id):
        pass
    statuses.publish(push_id)
    while send(push_id):
        pass
    return status(push_id)


def status(push_id: str) -> dict[str, Any]:
    reply = api.get(f"/classes/_PushStatus/{push_id}")
    assert reply.status == 200, reply.json
    return dict(reply.json)


def targets(push_id: str) -> list[PushTarget]:
    return [*PushTarget.objects.filter(push=push_id).order_by("id")]


def pass_time(seconds: float) -> None:
    """Let this much time have passed for all pushes and targets."""
    move_back(
        seconds,
        (Push._meta.db_table, "due_at"),
        (Push._meta.db_table, "started_at"),
        (Push._meta.db_table, "ended_at"),
        (PushTarget._meta.db_table, "due_at"),
    )
