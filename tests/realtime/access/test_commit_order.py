"""Rights end in the order of commits, while others go on writing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from tests.objects.access.tables import PUBLIC
from tests.people import User, make_role, sign_up
from tests.rest import MASTER, Api
from tests.subscribers import Realtime, realtime_process

pytestmark = [
    pytest.mark.usefixtures("emptied"),
    pytest.mark.django_db(transaction=True),
]
_WRITERS = 3


@pytest.fixture
def realtime(db: None) -> Iterator[Realtime]:
    with realtime_process() as process:
        yield process


class Writers:
    """Threads that store documents until they are stopped. Each document says whether its writing
    began after ``is_over`` was set."""

    def __init__(self, **fields: object) -> None:
        self.is_over = threading.Event()
        self._stop = threading.Event()
        self._fields = fields
        self._written = [0] * _WRITERS
        self._threads = [
            threading.Thread(target=self._write, args=(number,)) for number in range(_WRITERS)
        ]

    def __enter__(self) -> Writers:
        for thread in self._threads:
            thread.start()
        self.wait_for_more()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(30)

    def wait_for_more(self) -> None:
        """Wait until each has written some more."""
        expected = [written + 3 for written in self._written]
        while any(now < then for now, then in zip(self._written, expected, strict=True)):
            assert all(thread.is_alive() for thread in self._threads)
            self._stop.wait(0.005)

    def _write(self, number: int) -> None:
        from django.db import connections

        try:
            while not self._stop.is_set():
                after = self.is_over.is_set()
                Api(MASTER).make("Doc", name="after" if after else "before", **self._fields)
                self._written[number] += 1
        finally:
            connections.close_all()


def log_out(master: Api, user: User, role: str) -> None:
    assert user.post("/logout").status == 200


def leave_the_role(master: Api, user: User, role: str) -> None:
    gone = {"__op": "RemoveRelation", "objects": [user.pointer]}
    assert master.put(f"/roles/{role}", {"users": gone}).status == 200


def close_the_class(master: Api, user: User, role: str) -> None:
    permissions = {"classLevelPermissions": PUBLIC | {"find": {}}}
    assert master.put("/schemas/Doc", permissions).status == 200


@pytest.mark.parametrize("ends", [log_out, leave_the_role, close_the_class])
def test_nothing_that_was_written_after_the_end_of_a_right_is_told(
    realtime: Realtime, master: Api, ends: Callable[[Api, User, str], None]
) -> None:
    ann = sign_up("ann")
    role = make_role(master, "Team", [ann])
    acl = {"role:Team": {"read": True}, ann.user_id: {"write": True}}
    master.make("Doc", name="first", ACL=acl)
    master.make("Last", name="first")
    subscriber = realtime.subscriber()
    subscriber.subscribe(0, "Last")
    subscriber.subscribe(1, "Doc", sessionToken=ann.token)
    with Writers(ACL=acl) as writers:
        assert subscriber.next()["object"]["name"] == "before"
        ends(master, ann, role)
        writers.is_over.set()
        writers.wait_for_more()
    master.make("Last", name="last")
    until = [message for message in subscriber.until("last") if message["op"] == "create"]
    assert {message["object"]["name"] for message in until} <= {"before"}
