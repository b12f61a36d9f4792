"""docs/webhooks.md: its receiver and its commands do what they say."""

from __future__ import annotations

import base64
import json
import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import KEYS
from tests.other_process import other_process
from tests.ports import free_port

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "webhooks.md").read_text()
SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()
PATIENCE = 30  # seconds


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.+?)```", TEXT, re.DOTALL)


def wait_for(port: int) -> None:
    end = time.monotonic() + PATIENCE
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=5).close()
            return
        except OSError:
            assert time.monotonic() < end, "the receiver doesn't listen"
            time.sleep(0.05)


@pytest.mark.usefixtures("emptied")
@pytest.mark.django_db(transaction=True)
@pytest.mark.slow
def test_the_receiver_is_called_as_it_says(tmp_path: Path) -> None:
    from functions.webhooks import deliveries
    from functions.webhooks.models import Delivery

    (code,) = blocks("python")
    (tmp_path / "receiver.py").write_text(code)
    (tmp_path / ".data").mkdir()
    lines = [f"{name}={value}\n" for name, value in KEYS.items()]
    (tmp_path / ".data" / "keys.env").write_text("".join(lines))
    port = str(free_port())
    commands = blocks("sh")[-1]
    receiver = subprocess.Popen(
        [sys.executable, "receiver.py"],
        cwd=tmp_path,
        env={**os.environ, "WEBHOOK_SECRET": SECRET, "RECEIVER_PORT": port},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        wait_for(int(port))
        with other_process(WEBHOOK_SECRET=SECRET) as process:
            script = commands.replace("http://localhost:8000/api", process.url)
            done = subprocess.run(
                ["bash", "-eu", "-c", script.replace("127.0.0.1:5000", f"127.0.0.1:{port}")],
                cwd=tmp_path,
                env={"PATH": os.environ["PATH"]},
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
        assert (done.returncode, done.stderr) == (0, "")
        answers = [json.loads(line) for line in done.stdout.splitlines() if line]
        document = [
            json.loads(line.replace("127.0.0.1:5000", f"127.0.0.1:{port}"))
            for line in re.findall(r"^# (\{.+\})$", commands, re.MULTILINE)
        ]
        assert len(answers) == len(document) == 6
        assert answers[:5] == document[:5]
        assert answers[5].keys() == document[5].keys()
        assert answers[5]["size"] == document[5]["size"]
        (delivery,) = Delivery.objects.all()
        assert delivery.state == "delivered"
        # Again, as a worker does; without the secret, the receiver takes it for another sender's.
        deliveries.redeliver([delivery.id])
        from django.test import override_settings

        with override_settings(SERVICE=_with(WEBHOOK_ALLOW_PRIVATE=("127.0.0.0/8",))):
            deliveries.deliver(delivery.hook_id)
        delivery.refresh_from_db()
        assert (delivery.state, delivery.last_error) == ("pending", "not from us")
        deliveries.redeliver([delivery.id])
        settings = _with(WEBHOOK_ALLOW_PRIVATE=("127.0.0.0/8",), WEBHOOK_SECRET=SECRET)
        with override_settings(SERVICE=settings):
            deliveries.deliver(delivery.hook_id)
        delivery.refresh_from_db()
        assert delivery.state == "delivered"  # the receiver has seen its id and prints nothing
        assert receiver.stdout is not None
        assert receiver.stdout.readline() == "saved: milk\n"
    finally:
        receiver.terminate()
        receiver.communicate(timeout=PATIENCE)


def _with(**changed: object) -> dict[str, object]:
    from django.conf import settings

    return {**settings.SERVICE, **changed}


def test_the_attempts_are_those_that_the_page_names() -> None:
    from functions.webhooks import deliveries

    minutes = "after 1, 2, 10 and 30 minutes and 1, 2 and 4 hours"
    assert minutes in TEXT
    assert deliveries.PAUSES == (60, 120, 600, 1800, 3600, 7200, 14_400)
    assert deliveries.ATTEMPTS == 8
