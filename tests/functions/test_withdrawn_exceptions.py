"""An exception that is withdrawn before it was raised leaves no trace in the interpreter."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# In a process of its own: where the flag stays set, a call under a profiler never returns.
SCRIPT = """
import ctypes, sys, threading
from functions.runtime import deadlines

class Sent(BaseException): pass

thread = ctypes.c_ulong(threading.get_ident())
sent = [ctypes.py_object(Sent), None]
# Sent and replaced without a Python instruction between the two.
list(map(deadlines._set_exception, [thread, thread], sent))
deadlines.withdraw()

def call(): return 1

sys.setprofile(lambda *event: None)
result = call()
sys.setprofile(None)
print("returned", result)
"""


def test_calls_return_under_a_profiler_after_an_exception_was_withdrawn():
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert (done.stdout, done.stderr) == ("returned 1\n", "")
