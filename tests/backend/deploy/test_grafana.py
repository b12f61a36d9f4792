"""The dashboard and the alert rules speak of metrics and labels that are there."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families

from tests.other_process import ROOT

FOLDER = ROOT / "deploy" / "grafana"
TOKEN = "a-token-of-some-length"
_SUFFIXES = {
    "counter": ("_total",),
    "histogram": ("_bucket", "_count", "_sum"),
}


def alerts() -> list[Any]:
    groups = yaml.safe_load((FOLDER / "alerts.yaml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def expressions() -> list[str]:
    panels = json.loads((FOLDER / "dashboard.json").read_text())["panels"]
    shown = [target["expr"] for panel in panels for target in panel["targets"]]
    return shown + [rule["expr"] for rule in alerts()]


@pytest.fixture
def names(db: None, settings: Any) -> set[str]:
    """The names of all samples that ``/metrics`` may have."""
    settings.SERVICE = {**settings.SERVICE, "METRICS": True, "METRICS_TOKEN": TOKEN}
    answer = Client().get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    assert answer.status_code == 200
    families = text_string_to_metric_families(answer.content.decode())
    return {
        f"{family.name}{suffix}"
        for family in families
        for suffix in _SUFFIXES.get(family.type, ("",))
    }


def test_every_metric_that_is_shown_or_watched_is_there(names: set[str]) -> None:
    used = {name for text in expressions() for name in re.findall(r"\bsvc_\w+", text)}
    assert sorted(used - names) == []


def test_every_metric_and_label_is_documented() -> None:
    documented = (ROOT / "docs" / "metrics.md").read_text()
    for text in expressions():
        for labels in re.findall(r"(?:by|on) ?\(([\w, ]+)\)", text):
            for label in labels.replace(" ", "").split(","):
                assert label == "le" or f"`{label}`" in documented, text


def test_panels_don_t_overlap() -> None:
    panels = json.loads((FOLDER / "dashboard.json").read_text())["panels"]
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert place["x"] + place["w"] <= 24
        taken |= cells
    assert len({panel["id"] for panel in panels}) == len(panels)


def test_every_alert_says_what_is_wrong() -> None:
    results = alerts()
    assert len({rule["alert"] for rule in results}) == len(results)
    for rule in results:
        assert rule["annotations"]["summary"].endswith((".", "chain_status says why."))
