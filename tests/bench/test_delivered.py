"""The tables of ``script/bench --peer --delivered``, whichever scenes were measured."""

from __future__ import annotations

import pytest

from bench import delivered
from bench.generator import Load
from bench.measure import Options, Run
from bench.workloads import WORKLOADS

COMPARED = [workload for workload in WORKLOADS if workload.name in delivered.GOALS]
OPTIONS = Options(rounds=5, seconds=3, connections=16, generator="wrk")


def run(workload: str, target: str, rate: int, p99: float) -> Run:
    load = Load(rate, 1.0, 1.0, p99, p99, 0, 0.1)
    return Run(workload, target, load, 100.0, 50.0)


def scene(*, with_cold: bool) -> list[Run]:
    names = [workload.name for workload in COMPARED] + ["find-cold"] * with_cold
    return [
        run(name, *remaining)
        for name in names
        for remaining in (("ours", 300, 10.0), ("peer", 100, 20.0))
    ]


def tables(*scenes: str) -> str:
    runs = {name: scene(with_cold=name == delivered.FIRST) for name in scenes}
    return delivered.tables(runs, COMPARED, OPTIONS)


def test_the_first_scene_has_throughput_and_verdicts() -> None:
    text = tables(*delivered.SCENES)
    assert "| get by id | 300 | 100 + 50 | 100 | 100 + 50 | **3.00** | 3 | met |" in text
    assert (
        "| batch of 50 creates | 300 | 100 + 50 | 100 | 100 + 50 | **3.00** | 5 | missed |" in text
    )
    heading = "| p99 ms: this service, Parse Server | 16 connections | 64 connections |"
    assert f"{heading} 256 connections | 1 % slow clients |" in text


@pytest.mark.parametrize("names", [("256",), ("256", "slow"), ("64",)])
def test_other_scenes_alone_have_latencies_alone(names: tuple[str, ...]) -> None:
    text = tables(*names)
    assert "ratio" not in text
    assert "| get by id |" + " 10.0, 20.0 |" * len(names) in text
