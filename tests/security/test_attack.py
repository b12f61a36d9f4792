"""``script/attack`` attacks nothing but the service that it has started."""

from __future__ import annotations

import pytest

from bench.attack.scene import Scene, require_loopback
from bench.failure import BenchFailure


@pytest.mark.parametrize(
    "host", ["192.0.2.1", "10.0.0.1", "0.0.0.0", "::", "example.org", "localhost", "", "2130706433"]
)
def test_only_loopback_addresses_are_attacked(host):
    with pytest.raises(BenchFailure, match="loopback"):
        require_loopback(host)
    with pytest.raises(BenchFailure, match="loopback"):
        Scene(host, 1, "a", "k", "o", "/f", "u", "p", "t")
