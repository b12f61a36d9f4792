"""``manage.py doctor``: what is wrong, and what to do."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import redis
from django.core.management import CommandError
from django.db import connection
from django.test import override_settings
from django.utils import timezone
from django.utils.module_loading import autodiscover_modules

import backend.operations.doctor  # noqa: F401 (registers checks)
from backend.instance.folder import DataFolder
from backend.kernel import doctor
from backend.kernel.connections import postgres
from backend.kernel.process import heartbeats
from objects.definitions import registry
from tests.backend.commands.conftest import run
from tests.backend.commands.instances import FIRST_KEYS, Instance
from tests.callers import *  # noqa: F403

pytestmark = pytest.mark.django_db(transaction=True)

GOOD = {
    "MASTER_KEY": "master-" + "0123456789abcdef" * 2,
    "READ_ONLY_MASTER_KEY": "",
    "REST_API_KEY": "rest-" + "0123456789abcdef" * 2,
    "JAVASCRIPT_KEY": "javascript-" + "0123456789abcdef",
    "CLIENT_KEY": "",
    "MASTER_KEY_IPS": ("10.0.0.5",),
    "RATE_LIMITS": "defaults",
}
SECRET = "a-secret-key-of-many-different-characters-0123456789"


@pytest.fixture(autouse=True)
def fit(settings, tmp_path: Path) -> Any:
    """Settings that nothing is wrong with."""
    autodiscover_modules("doctor")
    settings.SERVICE = {**settings.SERVICE, **GOOD}
    settings.SECRET_KEY = SECRET
    settings.PUBLIC_URL = "https://127.0.0.1:9"
    settings.ALLOWED_HOSTS = ["127.0.0.1"]
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    storages = {**settings.STORAGES}
    storages["files"] = {
        **storages["files"],
        "OPTIONS": {**storages["files"]["OPTIONS"], "location": tmp_path / "files"},
    }
    settings.STORAGES = storages
    return settings


def findings(name: str) -> list[tuple[str, str, str]]:
    """Level, text and advice of what one check finds."""
    outcome = next(each for each in doctor.run_all() if each.check == name)
    return [(finding.level, finding.text, finding.advice) for finding in outcome.findings]


def levels(name: str) -> set[str]:
    return {level for level, _, _ in findings(name)}


WATCHED = ("worker", "jobs", "chain", "backfill", "beat")


@pytest.fixture
def alive() -> Iterator[Any]:
    """The workers and beat have just left a heartbeat."""
    from django.conf import settings

    with redis.Redis.from_url(settings.REDIS_URL) as client:
        for which in WATCHED:
            heartbeats.note(client, which)
        yield client
        client.delete(*(f"heartbeat:{which}" for which in WATCHED))


def test_every_failure_and_warning_says_what_to_do(settings):
    settings.DEBUG = True
    for outcome in doctor.run_all():
        for finding in outcome.findings:
            assert finding.text
            assert finding.advice or finding.level in ("ok", "skipped"), finding


def test_a_healthy_instance_has_no_failures_and_status_0(alive, settings):
    # The test run's own engines are fast, not durable.
    with without("database settings"):
        output = run("doctor", "--json")
    document = json.loads(output.out)
    bad = [
        each
        for each in document["checks"]
        for finding in each["findings"]
        if finding["level"] == "fail"
    ]
    assert bad == []
    assert document["status"] in ("ok", "warn")
    assert {each["check"] for each in document["checks"]} >= {
        "keys", "settings", "database", "migrations", "redis", "disk", "file storage", "clock",
        "processes", "indexes", "stored secrets", "expired rows", "files", "maintenance mode",
    }  # fmt: skip


class without:
    """Runs without one check."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> None:
        self.check = doctor._checks.pop(self.name)

    def __exit__(self, *error: object) -> None:
        doctor._checks[self.name] = self.check


def test_a_failure_is_status_1_and_shown_with_its_advice(settings):
    settings.DEBUG = True
    with pytest.raises(CommandError) as failed:
        run("doctor")
    assert failed.value.returncode == 1


@pytest.mark.parametrize(
    ("changed", "level", "message"),
    [
        ({"MASTER_KEY": "short"}, "fail", "MASTER_KEY can be guessed"),
        ({"MASTER_KEY": "a" * 40}, "fail", "different characters"),
        ({"MASTER_KEY": "changeme-0123456789-abcdef"}, "fail", "placeholder"),
        ({"REST_API_KEY": "rest"}, "warn", "REST_API_KEY can be guessed"),
        ({"JAVASCRIPT_KEY": GOOD["REST_API_KEY"]}, "fail", "are the same"),
        ({"FORMER_KEYS": {"MASTER_KEY": (("an-old-one", 1.0),)}}, "warn", "time is over"),
    ],
)
def test_weak_keys_are_named_and_never_shown(settings, changed, level, message):
    with override_settings(SERVICE={**settings.SERVICE, **changed}):
        results = findings("keys")
    assert any(finding[0] == level and message in finding[1] for finding in results), results
    for value in changed.values():
        if isinstance(value, str):
            assert value not in json.dumps(results)


def test_the_advice_on_a_weak_key_says_how_released_apps_continue_to_work(settings):
    with override_settings(SERVICE={**settings.SERVICE, "CLIENT_KEY": "short"}):
        ((_, _, advice),) = findings("keys")
    assert "rotate_keys" in advice
    assert "--grace" in advice


def test_a_former_secret_key_in_use_is_reported(settings):
    assert levels("keys") == {"ok"}
    settings.SECRET_KEY_FALLBACKS = ["old"]
    assert "rotate_keys --finish" in findings("keys")[0][2]


def test_settings_that_are_unfit_for_production_are_reported(settings):
    assert findings("settings") == [("ok", "fit for production", "")]
    settings.PUBLIC_URL = "http://api.example.org"
    settings.EMAIL_BACKEND = "django.core.mail.backends.console.EmailBackend"
    settings.SERVICE = {**settings.SERVICE, "MASTER_KEY_IPS": ("0.0.0.0/0",)}
    text = " ".join(finding[1] for finding in findings("settings"))
    for word in ("any address", "isn't an https address", "Mail is printed", "isn't in ALLOWED"):
        assert word in text


def test_a_server_that_loses_data_is_a_failure():
    # As the test run's own is set up.
    assert ("fail", "fsync is off: a crash destroys the database.", "Set fsync = on.") in findings(
        "database settings"
    )


def test_migrations_that_are_missing_or_newer_are_reported():
    assert levels("migrations") == {"ok"}
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'objects' AND name LIKE '0003%'")
        try:
            assert findings("migrations")[0][2] == "script/manage prepare"
        finally:
            cursor.execute(
                "INSERT INTO django_migrations (app, name, applied) VALUES"
                " ('objects', '0003_files', now())"
            )
        cursor.execute(
            "INSERT INTO django_migrations (app, name, applied) VALUES"
            " ('objects', '9999_later', now())"
        )
        try:
            assert "objects.9999_later isn't known here" in findings("migrations")[0][1]
        finally:
            cursor.execute("DELETE FROM django_migrations WHERE name = '9999_later'")


def test_a_missing_index_is_reported(db):
    _declare_and_lose("by_score")
    assert "first Game.by_score" in findings("indexes")[0][1]
    assert findings("indexes")[0][2] == "script/manage build_indexes"
    assert levels("indexes") == {"warn"}


def test_a_missing_unique_index_is_a_failure(db):
    _declare_and_lose("one_name")
    assert "first Game.one_name: duplicates are accepted" in findings("indexes")[0][1]
    assert levels("indexes") == {"fail"}


def test_a_unique_index_that_accepts_duplicates_is_missing(db):
    name = _declare_and_lose("one_name")
    table = registry.find("Game")
    with connection.cursor() as cursor:
        cursor.execute(f'CREATE INDEX "{name}" ON {table.relation} (object_id)')
    assert levels("indexes") == {"fail"}


def _declare_and_lose(lost: str) -> str:
    from backend.kernel.principal import MASTER
    from objects.definitions import indexes
    from objects.service import classes

    fields = {"score": {"type": "Number"}, "name": {"type": "String"}}
    declared = {"by_score": {"score": 1}, "one_name": {"fields": {"name": 1}, "unique": True}}
    classes.create(MASTER, "Game", {"fields": fields, "indexes": declared})
    assert levels("indexes") == {"ok"}
    table = registry.find("Game")
    name = indexes.index_name(table, table.schema.index_declarations[lost])
    with connection.cursor() as cursor:
        cursor.execute(f'DROP INDEX "{name}"')
    return name


def test_an_index_that_no_class_declares_is_reported(db):
    from backend.kernel.principal import MASTER
    from objects.core.schema.definition import IndexDeclaration
    from objects.definitions import indexes
    from objects.service import classes

    classes.create(MASTER, "Game", {"fields": {"score": {"type": "Number"}}})
    indexes.build(registry.find("Game"), IndexDeclaration("old", (("score", 1),)))
    assert "1 indexes are in the database that no class declares" in findings("indexes")[0][1]
    assert levels("indexes") == {"warn"}


@pytest.mark.slow
def test_the_table_of_a_removed_class_is_reported_until_it_is_dropped(transactional_db):
    from backend.kernel.principal import MASTER
    from objects.definitions import leftovers
    from objects.service import classes

    classes.create(MASTER, "Game", {})
    with postgres.connect(60) as reader:
        with reader.transaction():
            reader.execute(f"SELECT FROM {registry.find('Game').relation}")
            classes.delete(MASTER, "Game")
            assert "1 tables of removed classes" in findings("indexes")[0][1]
        leftovers.drop_tables()
    assert levels("indexes") == {"ok"}


def test_classes_that_are_full_of_fields_are_reported(db):
    from backend.kernel.principal import MASTER
    from objects import service

    assert levels("fields of classes") == {"ok"}
    service.create(MASTER, "Wide", {f"f{n}": n for n in range(1_700)})
    ((level, finding, advice),) = findings("fields of classes")
    assert level == "warn"
    assert "Wide has 1,700 of the 2,000 fields" in finding
    assert "addField" in advice


def test_classes_that_clients_have_filled_with_fields_are_reported(db):
    from backend.kernel.principal import CLIENT, MASTER
    from objects import service
    from objects.service import classes

    classes.create(MASTER, "Crowded", {})
    for part in range(3):
        service.create(CLIENT, "Crowded", {f"f{part}_{n}": n for n in range(90)})
    ((level, finding, advice),) = findings("fields of classes")
    assert level == "warn"
    assert "Crowded has 270 of the 300 fields that clients can add" in finding
    assert "addField" in advice


def test_tables_that_live_queries_hear_nothing_of_are_reported(db):
    from backend.kernel.principal import MASTER
    from objects.database.statements import fetch
    from objects.definitions import registry
    from objects.service import classes

    classes.create(MASTER, "Game", {})
    assert levels("captured changes") == {"ok"}
    table = registry.find("Game").storage
    fetch(f"ALTER TABLE {table} DISABLE TRIGGER objects_change", (), prepare=False)
    ((level, finding, advice),) = findings("captured changes")
    assert level == "fail"
    assert f"1 tables, first {table.strip(chr(34))}" in finding
    assert "objects_change" in advice
    fetch("DROP TRIGGER objects_change_update ON objects_session", (), prepare=False)
    ((_, finding, _),) = findings("captured changes")
    assert "2 tables" in finding


def test_processes_that_are_silent_are_reported(alive):
    assert levels("processes") == {"ok"}
    alive.set("heartbeat:beat", repr(time.time() - 100))
    assert levels("processes") == {"warn"}
    alive.delete("heartbeat:worker")
    assert levels("processes") == {"warn", "fail"}


def test_storage_that_can_t_be_written_is_reported(settings, tmp_path):
    assert levels("file storage") == {"ok"}
    assert not [path for path in (tmp_path / "files").rglob("*") if path.is_file()]
    (tmp_path / "taken").write_text("a file, not a folder")
    storages = {**settings.STORAGES}
    storages["files"] = {
        **storages["files"],
        "OPTIONS": {**storages["files"]["OPTIONS"], "location": tmp_path / "taken"},
    }
    settings.STORAGES = storages
    assert levels("file storage") == {"fail"}
    assert levels("files") == {"skipped"}


def test_a_file_that_storage_lost_is_reported(db):
    from objects.files.models import StoredFile

    name = f"{'0' * 32}_lost.txt"
    StoredFile.objects.create(
        name=name, size=1, content_type="text/plain", sha256="", created_at=timezone.now()
        - timedelta(days=1),
    )  # fmt: skip
    assert f"storage: {name}" in findings("files")[0][1]


def test_the_number_of_files_is_in_the_singular_for_one(db):
    from objects.files.models import StoredFile

    assert findings("files")[0][1].startswith("0 files, ")
    StoredFile.objects.create(
        name=f"{'0' * 32}_new.txt", size=1, content_type="text/plain", created_at=timezone.now()
    )
    assert findings("files")[0][1].startswith("1 file, ")


def test_secrets_that_this_key_can_t_read_are_reported(db):
    from objects.users.models import SecondFactor, User

    now = timezone.now()
    User.objects.create(object_id="u", created_at=now, updated_at=now)
    SecondFactor.objects.create(user_id="u", secret="of another key", created_at=now)
    assert "SECRET_KEY_FALLBACKS" in findings("stored secrets")[0][2]


def test_sessions_that_no_one_removes_are_reported(db):
    from objects.users.models import Session

    old = timezone.now() - timezone.timedelta(days=3)
    assert levels("expired rows") == {"ok"}
    Session.objects.create(object_id="s", created_at=old, updated_at=old, expires_at=old)
    assert "1 sessions expired" in findings("expired rows")[0][1]


def test_maintenance_mode_is_reported(db):
    from objects.database import maintenance

    assert levels("maintenance mode") == {"ok"}
    maintenance.on()
    try:
        assert findings("maintenance mode")[0][2] == "script/manage maintenance off"
    finally:
        maintenance.off()


def test_a_clock_is_compared_with_the_database_and_the_public_address(other, settings):
    settings.PUBLIC_URL = f"http://127.0.0.1:{other.port}"
    results = findings("clock")
    assert [finding[0] for finding in results] == ["ok", "ok"], results
    settings.PUBLIC_URL = "http://127.0.0.1:9"
    assert [finding[0] for finding in findings("clock")] == ["ok", "warn"]


def test_the_address_is_that_of_the_running_instance(other, settings, tmp_path):
    """It may have got its port from an environment that the command doesn't have."""
    settings.PUBLIC_URL = "http://127.0.0.1:9"
    settings.DATA_FOLDER = folder = DataFolder(tmp_path)
    with folder.hold():
        folder.record(pid=os.getpid(), address=f"http://127.0.0.1:{other.port}")
        assert [finding[0] for finding in findings("clock")] == ["ok", "ok"]


def test_indexes_that_could_not_be_built_are_named_and_those_that_were_not_worth_it_are_not():
    from objects.learned.models import LearnedIndex

    def failed(number: int, built_at: Any) -> None:
        LearnedIndex.objects.create(
            class_id=1,
            name=f"objects_auto_1_{number:016x}",
            fields=[[f"field{number}", 1]],
            state="failed",
            shape="",
            reason="the disk is full",
            retry_at=timezone.now() + timedelta(days=1),
            started_at=timezone.now(),
            built_at=built_at,
        )

    assert findings("learned indexes")[0][:2] == ("ok", "0 in use; AUTO_INDEX is on")
    failed(1, timezone.now())
    assert findings("learned indexes")[0][0] == "ok"
    failed(2, None)
    ((level, finding, advice),) = findings("learned indexes")
    assert (level, "field2: the disk is full" in finding) == ("warn", True)
    assert "script/manage indexes" in advice


def test_a_check_that_hangs_is_given_up(db):
    released = threading.Event()

    @doctor.check("hangs", seconds=0.05)
    def hangs() -> Iterator[doctor.Finding]:
        yield doctor.ok("begun")
        released.wait(30)

    @doctor.check("breaks")
    def breaks() -> Iterator[doctor.Finding]:
        raise ValueError("for postgresql://ann:hunter22@db/x")
        yield

    @doctor.check("after", needs=("breaks",))
    def after() -> Iterator[doctor.Finding]:
        yield doctor.ok("never")

    @doctor.check("unknown need", needs=("nothing of that name",))
    def unknown_need() -> Iterator[doctor.Finding]:
        yield doctor.ok("run at last")

    try:
        assert findings("hangs")[-1][1].startswith("no answer in")
        broken = findings("breaks")
        assert broken[0][0] == "fail"
        assert "hunter22" not in broken[0][1]
        assert levels("after") == {"skipped"}
        assert levels("unknown need") == {"ok"}
    finally:
        released.set()
        for name in ("hangs", "breaks", "after", "unknown need"):
            del doctor._checks[name]


@pytest.mark.slow
@pytest.mark.process
def test_without_engines_it_says_so_and_goes_on(tmp_path):
    instance = Instance(tmp_path / "data", "postgresql://127.0.0.1:9/none")
    instance.has_keys(FIRST_KEYS)
    done = instance.manage("doctor", REDIS_URL="redis://127.0.0.1:9")
    assert done.returncode == 1
    assert "FAIL  database: PostgreSQL can't be used" in done.stdout
    assert "FAIL  redis: Redis can't be used" in done.stdout
    assert "-     migrations: not looked at, since database failed" in done.stdout
    assert "-     processes: not looked at, since redis failed" in done.stdout
    assert "ok    disk: DATA_DIR" in done.stdout
    for key in FIRST_KEYS.values():
        assert key not in done.stdout + done.stderr
