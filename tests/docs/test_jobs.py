"""The job of docs/jobs.md is one, and does what it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from backend.kernel.principal import MASTER
from functions import JobRequest
from functions.runtime.registry import registry
from objects import service

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "jobs.md").read_text()


@pytest.mark.django_db
def test_the_example() -> None:
    (source,) = re.findall(r"```python\n(.+?)```", TEXT, re.DOTALL)
    service.create(MASTER, "Order", {"total": 5})
    said: list[str] = []
    with registry.temporarily():
        exec(compile(source, "jobs.md", "exec"), {"__name__": "cloud"})
        found = registry.jobs["monthlyReport"]
    assert (found.schedule, [one.name for one in found.parameters]) == ("0 3 * * *", ["days"])
    request = JobRequest(found.name, {}, status_id="0123456789", attempt=1, say=said.append)
    assert found.body(request) == "done"
    assert said == ["0 orders seen"]
