"""What ``doctor`` says about versions of engines and libraries."""

from __future__ import annotations

import re
from datetime import date, timedelta
from pathlib import Path

import pytest

from backend.operations.doctor import versions
from backend.operations.doctor.versions import AS_OF, ENGINES, LIBRARIES, VALID, complaint, parse

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("16.4 (Debian 16.4-1.pgdg120+2)", (16, 4)),
        ("18.6", (18, 6)),
        ("19beta1", (19,)),
        ("v2.11.7 h1:yj0Y4fYZGPkSvibBJ1sTWE33xC0fxztVyXEW5iIdUT4=", (2, 11, 7)),
        ("6.2.14", (6, 2, 14)),
        ("unknown", ()),
    ],
)
def test_versions_are_read_as_numbers(text, numbers):
    assert parse(text) == numbers


@pytest.mark.parametrize(
    ("engine", "version", "message"),
    [
        ("PostgreSQL", (18, 4), "PostgreSQL 18.4 is old: 18.6 has fixes that it lacks."),
        ("PostgreSQL", (18, 6), None),
        ("PostgreSQL", (18, 10), None),
        ("PostgreSQL", (19, 1), None),
        ("PostgreSQL", (15, 99), "PostgreSQL 15.99 is of a series that gets no fixes any more."),
        ("Redis", (6, 2, 14), "Redis 6.2.14 is old: 6.2.24 has fixes that it lacks."),
        ("Redis", (6, 2, 24), None),
        ("Redis", (7, 0, 15), "Redis 7.0.15 is of a series that gets no fixes any more."),
        ("Redis", (8, 10, 2), None),
        ("Redis", (9, 0, 0), None),
        ("Valkey", (8, 1, 4), "Valkey 8.1.4 is old: 8.1.9 has fixes that it lacks."),
        ("Caddy", (2, 10, 2), "Caddy 2.10.2 is old: 2.11.7 has fixes that it lacks."),
        ("Caddy", (2, 12, 0), None),
    ],
)
def test_engines_are_compared_within_their_series(engine, version, message):
    assert complaint(engine, version) == message


def test_libraries_older_than_the_table_are_named():
    assert versions.old_libraries(LIBRARIES) == []
    assert versions.old_libraries({"Django": "5.2.9"}) == [
        f"Django 5.2.9 is old: {LIBRARIES['Django']} has fixes that it lacks."
    ]
    assert versions.old_libraries({"Django": "6.0", "unknown": "0.1"}) == []


def test_the_table_itself_grows_old():
    assert list(versions.age_of_table(AS_OF + timedelta(VALID))) == []
    (finding,) = versions.age_of_table(AS_OF + timedelta(VALID + 1))
    assert finding.level == "warn"
    assert "181 days old" in finding.text
    assert AS_OF >= date(2026, 11, 22)


def test_the_libraries_of_the_table_are_those_that_are_pinned():
    pins = dict(
        re.findall(r"^([A-Za-z0-9._-]+)==(\S+)", (ROOT / "requirements.txt").read_text(), re.M)
    )
    pinned = {name: pins[name.lower()] for name in LIBRARIES}
    assert dict(LIBRARIES) == pinned


def test_every_major_version_of_postgresql_that_is_supported_is_in_the_table():
    from backend.operations.doctor.engines import OLDEST

    assert min(ENGINES["PostgreSQL"]) == (OLDEST,)


@pytest.mark.django_db
def test_the_engines_of_this_run_are_recognized():
    running = {engine: version for engine, version, _ in versions._running()}
    assert running["PostgreSQL"] >= (16,)
    assert running.get("Redis") or running.get("Valkey")
    assert all(finding.text for finding in versions.versions())
