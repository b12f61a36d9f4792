"""What every test may use.

The run has a PostgreSQL and a Redis of its own, started from their wheels in a temporary folder
and gone with it; several runs at once don't meet. Every xdist worker has its own database and its
own Redis database. ``DATABASE_URL`` and ``REDIS_URL`` in the environment are used instead if set.
Temporary folders are in memory where there is enough; ``TMPDIR`` or ``--basetemp`` puts them
elsewhere, and pytest's stay after the run.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import hypothesis
import pytest

from backend.instance.folder import DataFolder, temporary_folder
from backend.operations.embedded.engines import temporary_engines
from tests import memory_folder

if TYPE_CHECKING:
    from playwright.sync_api import Browser

KEYS = {
    "SECRET_KEY": "test-secret-key",
    "APP_ID": "test-app",
    "REST_API_KEY": "test-rest-key",
    "JAVASCRIPT_KEY": "test-javascript-key",
    "CLIENT_KEY": "test-client-key",
    "MASTER_KEY": "test-master-key",
    "READ_ONLY_MASTER_KEY": "test-read-only-key",
    "MAINTENANCE_KEY": "test-maintenance-key",
}
# The master key reads everything over sockets only if it is one of them.
KEY_PAIRS = {"LIVE_QUERY_KEY_PAIRS": "javascriptKey,restAPIKey,clientKey,windowsKey,masterKey"}
# All requests of a run come from one address. Tests of limits switch them on, those of the log
# view the keeping of records.
NO_LIMITS = {"RATE_LIMITS": "off", "LOG_KEEP": "0"}
_RECURSION_LIMIT = sys.getrecursionlimit()
# Hypothesis would fail an example that takes longer than 200 ms, as any does now and then on a
# machine that is busy with other things.
hypothesis.settings.register_profile("suite", deadline=None)
hypothesis.settings.load_profile("suite")
_engines = contextlib.ExitStack()


def pytest_configure(config: pytest.Config) -> None:
    """Choose the settings, and start the engines once for the whole run."""
    if _is_pure(config):
        return
    if not is_xdist_worker(config):
        memory_folder.use(config, _engines)
        os.environ.update(_start_engines())
    os.environ["REDIS_URL"] = _own_redis_database(config, os.environ["REDIS_URL"])
    os.environ.update(
        KEYS
        | KEY_PAIRS
        | NO_LIMITS
        | {"PROCESS": "test", "LOG_LEVEL": "WARNING", "ENV_FILE": os.devnull}
    )
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"

    from django.conf import settings

    # Reading one lets pytest-django see that there are settings, and set Django up.
    assert settings.DATABASES
    # It would read them in an xdist worker before this function has chosen the worker's own.
    del os.environ["DJANGO_SETTINGS_MODULE"]


def pytest_sessionstart(session: pytest.Session) -> None:
    """Workers of xdist choose their settings themselves, regardless of Django's start."""
    os.environ.pop("DJANGO_SETTINGS_MODULE", None)


def _is_pure(config: pytest.Config) -> bool:
    """Whether all selected tests are in ``unit.txt``: they need neither Django nor engines."""
    if is_xdist_worker(config):
        return "DATABASE_URL" not in os.environ  # as the controlling process has decided
    lines = (config.rootpath / "tests" / "unit.txt").read_text().splitlines()
    unit = {config.rootpath / line for line in lines if not line.startswith("#")}
    places = [config.invocation_params.dir / arg.partition("::")[0] for arg in config.args]
    return bool(places) and all(unit & {place, *place.parents} for place in places)


def pytest_make_parametrize_id(config: pytest.Config, val: object) -> str | None:
    """Names of cases that are the same in every process of a run: a set's own order is not."""
    if isinstance(val, set | frozenset):
        return str(sorted(val, key=str))
    return str(val)[:80] if isinstance(val, dict) else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What is set up once for a module (processes, browsers, servers) is set up by one worker.
    Tests in browsers, and with another process of the service, are slow."""
    for item in items:
        if {"chromium", "other"}.intersection(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.slow)
        if item.get_closest_marker("xdist_group") is None and _is_set_up_for_its_module(item):
            item.add_marker(pytest.mark.xdist_group(f"{item.path.parent.name}.{item.path.stem}"))
    if is_xdist_worker(config):
        # The large groups come before all of these. A test of a minute that begins last would be
        # waited for by the other workers.
        items.sort(key=lambda item: not _is_slow_alone(item))


def _is_slow_alone(item: pytest.Item) -> bool:
    groups = item.get_closest_marker("xdist_group")
    return groups is None and item.get_closest_marker("slow") is not None


def _is_set_up_for_its_module(item: pytest.Item) -> bool:
    info = getattr(item, "_fixtureinfo", None)
    definitions = info.name2fixturedefs if info else {}
    return any(
        definition_.scope == "module"
        for definition in definitions.values()
        for definition_ in definition[-1:]
    )


def pytest_collection_finish(session: pytest.Session) -> None:
    """No test may be collected by an import that lets deep input end the process (see
    ``chain/rpc/web3_library.py``): what was refused alone would crash beside it."""
    if sys.getrecursionlimit() > _RECURSION_LIMIT:
        raise pytest.UsageError("A test imports web3 or eth_account past chain.rpc.web3_library.")


def pytest_unconfigure(config: pytest.Config) -> None:
    _engines.close()


def is_xdist_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


def _start_engines() -> dict[str, str]:
    value = {name: os.environ.get(name, "") for name in ("DATABASE_URL", "REDIS_URL")}
    if not all(value.values()):
        folder: DataFolder = _engines.enter_context(temporary_engines())
        value["DATABASE_URL"] = value["DATABASE_URL"] or folder.database_url
        value["REDIS_URL"] = value["REDIS_URL"] or folder.redis_url
    value["DATA_DIR"] = str(_engines.enter_context(temporary_folder()).path)
    return value


def _own_redis_database(config: pytest.Config, url: str) -> str:
    if not is_xdist_worker(config):
        return url
    number = int(config.workerinput["workerid"].removeprefix("gw")) + 1  # type: ignore[attr-defined]
    if url.startswith("unix:"):
        return f"{url.partition('?')[0]}?db={number}"
    return f"{url.rpartition('/')[0] if url.count('/') > 2 else url}/{number}"


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None) -> None:
    """The run's database, which ``tests.table_flush`` empties after tests that commit."""
    from django.test import TransactionTestCase

    from tests.table_flush import empty_tables

    TransactionTestCase._fixture_teardown = empty_tables  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def chromium(django_db_setup: None) -> Iterator[Browser]:
    """Chromium, for the tests of a module; no longer, since its event loop runs meanwhile."""
    from tests.chromium import browser

    with browser() as launched:
        yield launched


@pytest.fixture(autouse=True)
def _fresh_cache(request: pytest.FixtureRequest) -> None:
    """Tests with a database begin with an empty cache too."""
    if request.node.get_closest_marker("django_db"):
        from django.core.cache import cache

        cache.clear()
        if "chain.rpc.pool" in sys.modules:
            # What an earlier test has made of the health of providers.
            sys.modules["chain.rpc.pool"].forget()
