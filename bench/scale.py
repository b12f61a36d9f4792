"""What a request costs among 10,000 objects and among a million."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from psycopg import sql

from bench import data
from bench.measure import Figures, Options, Run, figures, load, run_once, say, write_requests
from bench.servers import Engines, Target
from bench.workloads import Loaded, Request, Workload, find

_SMALL = 10_000
# The new rows are what REST would have stored: every value as varied as in the loaded ones.
_GROW = """
INSERT INTO objects_object
    (class_id, object_id, created_at, updated_at, read_acl, write_acl, data)
SELECT
    class_id,
    substr(translate(encode(sha256((object_id || copy)::bytea), 'base64'), '+/=', 'xyz'), 1, 10),
    created_at + copy * interval '1 minute',
    updated_at + copy * interval '1 minute',
    read_acl,
    write_acl,
    data || jsonb_build_object(
        'code', (data ->> 'code') || '-' || copy,
        'name', (data ->> 'name') || ' ' || copy,
        'score', (data ->> 'score')::int + copy * {small},
        'rank', (data ->> 'rank')::int + copy * {small}
    )
FROM {relation}, generate_series(1, {copies}) AS copy
"""


def compare(
    engines: Engines, target: Target, objects: int, options: Options
) -> tuple[str, dict[str, Any]]:
    """Measure get and unindexed equality at both sizes."""
    loaded = load(target, engines, _SMALL)
    small = _measure(engines, target, loaded, options)
    say(f"growing to {objects} objects")
    relation = _relation(engines, target)
    engines.execute(
        target.database,
        sql.SQL(_GROW).format(
            relation=relation,
            small=sql.Literal(_SMALL),
            copies=sql.Literal(objects // _SMALL - 1),
        ),
    )
    target.tune(engines)
    large = _measure(engines, target, loaded, options)
    lines = [
        f"| workload | {_SMALL:,} objects: requests/s | p50 ms | CPU µs | "
        f"{objects:,} objects: requests/s | p50 ms | CPU µs | cost ratio (CPU) | p50 ratio |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name in ("get", "equality"):
        one, other = _of(small, name), _of(large, name)
        lines.append(
            f"| {name} | {_cells(one)} | {_cells(other)} | "
            f"**{_cost(other) / _cost(one):.2f}** | {other.p50_ms / one.p50_ms:.2f} |"
        )
    return "\n".join(lines), {
        "small": [run.as_dict() for run in small],
        "large": [run.as_dict() for run in large],
    }


def _of(runs: list[Run], name: str) -> Figures:
    return figures([run for run in runs if run.workload == name])


def _cost(found: Figures) -> float:
    return found.server_cpu + found.postgres_cpu


def _cells(found: Figures) -> str:
    return f"{found.rate:,.0f} | {found.p50_ms:.1f} | {_cost(found):,.0f}"


def _relation(engines: Engines, target: Target) -> sql.Composable:
    class_id = engines.value(
        target.database,
        sql.SQL("SELECT id FROM objects_class WHERE name = {}").format(sql.Literal(data.MAIN)),
    )
    return sql.Identifier(f"objects_object_{class_id}")


def _measure(engines: Engines, target: Target, loaded: Loaded, options: Options) -> list[Run]:
    """Both workloads over a sample of all that is stored."""
    sample = json.loads(
        engines.value(
            target.database,
            sql.SQL(
                "SELECT json_agg(json_build_array(object_id, data -> 'code'))::text FROM "
                "(SELECT * FROM {} ORDER BY random() LIMIT 10000) AS sample"
            ).format(_relation(engines, target)),
        )
    )

    def get(mount: str, loaded: Loaded) -> Iterator[Request]:
        for object_id, _ in sample:
            yield Request("GET", f"{mount}/classes/{data.MAIN}/{object_id}")

    def equality(mount: str, loaded: Loaded) -> Iterator[Request]:
        for _, code in sample:
            yield find(mount, {"code": code})

    workloads = (
        Workload("get", "get by id", get, lambda answer: "code" in answer),
        Workload("equality", "equality", equality, lambda answer: len(answer["results"]) == 1),
    )
    runs = []
    with tempfile.TemporaryDirectory(prefix="svc-bench-requests-") as folder:
        for workload in workloads:
            requests = write_requests(Path(folder), workload, target, loaded)
            run_once(engines, target, workload, requests, options, 2)
            for _ in range(options.rounds):
                run = run_once(engines, target, workload, requests, options, options.seconds)
                say(f"{workload.name:10} {run.load.rate:8.0f}/s  p50 {run.load.p50_ms:6.2f} ms")
                runs.append(run)
    return runs
