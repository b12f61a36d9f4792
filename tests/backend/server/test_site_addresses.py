"""The Caddyfile, as ``SITE_ADDRESS`` fills it in."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from backend.operations.embedded.binaries import caddy

CADDYFILE = Path(__file__).resolve().parents[3] / "Caddyfile"


@pytest.mark.parametrize(
    ("sites", "hosts"),
    [
        ("https://api.example.org", {"api.example.org"}),
        (
            "https://api.example.org, https://files.example.org",
            {"api.example.org", "files.example.org"},
        ),
    ],
)
def test_caddy_serves_every_site_address(sites: str, hosts: set[str]):
    done = subprocess.run(
        [str(caddy()), "adapt", "--config", str(CADDYFILE), "--adapter", "caddyfile"],
        env={**os.environ, "SITE_ADDRESS": sites},
        capture_output=True,
        check=True,
    )
    (server,) = json.loads(done.stdout)["apps"]["http"]["servers"].values()
    assert {
        host
        for route in server["routes"]
        for matcher in route["match"]
        for host in matcher.get("host", [])
    } == hosts
