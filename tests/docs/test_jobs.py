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
    lines: list[str] = []
    with registry.temporarily():
        exec(compile(source, "jobs.md", "exec"), {"__name__": "cloud"})
        monthly_report = registry.jobs["monthlyReport"]
    assert (
        monthly_report.schedule,
        [parameter.name for parameter in monthly_report.parameters],
    ) == ("0 3 * * *", ["days"])
    request = JobRequest(
        monthly_report.name, {}, status_id="0123456789", attempt=1, say=lines.append
    )
    assert monthly_report.body(request) == "done"
    assert lines == ["0 orders seen"]
