"""How costs grow with the number of objects.

    script/bench curve [--objects N] [--rounds N] [--seconds N] [--connections N]
    script/bench curve --chart RESULTS.json...

Loads 10,000 objects, ten times as many, and so on up to N, each time into an empty class and by
``script/manage import_objects``; declares indexes; then measures each workload twice: over one
connection, which gives the latencies, and over several, which gives throughput and processor time.
``--chart`` draws the chart of the documentation from kept results.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

import psutil
from psycopg import sql

from bench import accounting, chart, data, generator, report, servers
from bench.client import create_all
from bench.failure import BenchFailure
from bench.measure import Options, Run, figures, run_once, say, write_requests
from bench.servers import Engines, Target
from bench.workloads import Loaded, Request, Workload, find

CHART: Final = servers.ROOT / "docs" / "images" / "cost-curve.svg"
_FIRST: Final = 10_000
_SAMPLE: Final = 5_000
_MATCHES: Final = 60
"""Objects that a search for a word or around a place matches, whatever their number is."""
_INDEXES: Final[dict[str, dict[str, Any]]] = {
    "by_score": {"score": 1},
    "by_name": {"name": "text"},
    "by_place": {"place": "2dsphere"},
}


# -- What is stored -------------------------------------------------------------------------------


def word(number: int) -> str:
    """A word of letters only, another one for each number."""
    letters = []
    for _ in range(6):
        number, letter = divmod(number, 26)
        letters.append("abcdefghijklmnopqrstuvwxyz"[letter])
    # No ending that a language's stemmer takes off, and no stop word.
    return "".join(letters) + "q"


def words(number: int, objects: int) -> list[str]:
    """The three words of an object's text; about ``_MATCHES`` objects have each of them."""
    most = 3 * objects // _MATCHES
    return [word(data.spread(number, f"word{n}") % most) for n in range(3)]


def place(number: int) -> dict[str, Any]:
    """A point anywhere on the globe."""
    latitude = math.degrees(math.asin(data.spread(number, "latitude") / 2**47 - 1))
    longitude = data.spread(number, "longitude") / 2**48 * 360 - 180
    return {
        "__type": "GeoPoint",
        "latitude": round(latitude, 5),
        "longitude": round(longitude, 5),
    }


def an_object(number: int, objects: int, owner_ids: list[str]) -> dict[str, Any]:
    """The object of this number, about 400 bytes as JSON."""
    return {
        **data.an_object(number, objects, owner_ids),
        "name": " ".join(words(number, objects)),
        "place": place(number),
    }


def _write_file(path: Path, objects: int, owner_ids: list[str]) -> None:
    encode = json.JSONEncoder(separators=(",", ":")).encode
    with path.open("w") as file:
        for number in range(objects):
            file.write(f"{encode(an_object(number, objects, owner_ids))}\n")


# -- Workloads ------------------------------------------------------------------------------------


def _workloads(objects: int, sample: Sequence[tuple[str, int]]) -> list[Workload]:
    """Each asks about a sample of what is stored: ids and numbers of objects."""
    numbers = [number for _, number in sample]

    def gets(mount: str, loaded: Loaded) -> Iterator[Request]:
        for object_id, _ in sample:
            yield Request("GET", f"{mount}/classes/{data.MAIN}/{object_id}")

    def finds(
        where: Callable[[int], dict[str, Any]], **options: Any
    ) -> Callable[[str, Loaded], Iterator[Request]]:
        def requests(mount: str, loaded: Loaded) -> Iterator[Request]:
            for number in numbers:
                yield find(mount, where(number), **options)

        return requests

    def above(number: int) -> dict[str, Any]:
        return {"score": {"$gte": data.score(number, objects) * 9 // 10}}

    def text(number: int) -> dict[str, Any]:
        return {"name": {"$text": {"$search": {"$term": words(number, objects)[0]}}}}

    # A cap of the globe with about 60 objects in it.
    radians = math.acos(1 - 2 * _MATCHES / objects)

    def near(number: int) -> dict[str, Any]:
        return {"place": {"$nearSphere": place(number), "$maxDistance": radians}}

    def tag(number: int) -> dict[str, Any]:
        return {"tags": f"tag{number % 50}"}

    return [
        Workload("get", "get by id", gets, lambda answer: "code" in answer),
        Workload(
            "equality",
            "equality, undeclared field, 1 found",
            finds(lambda number: {"code": data.code(number)}),
            lambda answer: len(answer["results"]) == 1,
        ),
        Workload(
            "range",
            "range and order, index, first 20",
            finds(above, order="score", limit=20),
            lambda answer: len(answer["results"]) == 20,
        ),
        Workload(
            "include",
            "the same with a pointer included",
            finds(above, order="score", limit=20, include="owner"),
            lambda answer: all(one["owner"]["__type"] == "Object" for one in answer["results"]),
        ),
        Workload(
            "text",
            f"a word that {_MATCHES} objects have, index, first 20",
            finds(text, limit=20),
            lambda answer: len(answer["results"]) > 5,
        ),
        Workload(
            "geo",
            f"nearest 20 of {_MATCHES} in a circle, index",
            finds(near, limit=20),
            lambda answer: len(answer["results"]) > 5,
        ),
        Workload(
            "count",
            "count what 2 % of the objects have",
            finds(tag, count=1, limit=0),
            lambda answer: answer["count"] == objects // 50,
        ),
    ]


# -- Loading --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Import:
    """What an import took; processor times in microseconds an object, memory in MiB."""

    seconds: float
    own_cpu_us: float
    postgres_cpu_us: float
    peak_memory: float
    index_seconds: float


def _import(engines: Engines, target: Target, objects: int, file: Path) -> Import:
    class_name = data.MAIN
    with target.master() as master:
        status, _ = master.attempt("GET", f"{target.mount}/schemas/{class_name}", None)
        if status == 200:
            master.send("DELETE", f"/purge/{class_name}")
            master.send("DELETE", f"/schemas/{class_name}")
        fields = {**data.FIELDS, "place": {"type": "GeoPoint"}}
        master.send("POST", f"/schemas/{class_name}", {"className": class_name, "fields": fields})
    command = [sys.executable, "manage.py", "import_objects", class_name, str(file), "--restart"]
    postgres = accounting.cpu_seconds(engines.postgres_pid)
    began = time.monotonic()
    process = subprocess.Popen(
        command,
        cwd=servers.ROOT,
        env=servers.service_environment(engines),
        stdout=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.monotonic() - began
    postgres = accounting.cpu_seconds(engines.postgres_pid) - postgres
    if os.waitstatus_to_exitcode(status) != 0:
        raise BenchFailure("the import failed")
    began = time.monotonic()
    with target.master() as master:
        master.send("PUT", f"/schemas/{class_name}", {"indexes": _INDEXES})
    return Import(
        seconds,
        _cpu(used) / objects * 1e6,
        postgres / objects * 1e6,
        used.ru_maxrss / 1024,
        time.monotonic() - began,
    )


def _cpu(used: resource.struct_rusage) -> float:
    return used.ru_utime + used.ru_stime


def _relation(engines: Engines, target: Target) -> str:
    query = sql.SQL("SELECT id FROM objects_class WHERE name = {}").format(sql.Literal(data.MAIN))
    return f"objects_object_{engines.value(target.database, query)}"


def _bytes(engines: Engines, target: Target, objects: int) -> dict[str, float]:
    """Bytes an object of the table and of each index."""
    relation = _relation(engines, target)
    sizes = engines.value(
        target.database,
        sql.SQL(
            "SELECT json_object_agg(kind, size)::text FROM ("
            " SELECT 'table' AS kind, pg_table_size({0}::regclass) AS size UNION ALL"
            " SELECT CASE WHEN i.indisprimary THEN 'ids'"
            "  WHEN d ~ 'jsonb_path_ops' THEN 'all fields'"
            "  WHEN d ~ 'created_at' THEN 'by creation'"
            "  WHEN d ~ 'USING gin' THEN 'text'"
            "  WHEN d ~ 'USING gist' THEN 'places' ELSE 'range' END,"
            "  pg_relation_size(i.indexrelid)"
            " FROM pg_index i, pg_get_indexdef(i.indexrelid) d WHERE i.indrelid = {0}::regclass"
            ") AS sizes"
        ).format(sql.Literal(relation)),
    )
    return {kind: size / objects for kind, size in json.loads(sizes).items()}


def _sample(engines: Engines, target: Target) -> list[tuple[str, int]]:
    """Ids and numbers of objects, picked at random."""
    relation = sql.Identifier(_relation(engines, target))
    total = sql.SQL("SELECT count(*) FROM {}").format(relation)
    share = min(100.0, 300 * _SAMPLE / engines.value(target.database, total))
    rows = json.loads(
        engines.value(
            target.database,
            sql.SQL(
                "SELECT json_agg(json_build_array(object_id, data ->> 'code'))::text"
                " FROM {} TABLESAMPLE BERNOULLI ({})"
            ).format(relation, sql.Literal(share)),
        )
    )
    random.Random(_SAMPLE).shuffle(rows)
    return [(object_id, int(code.rpartition("-")[2])) for object_id, code in rows[:_SAMPLE]]


# -- Measuring ------------------------------------------------------------------------------------


def _measure_size(
    engines: Engines, target: Target, objects: int, owner_ids: list[str], options: Options
) -> dict[str, Any]:
    load_before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="svc-bench-curve-") as folder:
        file = Path(folder) / "objects.ndjson"
        say(f"{objects:,} objects: writing the file")
        _write_file(file, objects, owner_ids)
        size = file.stat().st_size / objects
        say(f"{objects:,} objects: importing {size:.0f} bytes each")
        imported = _import(engines, target, objects, file)
        file.unlink()
        say(
            f"{objects:,} objects: {objects / imported.seconds:,.0f} objects/s,"
            f" CPU {imported.own_cpu_us:.0f} + {imported.postgres_cpu_us:.0f} us,"
            f" indexes {imported.index_seconds:.0f} s"
        )
        target.tune(engines)
        loaded = Loaded(objects, [], owner_ids)
        runs: dict[str, list[Run]] = {}
        for workload in _workloads(objects, _sample(engines, target)):
            requests = write_requests(Path(folder), workload, target, loaded)
            run_once(engines, target, workload, requests, options, 2)
            for name, connections in (("alone", 1), ("together", options.connections)):
                one = replace(options, connections=connections)
                runs[f"{workload.name} {name}"] = [
                    run_once(engines, target, workload, requests, one, options.seconds)
                    for _ in range(options.rounds)
                ]
            alone, together = (figures(runs[f"{workload.name} {n}"]) for n in ("alone", "together"))
            say(
                f"{objects:,} objects: {workload.name:9} p50 {alone.p50_ms:.2f} ms"
                f"  p99 {alone.p99_ms:.2f} ms  {together.rate:,.0f}/s"
            )
        return {
            "objects": objects,
            "title": {one.name: one.title for one in _workloads(objects, [])},
            "load_before": load_before,
            "bytes_as_json": size,
            "import": asdict(imported),
            "bytes": _bytes(engines, target, objects),
            "service_memory": _memory(target),
            "runs": {name: [run.as_dict() for run in found] for name, found in runs.items()},
            "figures": {
                one.name: {
                    "alone": asdict(figures(runs[f"{one.name} alone"])),
                    "together": asdict(figures(runs[f"{one.name} together"])),
                }
                for one in _workloads(objects, [])
            },
        }


def _memory(target: Target) -> float:
    """MiB of PSS of the service's processes."""
    processes = [psutil.Process(pid) for root in target.pids for pid in accounting.tree(root)]
    return sum(process.memory_full_info().pss for process in processes) / 2**20


# -- Telling --------------------------------------------------------------------------------------


def tables(sizes: Sequence[Mapping[str, Any]]) -> str:
    """The figures of all sizes in markdown."""
    titles = sizes[0]["title"]
    counts = [f"{size['objects']:,}" for size in sizes]
    latency = [report.line("p50, p99 ms", *counts), report.ruler(len(counts) + 1)]
    rates = [report.line("requests/s, CPU µs", *counts), report.ruler(len(counts) + 1)]
    for name, title in titles.items():
        alone = [size["figures"][name]["alone"] for size in sizes]
        together = [size["figures"][name]["together"] for size in sizes]
        latency.append(
            report.line(title, *(f"{one['p50_ms']:.2f}, {one['p99_ms']:.2f}" for one in alone))
        )
        rates.append(
            report.line(
                title,
                *(
                    f"{one['rate']:,.0f}, {one['server_cpu'] + one['postgres_cpu']:,.0f}"
                    for one in together
                ),
            )
        )
    imports = [size["import"] for size in sizes]
    loading = [report.line("loading", *counts), report.ruler(len(counts) + 1)]
    loading += [
        report.line(title, *cells)
        for title, cells in (
            ("import, s", [f"{one['seconds']:.1f}" for one in imports]),
            (
                "objects/s",
                [f"{size['objects'] / size['import']['seconds']:,.0f}" for size in sizes],
            ),
            (
                "CPU µs an object: import + PostgreSQL",
                [f"{one['own_cpu_us']:.0f} + {one['postgres_cpu_us']:.0f}" for one in imports],
            ),
            ("largest memory of the import, MiB", [f"{one['peak_memory']:.0f}" for one in imports]),
            (
                "building the 3 declared indexes, s",
                [f"{one['index_seconds']:.1f}" for one in imports],
            ),
        )
    ]
    kinds = ("table", "ids", "by creation", "all fields", "range", "text", "places")
    space = [report.line("bytes an object", *counts), report.ruler(len(counts) + 1)]
    space.append(report.line("as JSON", *(f"{size['bytes_as_json']:.0f}" for size in sizes)))
    space += [
        report.line(
            kind if kind == "table" else f"index: {kind}",
            *(f"{size['bytes'][kind]:.0f}" for size in sizes),
        )
        for kind in kinds
    ]
    space.append(
        report.line("all on disk", *(f"{sum(size['bytes'].values()):.0f}" for size in sizes))
    )
    space.append(
        report.line(
            "memory of the service, MiB", *(f"{size['service_memory']:.0f}" for size in sizes)
        )
    )
    return "\n\n".join("\n".join(part) for part in (latency, rates, loading, space))


def draw(sizes: Sequence[Mapping[str, Any]]) -> str:
    """The chart: latencies over one connection by the number of objects."""
    names = sizes[0]["title"]
    series = {
        name: [
            (float(size["objects"]), float(size["figures"][name]["alone"]["p50_ms"]))
            for size in sizes
        ]
        for name in names
    }
    return chart.log_log(
        "Median latency by the number of objects", "objects in the class", "milliseconds", series
    )


def _merged(paths: Sequence[Path]) -> list[dict[str, Any]]:
    """The sizes of several results, the later one where two have the same."""
    found: dict[int, dict[str, Any]] = {}
    for path in paths:
        for size in json.loads(path.read_text())["curve"]:
            found[size["objects"]] = size
    return [found[objects] for objects in sorted(found)]


def _sizes(least: int, most: int) -> list[int]:
    sizes = [least]
    while sizes[-1] * 10 <= most:
        sizes.append(sizes[-1] * 10)
    return sizes


def main(given: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(
        prog="script/bench curve",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--objects", type=int, default=1_000_000, help="at most (%(default)s)")
    parser.add_argument("--least", type=int, default=_FIRST, help="at first (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="measured rounds (%(default)s)")
    parser.add_argument("--seconds", type=int, default=5, help="seconds a run (%(default)s)")
    parser.add_argument("--connections", type=int, default=16, help="kept open (%(default)s)")
    parser.add_argument("--generator", choices=("wrk", "autocannon"), help="what makes the load")
    parser.add_argument("--chart", type=Path, nargs="+", metavar="RESULTS", help="only draw")
    arguments = parser.parse_args(given)
    if arguments.chart:
        sizes = _merged(arguments.chart)
        CHART.write_text(draw(sizes))
        print(tables(sizes))
        return
    if arguments.least < 1_000:
        parser.error("--least: at least 1,000")
    options = Options(
        arguments.rounds,
        arguments.seconds,
        arguments.connections,
        generator.choose(arguments.generator),
    )
    with servers.engines() as engines, servers.ours(engines, 2) as target:
        facts = report.conditions(engines, [target], options)
        facts["load"] = f"{options.generator}, latencies over 1 connection, the rest over " + str(
            options.connections
        )
        servers.prepare(target)
        owner_ids = create_all(target.client, data.OWNER, map(data.owner, range(data.OWNERS)))
        sizes: list[dict[str, Any]] = []
        try:
            for objects in _sizes(arguments.least, arguments.objects):
                sizes.append(_measure_size(engines, target, objects, owner_ids, options))
        finally:
            if sizes:
                kept = report.keep(facts, curve=sizes)
                print(f"{report.heading(facts)}\n\n{tables(sizes)}")
                say(f"all figures: {kept.relative_to(servers.ROOT)}; --chart draws them")
