"""Triggers of ``@Config``, as a deployment writes them."""

from __future__ import annotations

import pytest

from functions import CONFIG, ServiceError, TriggerRequest, after_save, before_save
from tests.rest import MASTER, Api


def save(**params: object):
    return Api(MASTER).put("/config", {"params": params})


def test_a_trigger_before_the_save_checks_and_changes_parameters(master, client):
    @before_save(CONFIG)
    def check(request: TriggerRequest) -> None:
        if request.object.get("rate", 0) > 1:
            raise ServiceError("rate is a share of 1", code=142)
        if request.changed("rate"):
            request.object["rateWas"] = request.original["rate"] if request.original else None

    assert save(rate=0.5).status == 200
    assert save(rate=0.25).status == 200
    assert save(rate=2).error == (400, 142)
    assert client.get("/config").json["params"] == {"rate": 0.25, "rateWas": 0.5}


@pytest.mark.django_db(transaction=True)
def test_a_trigger_after_the_save_sees_what_was_saved():
    calls = []

    @after_save(CONFIG)
    def note(request: TriggerRequest) -> None:
        calls.append((dict(request.object), dict(request.original or {})))

    save(a=1)
    save(b=2)
    assert calls == [({"a": 1}, {}), ({"a": 1, "b": 2}, {"a": 1})]
