"""The launcher is stopped by a signal at any moment, also while it forks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]

# A hook that runs where Python drops exceptions: in the parent, as a part of the fork.
_STOPPED_WHILE_FORKING = """
import os, signal, sys
from pathlib import Path
from backend.instance.account import Account
from backend.kernel.process.children import start, undisturbed

class Stopped(BaseException):
    pass

def stop(number, frame):
    raise Stopped

signal.signal(signal.SIGTERM, stop)
os.register_at_fork(after_in_parent=lambda: os.kill(os.getpid(), signal.SIGTERM))
child = None
try:
    with open(os.devnull, "ab") as log, undisturbed():
        child = start(["sleep", "60"], account=Account(os.geteuid(), os.getegid()), log=log)
    print("lost")
except Stopped:
    child.terminate()
    print("stopped", child.wait())
"""

_ORPHAN = """
import os, subprocess, sys
import psutil
from backend.kernel.process.children import adopt_orphans, reap_orphans

adopt_orphans()
known = subprocess.Popen(["true"])
parent = subprocess.run(["sh", "-c", "sleep 0.1 & exit 0"])
while any(each.status() != psutil.STATUS_ZOMBIE for each in psutil.Process().children()):
    os.sched_yield()
before = len(psutil.Process().children())
reap_orphans({known.pid})
print(before, [each.pid for each in psutil.Process().children()] == [known.pid], known.wait())
"""


def output_of(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_signal_that_comes_while_a_child_is_started_stops_when_the_child_is_known():
    assert output_of(_STOPPED_WHILE_FORKING) == "stopped -15\n"


def test_adopted_processes_that_have_ended_are_let_go():
    assert output_of(_ORPHAN) == "2 True 0\n"
