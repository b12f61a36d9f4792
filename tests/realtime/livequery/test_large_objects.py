"""Objects that are larger than what may wait for a client."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.realtime.server_process import PATIENCE, serving
from tests.subscribers import KEYS

pytestmark = [
    pytest.mark.process,
    pytest.mark.usefixtures("emptied"),
    pytest.mark.django_db(transaction=True),
]


@pytest.mark.slow
def test_a_large_object_closes_no_connection(tmp_path: Path, master: Any) -> None:
    small = master.make("Letter", name="small", text="x" * 20_000)
    with serving(tmp_path, WS_SEND_QUEUE="65536") as process:
        client = process.connect("/livequery", max_size=None)

        def next_one() -> Any:
            return json.loads(client.recv(timeout=PATIENCE))

        client.send(json.dumps({"op": "connect", **KEYS}))
        assert next_one()["op"] == "connected"
        query = {"className": "Letter", "where": {}}
        client.send(json.dumps({"op": "subscribe", "requestId": 1, "query": query}))
        assert next_one()["op"] == "subscribed"
        large = master.make("Letter", name="large", text="x" * 1_000_000)
        event = next_one()
        assert (event["op"], event["code"], event["requestId"]) == ("error", 116, 1)
        assert large in event["error"]
        assert event["reconnect"] is False
        master.put(f"/classes/Letter/{small}", {"name": "still"})
        event = next_one()
        assert (event["op"], event["object"]["name"]) == ("update", "still")
        client.close()
