"""docs/chain.md: its commands do what they say, against a real node."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.callers import *  # noqa: F403
from tests.conftest import KEYS
from tests.evm.node import running_node
from tests.functions.jobs.processes import Processes
from tests.other_process import ROOT, other_process

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "chain.md").read_text()


@pytest.mark.slow
@pytest.mark.usefixtures("emptied")
@pytest.mark.django_db(transaction=True)
def test_the_ten_minutes_end_as_they_say(tmp_path: Path) -> None:
    (commands,) = re.findall(r"```sh\n(.+?)```", TEXT, re.DOTALL)
    lines = [f"{name}={value}\n" for name, value in KEYS.items()]
    (tmp_path / ".data").mkdir()
    (tmp_path / ".data" / "keys.env").write_text("".join(lines))
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    commands = commands.replace("script/manage chain_status\n", "")
    processes = Processes("")
    with running_node() as node, other_process() as web:
        for role in ("chain", "beat"):
            processes.start(role)
        try:
            done = subprocess.run(
                [
                    *("bash", "-eu", "-c"),
                    commands.replace("http://localhost:8000/api", web.url).replace(
                        "http://127.0.0.1:8545", node.url
                    ),
                ],
                cwd=tmp_path,
                env={"PATH": os.environ["PATH"]},
                capture_output=True,
                text=True,
                timeout=90,
                check=False,
            )
            status = processes.manage("chain_status")
        finally:
            processes.stop()
    assert (done.returncode, done.stderr) == (0, "")
    events, transactions = (json.loads(line)["results"] for line in done.stdout.splitlines())
    (event,) = events
    assert (event["contractName"], event["eventName"], event["blockNumber"]) == (
        *("Gem", "Transfer"),
        2,
    )
    assert event["args"] == {
        "from": "0x0000000000000000000000000000000000000000",
        "to": "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",
        "tokenId": "1",
    }
    (transaction,) = transactions
    assert (transaction["status"], transaction["blockNumber"]) == ("confirmed", 2)
    assert status.returncode == 0, status.stderr
    assert "31337" in status.stdout
