"""The pieces of the conformance runner."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest

from tests.conformance.score import Score, table
from tests.sdk.applications import FOLDER

RUNNER = FOLDER.parent / "conformance"


def test_skipped_tests_do_not_count():
    score = Score()
    files = [
        {"suite": "spec", "file": "A.spec.js", "passed": 3, "failed": 1, "skipped": 5},
        {"suite": "sdk", "file": "B.js", "passed": 0, "failed": 0, "skipped": 2},
        {"suite": "sdk", "file": "C.js", "passed": 0, "failed": 0, "incomplete": "ended with 1"},
    ]
    lines = list(table(files, score))
    assert [line.split() for line in lines] == [
        ["spec/A.spec.js", "3/4", "-1"],
        ["sdk/C.js", "0/0", "INCOMPLETE:", "ended", "with", "1"],
    ]
    assert (score.passed, score.total, score.share) == (3, 4, 0.75)


def test_nothing_that_ran_is_no_success():
    assert Score().share == 0.0


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no Node.js here")
def test_a_test_that_was_under_way_when_its_process_ended_has_failed():
    lines = [
        {"t": "start", "name": "saves"},
        {"t": "test", "name": "saves", "status": "passed", "ms": 3},
        {"t": "start", "name": "hangs"},
    ]
    program = (
        "const { summarise } = require('./lib/summary');"
        f"const lines = {json.dumps(lines)};"
        "const job = { suite: 'spec', file: 'A.spec.js' };"
        "const end = { code: null, killed: 'file limit of 1 s', stderr: '' };"
        "console.log(JSON.stringify(summarise(job, lines, end)));"
    )
    done = subprocess.run(
        ["node", "-e", program], cwd=RUNNER, capture_output=True, text=True, check=True
    )
    result = json.loads(done.stdout)
    assert (result["passed"], result["failed"]) == (1, 1)
    assert result["incomplete"] == "file limit of 1 s"
    assert result["tests"][1]["message"] == "killed: file limit of 1 s"
