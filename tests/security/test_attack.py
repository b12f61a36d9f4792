"""The short form of ``script/attack``: a client is served correctly while others attack."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bench.attack.scene import Scene, require_loopback
from bench.failure import BenchFailure
from tests.backend.operations.service import plain_environment

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    "host", ["192.0.2.1", "10.0.0.1", "0.0.0.0", "::", "example.org", "localhost", "", "2130706433"]
)
def test_only_loopback_addresses_are_attacked(host):
    with pytest.raises(BenchFailure, match="loopback"):
        require_loopback(host)
    with pytest.raises(BenchFailure, match="loopback"):
        Scene(host, 1, "a", "k", "o", "/f", "u", "p", "t")


@pytest.mark.slow
@pytest.mark.process
def test_a_client_is_served_while_others_attack():
    done = subprocess.run(
        [sys.executable, "-m", "bench.attack.command", "--short", "--correctness-only"],
        cwd=ROOT,
        env=plain_environment(),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
