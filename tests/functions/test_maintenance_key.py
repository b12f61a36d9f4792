"""Server code that is called with the maintenance key."""

from __future__ import annotations

import pytest

from functions import Request, TriggerRequest, before_save, function
from tests.rest import MAINTENANCE, MASTER, Api

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("emptied")]

EARLIER = {"__type": "Date", "iso": "2019-01-01T00:00:00.000Z"}


def test_a_trigger_keeps_the_times_of_an_import() -> None:
    @before_save("Note")
    def mark(request: TriggerRequest) -> None:
        request.object["is_master"] = request.master

    created = Api(MAINTENANCE).post("/classes/Note", {"text": "old", "createdAt": EARLIER})
    assert created.status == 201, created.json
    assert created.json["createdAt"] == EARLIER["iso"]
    (note,) = Api(MASTER).results("Note")
    assert (note["createdAt"], note["updatedAt"]) == (EARLIER["iso"], EARLIER["iso"])
    assert note["is_master"] is False
    later = Api(MASTER).post("/classes/Note", {"createdAt": EARLIER})
    assert later.json["createdAt"] > EARLIER["iso"]


def test_it_is_no_master_key_for_functions() -> None:
    @function(require_master=True)
    def secret(request: Request) -> str:
        return "done"

    @function()
    def caller(request: Request) -> bool:
        return request.master

    assert Api(MAINTENANCE).post("/functions/secret", {}).error == (400, 142)
    assert Api(MAINTENANCE).post("/functions/caller", {}).json == {"result": False}
    assert Api(MASTER).post("/functions/caller", {}).json == {"result": True}
