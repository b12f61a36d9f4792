"""web3 is imported late, and leaves the process as it was."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

_SCRIPT = """
import sys
import django
django.setup()
before = sys.getrecursionlimit()
from chain.rpc import web3_library
assert "web3" not in sys.modules and "eth_account" not in sys.modules
assert web3_library.eth_account().Account
assert sys.getrecursionlimit() == before
assert web3_library.web3().Web3
assert web3_library.web3() is web3_library.web3()
assert sys.getrecursionlimit() == before
"""


@pytest.mark.slow
def test_importing_web3_leaves_the_recursion_limit_as_it_was() -> None:
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "backend.settings.django"}
    subprocess.run([sys.executable, "-c", _SCRIPT], check=True, timeout=60, env=environment)
